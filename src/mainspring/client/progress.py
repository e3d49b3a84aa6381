"""What the events say about one job, folded for a caller who waits for it."""

from dataclasses import dataclass
from typing import TypeAlias

from mainspring.schemas.common import AttemptError, JobStatus
from mainspring.schemas.events import (
    CommandRejected,
    JobCancelled,
    JobCancelRequested,
    JobCompleted,
    JobFailed,
    JobRescheduled,
    JobRetryScheduled,
    JobStarted,
    JobSubmitted,
    JobTimedOut,
    ReportRefused,
)
from mainspring.schemas.job import JobSpec
from mainspring.schemas.records import Event, JobEvent
from mainspring.schemas.schedule_events import ScheduleCommandRejected

__all__ = ["JobEvent", "Progress", "Terminal", "Verdict", "is_terminal", "status_of"]

Terminal: TypeAlias = JobCompleted | JobFailed | JobTimedOut | JobCancelled

_STATUS_OF_END = {
    JobCompleted: JobStatus.COMPLETED,
    JobFailed: JobStatus.FAILED,
    JobTimedOut: JobStatus.TIMED_OUT,
    JobCancelled: JobStatus.CANCELLED,
}
_TERMINAL = frozenset(_STATUS_OF_END.values())
_REJECTIONS = (CommandRejected, ScheduleCommandRejected)


def is_terminal(status: JobStatus | None) -> bool:
    """Whether nothing can happen to a job any more."""
    return status in _TERMINAL


def status_of(end: Terminal) -> JobStatus:
    """The terminal status that an event brings."""
    return _STATUS_OF_END[type(end)]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The event that answers a command, and where it is in `events`."""

    event: Event
    partition: int
    offset: int

    @property
    def rejection(self) -> CommandRejected | ScheduleCommandRejected | None:
        """The refusal, if it is one."""
        return self.event if isinstance(self.event, _REJECTIONS) else None


class Progress:
    """The fold of one job's events, in the order of its revisions.

    Events may be given twice: what has been seen is skipped. The specification (it carries the payload) is kept only
    where asked for, since thousands of these may be alive.
    """

    __slots__ = (
        "attempts",
        "cancel_requested",
        "due_at_ms",
        "error",
        "keep_spec",
        "revision",
        "seq",
        "spec",
        "started_at_ms",
        "status",
        "submitted",
        "terminal",
        "worker_id",
    )

    def __init__(self, *, keep_spec: bool = False) -> None:
        self.keep_spec = keep_spec
        self._forget()

    def _forget(self) -> None:
        self.revision = 0
        self.status: JobStatus | None = None
        self.attempts = 0
        self.seq: int | None = None
        self.submitted: JobSubmitted | None = None
        self.spec: JobSpec | None = None
        self.due_at_ms: int | None = None
        self.started_at_ms: int | None = None
        self.worker_id: str | None = None
        self.error: AttemptError | None = None
        self.cancel_requested = False
        self.terminal: Terminal | None = None

    def apply(self, event: JobEvent) -> bool:
        """Fold one event; whether it was news. Refusals change nothing."""
        if isinstance(event, (CommandRejected, ReportRefused)):
            return False
        if isinstance(event, JobSubmitted) and self.terminal is not None and event.seq > (self.seq or 0):
            self._forget()  # the scheduler had forgotten the id (history limit) and it was submitted anew
        elif event.revision <= self.revision:
            return False
        self.revision = event.revision
        self._move(event)
        return True

    @property
    def is_running(self) -> bool:
        """Whether an attempt runs."""
        return self.status is JobStatus.RUNNING

    def _move(self, event: JobEvent) -> None:
        # The three events of a job that simply succeeds come first: their order here is their cost.
        match event:
            case JobSubmitted():
                self.status, self.seq, self.due_at_ms = JobStatus.PENDING, event.seq, event.due_at_ms
                if self.keep_spec:
                    self.submitted, self.spec = event, event.spec
            case JobStarted():
                self.status, self.attempts, self.worker_id = JobStatus.RUNNING, event.attempt, event.worker_id
                self.started_at_ms = event.decided_at_ms
            case JobCompleted() | JobFailed() | JobTimedOut() | JobCancelled():
                self._end(event)
            case JobRetryScheduled():
                self.status, self.due_at_ms, self.started_at_ms = JobStatus.RETRY_WAIT, event.due_at_ms, None
                self.error = event.error or self.error
            case JobRescheduled():
                self.due_at_ms = event.due_at_ms
            case JobCancelRequested():
                self.cancel_requested = True

    def _end(self, event: Terminal) -> None:
        if isinstance(event, JobFailed):
            self.error = event.error or self.error
        if isinstance(event, JobCancelled) and event.command_id is not None:
            self.cancel_requested = True
        self.status, self.terminal = _STATUS_OF_END[type(event)], event
