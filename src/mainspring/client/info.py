"""A job as a caller sees it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mainspring.client.progress import Progress
from mainspring.jobs.policy import RetryPolicy
from mainspring.schemas.common import AttemptError, JobStatus, Priority
from mainspring.schemas.epoch import to_datetime, to_epoch_ms
from mainspring.schemas.events import JobCancelled, JobCompleted, JobFailed, JobTimedOut
from mainspring.schemas.job import JobSpec

if TYPE_CHECKING:
    from mainspring.processors.projector.model import JobDetail

__all__ = ["JobInfo", "aware", "epoch_ms"]


_RETRY = ("max_retries", "retry_base_delay_ms", "retry_max_delay_ms", "retry_jitter")


def aware(instant_ms: int | None) -> datetime | None:
    """An instant on the wire (epoch milliseconds) as an aware datetime in UTC."""
    return None if instant_ms is None else to_datetime(instant_ms)


def epoch_ms(instant: datetime) -> int:
    """An aware datetime as it is on the wire. Raises ValueError for one without a time zone."""
    if instant.utcoffset() is None:
        raise ValueError(f"{instant.isoformat()} has no time zone; say which, for example datetime.now(UTC)")
    return to_epoch_ms(instant)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """One job at one moment. Durations are seconds, instants aware datetimes in UTC.

    `attempts` counts the attempts started, `run_at` is when it is (or was) due next, `revision` counts its transitions.
    `result` is decoded; `error` is the last one that an attempt raised (its traceback only when read from the log);
    `worker_id` is where the last attempt started; `cancel_requested` says that a cancel was accepted; `ended_code`,
    `ended_by` and `ended_reason` say how a job ended that did not complete.
    """

    job_id: str
    name: str
    status: JobStatus
    queue: str
    priority: Priority
    tenant: str
    tags: tuple[str, ...]
    revision: int
    seq: int
    attempts: int
    run_at: datetime
    submitted_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    timeout: float | None
    max_retries: int
    retry: RetryPolicy
    max_lost: int
    deadline: datetime | None
    start_deadline: datetime | None
    schedule_id: str | None
    retry_of: str | None
    worker_id: str | None
    cancel_requested: bool
    result: Any
    error: AttemptError | None
    ended_code: str | None
    ended_by: str | None
    ended_reason: str | None

    @classmethod
    def of_events(cls, progress: Progress, result: Any) -> "JobInfo":
        """The job as its events tell it; the fold must have kept the specification."""
        spec, submitted, status = progress.spec, progress.submitted, progress.status
        if spec is None or submitted is None or status is None or progress.seq is None:
            raise ValueError("the fold has not seen a JobSubmitted")
        end = progress.terminal
        return cls(
            **_of_spec(spec),
            status=status,
            revision=progress.revision,
            seq=progress.seq,
            attempts=progress.attempts,
            run_at=to_datetime(progress.due_at_ms or submitted.due_at_ms),
            submitted_at=to_datetime(submitted.decided_at_ms),
            started_at=aware(progress.started_at_ms),
            finished_at=aware(end.decided_at_ms) if end is not None else None,
            worker_id=progress.worker_id,
            cancel_requested=progress.cancel_requested,
            result=result if isinstance(end, JobCompleted) else None,
            error=progress.error,
            ended_code=_ended_code(end),
            ended_by=end.actor if isinstance(end, JobCancelled) else None,
            ended_reason=end.reason if isinstance(end, JobCancelled) else None,
        )

    @classmethod
    def of_detail(cls, detail: "JobDetail", result: Any) -> "JobInfo":
        """The job as the view tells it."""
        same = (
            "job_id",
            "name",
            "status",
            "queue",
            "priority",
            "tenant",
            "tags",
            "revision",
            "seq",
            "max_retries",
            "max_lost",
        )
        ends = ("worker_id", "schedule_id", "retry_of", "ended_code", "ended_by", "ended_reason")
        error = None
        if detail.error_type is not None:
            error = AttemptError(type=detail.error_type, message=detail.error_message or "")
        return cls(
            **{name: getattr(detail, name) for name in (*same, *ends)},
            attempts=detail.attempt,
            run_at=to_datetime(detail.due_at_ms),
            submitted_at=to_datetime(detail.submitted_at_ms),
            started_at=aware(detail.started_at_ms),
            finished_at=aware(detail.finished_at_ms),
            timeout=_seconds(detail.timeout_ms),
            retry=_retry(detail.spec),
            deadline=aware(detail.deadline_ms),
            start_deadline=aware(detail.start_deadline_ms),
            cancel_requested=detail.cancel_command_id is not None,
            result=result,
            error=error,
        )


def _of_spec(spec: JobSpec) -> dict[str, Any]:
    same = (
        "job_id",
        "name",
        "queue",
        "priority",
        "tenant",
        "tags",
        "max_retries",
        "max_lost",
        "schedule_id",
        "retry_of",
    )
    return {
        **{name: getattr(spec, name) for name in same},
        "timeout": _seconds(spec.timeout_ms),
        "retry": _retry({name: getattr(spec, name) for name in _RETRY}),
        "deadline": aware(spec.deadline_ms),
        "start_deadline": aware(spec.start_deadline_ms),
    }


def _retry(spec: Mapping[str, Any]) -> RetryPolicy:
    retries, base_delay_ms, max_delay_ms, jitter = (spec[name] for name in _RETRY)
    return RetryPolicy(
        max_retries=retries, base_delay=base_delay_ms / 1000, max_delay=max_delay_ms / 1000, jitter=jitter
    )


def _ended_code(end: object) -> str | None:
    if isinstance(end, JobFailed):
        return end.reason
    if isinstance(end, JobTimedOut):
        return JobStatus.TIMED_OUT.name
    return end.cancel_code if isinstance(end, JobCancelled) else None


def _seconds(duration_ms: int | None) -> float | None:
    return None if duration_ms is None else duration_ms / 1000
