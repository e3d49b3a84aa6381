"""A job that a handle follows, and the futures that wait for it."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeAlias

from mainspring.client.progress import JobEvent, Progress, Terminal, Verdict
from mainspring.client.steps import fulfil
from mainspring.schemas.events import JobSubmitted

__all__ = ["Start", "Watch"]

Resolution: TypeAlias = Callable[[], None]


class Start:
    """Where reading must begin to miss nothing: an offset, else an instant, else the beginning."""

    __slots__ = ("offset", "time_ms")

    def __init__(self, *, offset: int | None = None, time_ms: int | None = None) -> None:
        self.offset = offset
        self.time_ms = time_ms


class Watch:
    """One job as one handle sees it: the answer to its command, then the life of the job.

    With a `command_id` nothing counts before that command's verdict, so a handle of a refused submit never shows the
    fate of another job with the same id. Everything but construction happens under the tail's lock.
    """

    __slots__ = (
        "__weakref__",
        "adopt",
        "command_id",
        "job_id",
        "joined",
        "kept",
        "key",
        "partition",
        "progress",
        "start",
        "verdict",
        "waiting_end",
        "waiting_verdict",
    )

    def __init__(self, job_id: str, partition: int, start: Start, command_id: str | None) -> None:
        self.job_id = job_id
        self.key = job_id.encode()
        self.partition = partition
        self.start = start
        self.command_id = command_id
        self.adopt = False
        self.joined = False
        self.kept: list[tuple[JobEvent, int]] | None = None
        self.progress = Progress()
        self.verdict: Verdict | None = None
        self.waiting_verdict: list[Future[Verdict]] = []
        self.waiting_end: list[Future[Terminal | None]] = []

    @property
    def decided(self) -> bool:
        """Whether the command was answered (or there was none)."""
        return self.command_id is None or self.verdict is not None

    @property
    def ended(self) -> bool:
        """Whether nothing more can be learnt: the job is terminal, or its submit was refused."""
        if self.progress.terminal is not None:
            return True
        return self.verdict is not None and self.verdict.rejection is not None

    def waiting(self) -> bool:
        """Whether anyone waits. Forgets the futures of those who gave up."""
        self.waiting_verdict = [future for future in self.waiting_verdict if not future.done()]
        self.waiting_end = [future for future in self.waiting_end if not future.done()]
        return bool(self.waiting_verdict or self.waiting_end)

    def hear(self, event: JobEvent, offset: int) -> list[Resolution]:
        """Take in one event now, or keep it until what came before it has been scanned."""
        if self.kept is None:
            return self.see(event, offset)
        self.kept.append((event, offset))
        return []

    def see(self, event: JobEvent, offset: int) -> list[Resolution]:
        """Take in one event of the job; returns what to do once the lock is free."""
        if not self.decided and getattr(event, "command_id", None) == self.command_id:
            self.verdict = Verdict(event, self.partition, offset)
            if isinstance(event, JobSubmitted):
                self.progress = Progress()
        # Ended is ended for the one who asked, even when the id is forgotten and submitted anew by another.
        if self.command_id is None or (self.verdict is not None and not self.ended):
            self.progress.apply(event)
        return self._resolutions()

    def fail(self, error: BaseException) -> list[Resolution]:
        """Nothing more will come: tell everyone who waits."""
        futures: list[Future[Any]] = [*self.waiting_verdict, *self.waiting_end]
        self.waiting_verdict, self.waiting_end = [], []
        return [_failing(future, error) for future in futures]

    def _resolutions(self) -> list[Resolution]:
        found: list[Resolution] = []
        if self.verdict is not None and self.waiting_verdict:
            futures, self.waiting_verdict = self.waiting_verdict, []
            found.extend(_fulfilling(future, self.verdict) for future in futures)
        if self.ended and self.waiting_end:
            ends, self.waiting_end = self.waiting_end, []
            found.extend(_fulfilling(end, self.progress.terminal) for end in ends)
        return found


def _fulfilling(future: Future[Any], value: object) -> Resolution:
    return lambda: fulfil(future, value)


def _failing(future: Future[Any], error: BaseException) -> Resolution:
    return lambda: future.set_exception(error) if not future.done() else None
