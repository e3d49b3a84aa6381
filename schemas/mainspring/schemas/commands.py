"""What users ask for: imperatives, on the `commands` topic."""

from dataclasses import dataclass

from mainspring.schemas.job import JobSpec
from mainspring.schemas.schedule import ScheduleSpec

__all__ = [
    "BackfillSchedule",
    "CancelJob",
    "CreateSchedule",
    "DeleteSchedule",
    "PauseSchedule",
    "RescheduleJob",
    "ResumeSchedule",
    "RetryJob",
    "SubmitJob",
    "TriggerSchedule",
    "UpdateSchedule",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitJob:
    """Asks for a job to be run."""

    command_id: str
    actor: str
    reason: str = ""
    requested_at_ms: int
    spec: JobSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelJob:
    """Asks that a job does not run, or stops."""

    job_id: str
    command_id: str
    actor: str
    reason: str = ""
    requested_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RescheduleJob:
    """Asks that a waiting job becomes due at another time."""

    job_id: str
    command_id: str
    actor: str
    reason: str = ""
    requested_at_ms: int
    run_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryJob:
    """Asks that a terminal job is run again, as a new job."""

    job_id: str
    command_id: str
    actor: str
    reason: str = ""
    requested_at_ms: int
    new_job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSchedule:
    """Asks for a schedule, which fires from now on."""

    command_id: str
    actor: str
    reason: str = ""
    requested_at_ms: int
    spec: ScheduleSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateSchedule:
    """Asks that a schedule goes on by another definition; what runs keeps the one it was fired with."""

    command_id: str
    actor: str
    reason: str = ""
    requested_at_ms: int
    spec: ScheduleSpec
    expected_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseSchedule:
    """Asks that a schedule fires nothing until it is resumed."""

    schedule_id: str
    command_id: str
    actor: str
    reason: str = ""
    requested_at_ms: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeSchedule:
    """Asks that a paused schedule goes on; what was planned meanwhile is not made up for."""

    schedule_id: str
    command_id: str
    actor: str
    reason: str = ""
    requested_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerSchedule:
    """Asks for one instance now, whatever the plan and the overlap policy say."""

    schedule_id: str
    command_id: str
    actor: str
    reason: str = ""
    requested_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillSchedule:
    """Asks that the occurrences of a range in the past are fired by the present definition."""

    schedule_id: str
    command_id: str
    actor: str
    reason: str = ""
    requested_at_ms: int
    from_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSchedule:
    """Asks that a schedule ends for good; its instances run on."""

    schedule_id: str
    command_id: str
    actor: str
    reason: str = ""
    requested_at_ms: int
