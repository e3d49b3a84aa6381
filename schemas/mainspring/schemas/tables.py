"""Rows of the changelogged tables."""

from dataclasses import dataclass

from mainspring.schemas.common import CancelRequest, JobStatus, Priority
from mainspring.schemas.schedule import ScheduleStatus

__all__ = [
    "ActiveInstance",
    "Backfill",
    "Dispatch",
    "FiredRun",
    "JobState",
    "Plan",
    "PositionRow",
    "ScheduleState",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """What the scheduler knows about offering a job; no event carries it."""

    offered_attempt: int = 0
    offer: int = 0
    offered_at_ms: int = 0
    parked_since_ms: int | None = None
    parked_until_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """State of one job: the fold of its events, and the dispatch columns."""

    job_id: str
    revision: int
    seq: int
    status: JobStatus
    queue: str
    priority: Priority
    tenant: str
    submitted_at_ms: int
    due_at_ms: int
    delay_ms: int | None = None
    start_deadline_ms: int | None = None
    deadline_ms: int | None = None
    attempt: int
    retries: int
    lost: int
    worker_id: str | None = None
    incarnation: str | None = None
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    submit_command_id: str
    reschedule_command_id: str | None = None
    cancel: CancelRequest | None = None
    dispatch: Dispatch


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionRow:
    """How far one partition has been processed, written in every transaction that touches it."""

    next_seq: int
    txn_id: int
    commands_offset: int
    followups_offset: int
    attempts_offset: int
    owner: str
    written_at_ms: int
    protocol: int = 1
    clock_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveInstance:
    """A fired job that has not ended."""

    job_id: str
    nominal_ms: int
    version: int
    fired_revision: int
    cancelled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """An accepted backfill that has occurrences left."""

    command_id: str
    actor: str
    reason: str
    after_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FiredRun:
    """Neighbouring occurrences of one version that all were fired."""

    first_ms: int
    last_ms: int
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The next occurrence behind the cursor, as the definition has it; no event carries it."""

    nominal_ms: int | None = None
    fire_at_ms: int | None = None
    due_at_ms: int | None = None
    tzdata: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleState:
    """State of one schedule: the fold of its events, and the plan."""

    schedule_id: str
    revision: int
    incarnation: int
    version: int
    status: ScheduleStatus
    created_at_ms: int
    updated_at_ms: int
    cursor_ms: int
    busy_until_ms: int
    triggered_ms: int
    runs: int
    fired: int
    skipped: int
    failed: int
    last_nominal_ms: int | None = None
    last_job_id: str | None = None
    last_outcome: str | None = None
    pause_code: str | None = None
    paused_by: str | None = None
    note: str = ""
    create_command_id: str
    command_ids: tuple[str, ...] = ()
    active: tuple[ActiveInstance, ...] = ()
    backfills: tuple[Backfill, ...] = ()
    fired_runs: tuple[FiredRun, ...] = ()
    forgotten_ms: int = 0
    ahead: tuple[FiredRun, ...] = ()
    plan: Plan
