"""What the scheduler decided about schedules: past tense, on the `events` topic."""

from dataclasses import dataclass

from mainspring.schemas.common import Cause, Txn
from mainspring.schemas.schedule import ScheduleSpec

__all__ = [
    "BackfillAccepted",
    "BackfillEnded",
    "InstanceEnded",
    "InstancesStopped",
    "OccurrenceFired",
    "OccurrencesSkipped",
    "ScheduleCommandRejected",
    "ScheduleCompleted",
    "ScheduleCreated",
    "ScheduleDeleted",
    "SchedulePaused",
    "ScheduleResumed",
    "ScheduleRewound",
    "ScheduleUpdated",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleCreated:
    """A schedule was accepted; its version is 1."""

    schedule_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    command_id: str
    actor: str
    reason: str
    requested_at_ms: int
    incarnation: int
    spec: ScheduleSpec
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleUpdated:
    """A schedule goes on by another definition."""

    schedule_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    command_id: str
    actor: str
    reason: str
    version: int
    plans_anew: bool
    spec: ScheduleSpec
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePaused:
    """A schedule fires nothing until it is resumed."""

    schedule_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    pause_code: str
    command_id: str | None = None
    actor: str | None = None
    reason: str
    note: str
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleResumed:
    """A paused schedule goes on."""

    schedule_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    command_id: str
    actor: str
    reason: str
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRewound:
    """The clock had been ahead: what was planned behind `to_ms` and was not fired is open again."""

    schedule_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    from_ms: int
    to_ms: int
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleCompleted:
    """Nothing is planned any more."""

    schedule_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    completion_code: str
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleDeleted:
    """A schedule has ended for good; its instances run on."""

    schedule_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    command_id: str
    actor: str
    reason: str
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillAccepted:
    """The occurrences of a range in the past will be fired."""

    schedule_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    command_id: str
    actor: str
    reason: str
    from_ms: int
    until_ms: int
    count: int
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillEnded:
    """All occurrences of a backfill have been fired."""

    schedule_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    command_id: str
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class OccurrenceFired:
    """One occurrence became a job."""

    schedule_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    nominal_ms: int
    fire_at_ms: int
    origin: str
    job_id: str
    version: int
    command_id: str | None = None
    actor: str | None = None
    reason: str
    tzdata: str
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class OccurrencesSkipped:
    """A run of neighbouring occurrences that were not fired, all for one reason."""

    schedule_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    outcome: str
    first_ms: int
    last_ms: int
    count: int
    version: int
    reason: str
    tzdata: str
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class InstancesStopped:
    """Unfinished instances make room for an occurrence that is due."""

    schedule_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    how: str
    job_ids: tuple[str, ...]
    nominal_ms: int
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceEnded:
    """A fired job has ended, or its submit was refused."""

    schedule_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    job_id: str
    fired_revision: int
    outcome: str
    detail: str
    finished_at_ms: int
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleCommandRejected:
    """A command about a schedule was refused; it changes nothing."""

    schedule_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    command_id: str
    command: str
    actor: str
    reject_code: str
    message: str
    status: str | None = None
    txn: Txn
