"""What the log says about one job: a fold of its events, for the live table and for the verdict at the end."""

from dataclasses import dataclass, replace

from mainspring.schemas.codes import RetryReason
from mainspring.schemas.common import JobStatus
from mainspring.schemas.events import (
    JobCancelled,
    JobCancelRequested,
    JobCompleted,
    JobFailed,
    JobRetryScheduled,
    JobStarted,
    JobSubmitted,
    JobTimedOut,
)
from mainspring.schemas.records import JobEvent

__all__ = ["Attempt", "Story", "tell"]

_ENDS = {
    JobCompleted: JobStatus.COMPLETED,
    JobFailed: JobStatus.FAILED,
    JobTimedOut: JobStatus.TIMED_OUT,
    JobCancelled: JobStatus.CANCELLED,
}
_NOT_COUNTED = (RetryReason.LOST, RetryReason.RELEASED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One start of a job. `ended_as` is None while it runs, else the status or the reason of the retry."""

    number: int
    worker_id: str
    due_at_ms: int
    started_at_ms: int
    ended_as: str | None = None

    @property
    def late_ms(self) -> int:
        """How long after its time it started."""
        return self.started_at_ms - self.due_at_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One job as its events tell it. `ends` counts terminal events: more than one would be wrong."""

    job_id: str
    status: JobStatus = JobStatus.PENDING
    cancelling: bool = False
    requested_at_ms: int = 0
    attempts: tuple[Attempt, ...] = ()
    ends: int = 0
    code: str | None = None
    result: bytes | None = None
    last_at_ms: int = 0

    @property
    def is_running(self) -> bool:
        """Whether an attempt runs now."""
        return self.status is JobStatus.RUNNING

    @property
    def is_ended(self) -> bool:
        """Whether it has come to its end."""
        return self.ends > 0

    @property
    def worker_id(self) -> str:
        """The worker of the last attempt; empty before the first."""
        return self.attempts[-1].worker_id if self.attempts else ""

    @property
    def counted(self) -> int:
        """Attempts without those that were lost with their worker or handed back by it."""
        return sum(attempt.ended_as not in _NOT_COUNTED for attempt in self.attempts)

    @property
    def lost(self) -> int:
        """Attempts that were lost with their worker."""
        return sum(attempt.ended_as == RetryReason.LOST for attempt in self.attempts)

    def lost_before(self, number: int) -> int:
        """Attempts with a lower number that were lost or handed back."""
        return sum(attempt.ended_as in _NOT_COUNTED for attempt in self.attempts if attempt.number < number)

    @property
    def worst_late_ms(self) -> int | None:
        """The worst lateness of its attempts; None before the first."""
        return max((attempt.late_ms for attempt in self.attempts), default=None)


def tell(story: Story, event: JobEvent) -> Story:
    """The story with one more event."""
    story = replace(story, last_at_ms=event.decided_at_ms)
    match event:
        case JobSubmitted():
            return replace(story, status=JobStatus.PENDING, requested_at_ms=event.requested_at_ms)
        case JobStarted():
            attempt = Attempt(
                number=event.attempt,
                worker_id=event.worker_id,
                due_at_ms=event.due_at_ms,
                started_at_ms=event.decided_at_ms,
            )
            return replace(story, status=JobStatus.RUNNING, attempts=(*story.attempts, attempt))
        case JobRetryScheduled():
            return replace(_ended(story, event.reason), status=JobStatus.RETRY_WAIT)
        case JobCancelRequested():
            return replace(story, cancelling=True)
        case JobCompleted() | JobFailed() | JobTimedOut() | JobCancelled():
            status = _ENDS[type(event)]
            result = event.result if isinstance(event, JobCompleted) else None
            return replace(
                _ended(story, status.name), status=status, ends=story.ends + 1, code=_code(event), result=result
            )
        case _:
            # Reschedules and refusals: the demo has none of the former, and the latter change nothing.
            return story


def _ended(story: Story, how: str) -> Story:
    if not story.is_running or not story.attempts:
        return story
    return replace(story, attempts=(*story.attempts[:-1], replace(story.attempts[-1], ended_as=how)))


def _code(event: JobCompleted | JobFailed | JobTimedOut | JobCancelled) -> str | None:
    if isinstance(event, JobFailed):
        return event.reason
    return event.cancel_code if isinstance(event, JobCancelled) else None
