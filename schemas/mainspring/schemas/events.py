"""What the scheduler decided: past tense, on the `events` topic."""

from dataclasses import dataclass

from mainspring.schemas.common import AttemptError, Cause, Txn
from mainspring.schemas.job import JobSpec

__all__ = [
    "CommandRejected",
    "JobCancelRequested",
    "JobCancelled",
    "JobCompleted",
    "JobFailed",
    "JobRescheduled",
    "JobRetryScheduled",
    "JobStarted",
    "JobSubmitted",
    "JobTimedOut",
    "ReportRefused",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubmitted:
    """A job was accepted."""

    job_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    command_id: str
    actor: str
    reason: str
    requested_at_ms: int
    seq: int
    due_at_ms: int
    spec: JobSpec
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarted:
    """A claim was confirmed: the attempt may run."""

    job_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    attempt: int
    worker_id: str
    incarnation: str
    due_at_ms: int
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCompleted:
    """The job succeeded."""

    job_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    attempt: int
    worker_id: str
    started_at_ms: int
    finished_at_ms: int
    result: bytes | None = None
    content_type: str
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFailed:
    """The job failed for good."""

    job_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    attempt: int
    reason: str
    error: AttemptError | None = None
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTimedOut:
    """The last allowed attempt timed out."""

    job_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    attempt: int
    timeout_ms: int
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCancelRequested:
    """A cancel was accepted while an attempt runs; it ends CANCELLED unless it succeeds."""

    job_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    command_id: str
    actor: str
    reason: str
    attempt: int
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCancelled:
    """The job will not run, or was stopped."""

    job_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    cancel_code: str
    command_id: str | None = None
    actor: str | None = None
    reason: str
    attempt: int
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRetryScheduled:
    """The attempt ended without success and the job will be tried again."""

    job_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    attempt: int
    reason: str
    delay_ms: int
    due_at_ms: int
    retries: int
    lost: int
    error: AttemptError | None = None
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRescheduled:
    """A waiting job got another time: somebody asked; or nobody, and the clock was set back under its delay."""

    job_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    command_id: str | None = None
    actor: str | None = None
    reason: str
    due_at_ms: int
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRefused:
    """A late, stale or foreign report, kept as evidence; it changes nothing."""

    job_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    attempt: int
    report: str
    worker_id: str
    incarnation: str
    reported_at_ms: int
    refusal: str
    evidence: bytes
    txn: Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRejected:
    """A command was refused; it changes nothing."""

    job_id: str
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
