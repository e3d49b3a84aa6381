"""Why is this job not running? A typed answer for every job at any moment.

From a row alone comes everything but the place in the ready queue; the partition that owns the job adds that.
"""

from dataclasses import dataclass

from mainspring.processors.core.job.transitions import is_terminal
from mainspring.processors.core.job.waiting import is_due, is_parked
from mainspring.schemas.common import JobStatus
from mainspring.schemas.tables import JobState

__all__ = [
    "Finished",
    "NoSuchJob",
    "Offered",
    "Parked",
    "QueueNotDeclared",
    "Ready",
    "Running",
    "ScheduledUntil",
    "WhyNot",
    "explain",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoSuchJob:
    """There is no row: never submitted, refused, or finished and no longer kept."""

    job_id: str

    def __str__(self) -> str:
        return "it is not known here: never submitted, refused, or finished and no longer kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """It has ended and never runs again."""

    status: JobStatus
    finished_at_ms: int

    def __str__(self) -> str:
        return f"it is {self.status.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """It is running, or its worker has been told to start it."""

    attempt: int
    worker_id: str
    since_ms: int
    cancel_requested: bool

    def __str__(self) -> str:
        asked = ", and was asked to stop" if self.cancel_requested else ""
        return f"it is running: attempt {self.attempt} on {self.worker_id}{asked}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledUntil:
    """Its time has not come: as submitted, or after an attempt that is to be repeated."""

    due_at_ms: int
    after_attempt: int

    def __str__(self) -> str:
        what = f"attempt {self.after_attempt} is repeated" if self.after_attempt else "it is scheduled"
        return f"{what} in the future (due_at_ms {self.due_at_ms})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """Workers do not know its name; it is offered again after a pause."""

    since_ms: int
    until_ms: int

    def __str__(self) -> str:
        return f"no worker that was asked knows its name (since_ms {self.since_ms}); offered again at {self.until_ms}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """It is on offer and no worker has claimed it yet."""

    attempt: int
    offer: int
    since_ms: int

    def __str__(self) -> str:
        return f"it is on offer (attempt {self.attempt}, offer {self.offer}) and no worker has claimed it yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """It is due and waits for its turn. `ahead`, `window` and `in_flight` are known to its partition only."""

    queue: str
    ahead: int | None = None
    is_at_least: bool = False
    """Whether there may be more ahead than `ahead`: of a deep backlog only the front is in memory."""
    in_flight: int | None = None
    window: int | None = None

    @property
    def window_is_full(self) -> bool:
        """Whether offers and runs in flight hold the queue back, rather than the jobs ahead."""
        return self.in_flight is not None and self.window is not None and self.in_flight >= self.window

    def __str__(self) -> str:
        if self.ahead is None:
            return f"it is due and waits for its turn in queue {self.queue}"
        full = f"; workers are full: {self.in_flight} in flight, window {self.window}" if self.window_is_full else ""
        ahead = f"at least {self.ahead}" if self.is_at_least else self.ahead
        return f"it is due and waits behind {ahead} others in queue {self.queue}{full}"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueNotDeclared:
    """Its queue is no longer in the settings, so it is not offered."""

    queue: str

    def __str__(self) -> str:
        return f"queue {self.queue} is not declared in the scheduler's settings any more; declare it again"


WhyNot = NoSuchJob | Finished | Running | ScheduledUntil | Parked | Offered | Ready | QueueNotDeclared
"""Every reason there is; `str()` says it in words."""


def explain(state: JobState, now_ms: int) -> WhyNot:
    """Why the job is not running at `now_ms` (epoch milliseconds), from its row alone."""
    dispatch = state.dispatch
    if is_terminal(state.status):
        return Finished(status=state.status, finished_at_ms=state.finished_at_ms or 0)
    if state.status is JobStatus.RUNNING:
        return Running(
            attempt=state.attempt,
            worker_id=state.worker_id or "",
            since_ms=state.started_at_ms or 0,
            cancel_requested=state.cancel is not None,
        )
    if dispatch.offered_attempt:
        return Offered(attempt=dispatch.offered_attempt, offer=dispatch.offer, since_ms=dispatch.offered_at_ms)
    if is_parked(state, now_ms):
        return Parked(since_ms=dispatch.parked_since_ms or 0, until_ms=dispatch.parked_until_ms or 0)
    if not is_due(state, now_ms):
        return ScheduledUntil(due_at_ms=state.due_at_ms, after_attempt=state.attempt)
    return Ready(queue=state.queue)
