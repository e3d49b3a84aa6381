"""Rows of the changelogged tables."""

from dataclasses import dataclass

from mainspring.schemas.common import CancelRequest, JobStatus, Priority

__all__ = [
    "Dispatch",
    "JobState",
    "PositionRow",
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
