"""What users ask for: imperatives, on the `commands` topic."""

from dataclasses import dataclass

from mainspring.schemas.job import JobSpec

__all__ = [
    "CancelJob",
    "RescheduleJob",
    "RetryJob",
    "SubmitJob",
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
