"""What a job's events may say, written down once more and apart from the product: the oracle's own table."""

from dataclasses import dataclass, field
from typing import Any

from mainspring.schemas import (
    JobCancelled,
    JobCancelRequested,
    JobCompleted,
    JobFailed,
    JobRescheduled,
    JobRetryScheduled,
    JobStarted,
    JobSubmitted,
    JobTimedOut,
)
from mainspring.schemas.codes import CancelCode
from tests.sim.world import Violation

__all__ = ["JobModel"]

_WAITING = ("PENDING", "RETRY_WAIT")
_AFTER: dict[type[Any], tuple[tuple[str, ...], str]] = {
    JobStarted: (_WAITING, "RUNNING"),
    JobCompleted: (("RUNNING",), "COMPLETED"),
    JobFailed: (("RUNNING",), "FAILED"),
    JobTimedOut: (("RUNNING",), "TIMED_OUT"),
    JobRetryScheduled: (("RUNNING",), "RETRY_WAIT"),
    JobCancelled: ((*_WAITING, "RUNNING"), "CANCELLED"),
    JobCancelRequested: (("RUNNING",), "RUNNING"),
}
_ENDS = ("COMPLETED", "FAILED", "TIMED_OUT", "CANCELLED")


@dataclass(slots=True)
class JobModel:
    """One job, as its events have told so far."""

    job_id: str
    status: str = ""
    revision: int = 0
    attempt: int = 0
    due_at_ms: int = 0
    delay_ms: int | None = 0
    """How long it waits, where it waits for a delay; None: for an instant."""
    asked_at_ms: int = 0
    """The time that was asked for, by whoever asked last."""
    retries: int = 0
    lost: int = 0
    cancel_asked: bool = False
    is_replaced: bool = False
    """Its schedule has shut it out for the next instance, which waits for nobody."""
    token: tuple[int, str, str] | None = None
    """Attempt, worker and incarnation that may report."""
    max_retries: int = 0
    max_lost: int = 0
    submitted: int = 0
    history: list[str] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.status in _ENDS

    def see(self, event: Any) -> None:
        """Takes one event. Raises Violation."""
        self.history.append(f"{type(event).__name__}#{event.revision}")
        if event.revision != self.revision + 1:
            self._violated("revision contiguous", f"revision {event.revision} follows {self.revision}")
        self.revision = event.revision
        if isinstance(event, JobSubmitted):
            self._submit(event)
            return
        if self.is_over:
            self._violated("terminal final", f"{type(event).__name__} after {self.status}")
        if isinstance(event, JobRescheduled):
            if self.status not in _WAITING:
                self._violated("transitions legal", f"rescheduled while {self.status}")
            self._reschedule(event)
            return
        before, after = _AFTER[type(event)]
        if self.status not in before:
            invariant = "one live token" if isinstance(event, JobStarted) else "transitions legal"
            self._violated(invariant, f"{type(event).__name__} while {self.status}")
        if self.cancel_asked and not isinstance(event, JobCompleted | JobCancelled):
            self._violated("cancel before start", f"{type(event).__name__} after a cancel was accepted")
        self.status = after
        self._change(event)

    def _submit(self, event: JobSubmitted) -> None:
        if self.status:
            self._violated("transitions legal", "submitted twice")
        self.status = "PENDING"
        self.due_at_ms = event.due_at_ms
        self.delay_ms = event.due_at_ms - event.decided_at_ms
        # What a schedule has fired waits for nothing but another machine's clock.
        if self.delay_ms and event.spec.run_at_ms is not None and event.spec.schedule_id is None:
            self.delay_ms = None
        self.max_retries, self.max_lost = event.spec.max_retries, event.spec.max_lost

    def _reschedule(self, event: JobRescheduled) -> None:
        if event.command_id is not None:
            self.delay_ms = 0 if event.due_at_ms == event.decided_at_ms else None
        elif self.delay_ms is None:
            self._violated("never moved unasked", f"its instant {self.due_at_ms} became {event.due_at_ms}")
        elif not event.due_at_ms < self.due_at_ms or event.due_at_ms > event.decided_at_ms + self.delay_ms:
            self._violated("delay kept", f"{self.delay_ms} ms until {self.due_at_ms} became {event.due_at_ms}")
        self.due_at_ms = event.due_at_ms

    def _change(self, event: Any) -> None:
        if isinstance(event, JobStarted):
            if event.attempt != self.attempt + 1:
                self._violated("attempts contiguous", f"attempt {event.attempt} follows {self.attempt}")
            # What waits for nothing may have been given its time by a clock that was ahead.
            if event.decided_at_ms < self.due_at_ms and self.delay_ms != 0:
                self._violated("never early", f"started {self.due_at_ms - event.decided_at_ms} ms before it was due")
            self.attempt = event.attempt
            self.token = (event.attempt, event.worker_id, event.incarnation)
            return
        if isinstance(event, JobCancelRequested):
            self.cancel_asked = True
            return
        if getattr(event, "attempt", self.attempt) != self.attempt:
            self._violated("one live token", f"{type(event).__name__} of attempt {event.attempt}, not {self.attempt}")
        self.token = None
        self.is_replaced = isinstance(event, JobCancelled) and event.cancel_code == CancelCode.REPLACED
        if isinstance(event, JobRetryScheduled):
            self._retry(event)

    def _retry(self, event: JobRetryScheduled) -> None:
        if event.retries > self.max_retries or event.lost > self.max_lost:
            self._violated("bounded attempts", f"retries {event.retries}, lost {event.lost}")
        if event.due_at_ms < event.decided_at_ms + event.delay_ms:
            self._violated("back-off kept", f"due {event.due_at_ms} after {event.decided_at_ms}+{event.delay_ms}")
        self.retries, self.lost, self.due_at_ms = event.retries, event.lost, event.due_at_ms
        self.delay_ms = event.delay_ms

    def _violated(self, invariant: str, detail: str) -> None:
        raise Violation(invariant, f"job {self.job_id}: {detail}; {' '.join(self.history[-12:])}")
