"""What a running handler knows about itself."""

from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime

from mainspring.jobs.errors import NoCurrentJobError
from mainspring.jobs.models import JobPriority

__all__ = ["NOTE_CHARS_MAX", "JobContext", "current_context"]

NOTE_CHARS_MAX = 200
"""A progress note is repeated in every heartbeat; longer ones are cut."""


class JobContext:
    """The attempt that runs. Get it from `current_context()`, or as a handler parameter annotated `JobContext`.

    Attributes:
        job_id: the job.
        name: registered name of the handler.
        attempt: number of the attempt, from 1.
        queue, priority, tenant, tags: as submitted.
        due_at_ms, deadline_ms, times_out_at_ms: the instants below, as epoch milliseconds.
    """

    __slots__ = (
        "_cancelled",
        "_on_progress",
        "attempt",
        "deadline_ms",
        "due_at_ms",
        "job_id",
        "name",
        "note",
        "output",
        "priority",
        "progress_fraction",
        "queue",
        "tags",
        "tenant",
        "times_out_at_ms",
    )

    def __init__(
        self,
        *,
        job_id: str,
        name: str,
        attempt: int,
        queue: str = "default",
        priority: JobPriority = JobPriority.MEDIUM,
        tenant: str = "",
        tags: tuple[str, ...] = (),
        due_at_ms: int | None = None,
        deadline_ms: int | None = None,
        times_out_at_ms: int | None = None,
        on_progress: Callable[[float | None, str | None], None] | None = None,
    ) -> None:
        self.job_id = job_id
        self.name = name
        self.attempt = attempt
        self.queue = queue
        self.priority = priority
        self.tenant = tenant
        self.tags = tags
        self.due_at_ms = due_at_ms
        self.deadline_ms = deadline_ms
        self.times_out_at_ms = times_out_at_ms
        self.progress_fraction: float | None = None
        self.note: str | None = None
        self.output: object | None = None
        self._on_progress = on_progress
        self._cancelled = False

    def __repr__(self) -> str:
        return f"JobContext(job_id={self.job_id!r}, name={self.name!r}, attempt={self.attempt})"

    @property
    def fencing_token(self) -> int:
        """A number that rises with every attempt of the job: a store that remembers the highest can refuse a zombie."""
        return self.attempt

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of the job: give it to services that do a thing once per key."""
        return self.job_id

    @property
    def due_at(self) -> datetime | None:
        """When the attempt was due."""
        return _instant(self.due_at_ms)

    @property
    def deadline(self) -> datetime | None:
        """The job's deadline, if it has one; it orders jobs and ends nothing."""
        return _instant(self.deadline_ms)

    @property
    def times_out_at(self) -> datetime | None:
        """When the attempt times out, if it does."""
        return _instant(self.times_out_at_ms)

    @property
    def is_cancelled(self) -> bool:
        """Whether the attempt should stop: cancelled, timed out, or no longer this worker's. Safe from any thread."""
        return self._cancelled

    def progress(self, fraction: float | None = None, note: str | None = None) -> None:
        """Tells how far the attempt is: `fraction` from 0 to 1, `note` in words (cut at 200 characters).

        It travels with the next heartbeat; call it as often as you like. Raises ValueError outside of 0 to 1.
        """
        if fraction is not None and not 0.0 <= fraction <= 1.0:
            raise ValueError(f"progress goes from 0 to 1, not {fraction!r}")
        if fraction is not None:
            self.progress_fraction = float(fraction)
        if note is not None:
            self.note = note[:NOTE_CHARS_MAX].encode("utf-8", "replace").decode()
        if self._on_progress is not None:
            self._on_progress(self.progress_fraction, self.note)

    def mark_cancelled(self) -> None:
        """For executors: makes `is_cancelled` true."""
        self._cancelled = True


def _instant(epoch_ms: int | None) -> datetime | None:
    return None if epoch_ms is None else datetime.fromtimestamp(epoch_ms / 1000, UTC)


CURRENT: ContextVar[JobContext | None] = ContextVar("mainspring_current_job", default=None)
"""Set by executors for the length of an attempt; inherited by tasks and by `asyncio.to_thread`."""


def current_context() -> JobContext:
    """The attempt that runs in this task or thread. Raises `NoCurrentJobError` outside of a job."""
    context = CURRENT.get()
    if context is None:
        raise NoCurrentJobError("no job runs here; current_context() works inside a handler that a worker runs")
    return context
