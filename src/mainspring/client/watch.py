"""A job that a handle follows, and the futures that wait for it."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, cast

from mainspring.client.progress import JobEvent, Progress, Terminal, Verdict
from mainspring.client.steps import fail, fulfil
from mainspring.schemas.build import quick
from mainspring.schemas.common import JobStatus
from mainspring.schemas.records import SCHEDULE_EVENT_TYPES, Event
from mainspring.schemas.schedule_events import OccurrenceFired

__all__ = ["FiredWatch", "Resolution", "ScheduleWatch", "Start", "Watch"]

_new_verdict = quick(Verdict)

Resolution: TypeAlias = Callable[[], None]
"""What is left to do once the lock is free: waking someone who waits may run his code."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where reading must begin to miss nothing: an offset, else an instant, else the beginning."""

    offset: int | None = None
    time_ms: int | None = None


class Watch:
    """One job as one handle sees it: the answer to its command, then the life of the job.

    With a `command_id` nothing counts before that command's verdict, so a handle of a refused submit never shows the
    fate of another job with the same id. Everything but construction happens under the tail's lock.

    A hundred thousand of these may wait to be looked at, so what most never need is made when it is needed.
    """

    kind: ClassVar[str] = "job"
    """What its id is the id of."""

    __slots__ = (
        "__weakref__",
        "_progress",
        "_waiting_end",
        "_waiting_verdict",
        "adopt",
        "command_id",
        "job_id",
        "joined",
        "kept",
        "key",
        "partition",
        "start",
        "verdict",
    )

    def __init__(
        self, job_id: str, partition: int, start: Start, command_id: str | None, *, adopt: bool = False
    ) -> None:
        self.job_id = job_id
        self.key = job_id.encode("utf-8", "surrogatepass")
        self.partition = partition
        self.start = start
        self.command_id = command_id
        self.adopt = adopt
        self.joined = False
        self.kept: list[tuple[Event, int]] | None = None
        self.verdict: Verdict | None = None
        self._progress: Progress | None = None
        self._waiting_verdict: list[Future[Verdict]] | None = None
        self._waiting_end: list[Future[Terminal | None]] | None = None

    @property
    def status(self) -> JobStatus | None:
        """The last status told; None while nothing was decided."""
        return None if self._progress is None else self._progress.status

    @property
    def terminal(self) -> Terminal | None:
        """How the job ended, if it has."""
        return None if self._progress is None else self._progress.terminal

    @property
    def ended(self) -> bool:
        """Whether nothing more can be learnt: the job is terminal, or its submit was refused."""
        return self.terminal is not None or (self.verdict is not None and self.verdict.rejection is not None)

    def wait_verdict(self) -> Future[Verdict]:
        """The answer to the command."""
        future: Future[Verdict] = Future()
        if self.verdict is not None:
            fulfil(future, self.verdict)
        elif self._waiting_verdict is None:
            self._waiting_verdict = [future]
        else:
            self._waiting_verdict.append(future)
        return future

    def wait_end(self) -> Future[Terminal | None]:
        """The end of the job; None: its submit was refused."""
        future: Future[Terminal | None] = Future()
        if self.ended:
            fulfil(future, self.terminal)
        elif self._waiting_end is None:
            self._waiting_end = [future]
        else:
            self._waiting_end.append(future)
        return future

    def waiting(self) -> bool:
        """Whether anyone waits. Forgets the futures of those who gave up."""
        self._waiting_verdict = [future for future in self._waiting_verdict or () if not future.done()] or None
        self._waiting_end = [future for future in self._waiting_end or () if not future.done()] or None
        return self._waiting_verdict is not None or self._waiting_end is not None

    def hear(self, event: Event, offset: int) -> list[Resolution]:
        """Take in one event now, or keep it until what came before it has been scanned."""
        if self.kept is None:
            return self.see(event, offset)
        self.kept.append((event, offset))
        return []

    def see(self, event: Event, offset: int) -> list[Resolution]:
        """Take in one event of the key; returns what to do once the lock is free."""
        if type(event) in SCHEDULE_EVENT_TYPES:
            return []  # of a schedule that has the id of the job
        if self.command_id is not None and self.verdict is None:
            if not self.answers(event):
                return []
            self.verdict = _new_verdict(event=event, partition=self.partition, offset=offset)
        # Ended is ended for the one who asked, even when the id is forgotten and submitted anew by another.
        if self.command_id is None or not self.ended:
            if self._progress is None:
                self._progress = Progress()
            self._progress.apply(cast(JobEvent, event))
        return self._resolutions()

    def answers(self, event: Event) -> bool:
        """Whether an event of the key is the verdict on the command."""
        return getattr(event, "command_id", None) == self.command_id

    def follow_another(self, start: Start) -> None:
        """Forget the refused command and follow whatever job has the id, from `start` on."""
        self.command_id = self.verdict = self._progress = self.kept = None
        self.start, self.joined = start, False

    def fail(self, error: BaseException) -> list[Resolution]:
        """Nothing more will come: tell everyone who waits."""
        futures: list[Future[Any]] = [*(self._waiting_verdict or ()), *(self._waiting_end or ())]
        self._waiting_verdict = self._waiting_end = None
        return [_failing(future, error) for future in futures]

    def _resolutions(self) -> list[Resolution]:
        found: list[Resolution] = []
        if self.verdict is not None and self._waiting_verdict is not None:
            found.extend(_fulfilling(future, self.verdict) for future in self._waiting_verdict)
            self._waiting_verdict = None
        if self._waiting_end is not None and self.ended:
            found.extend(_fulfilling(future, self.terminal) for future in self._waiting_end)
            self._waiting_end = None
        return found


class FiredWatch(Watch):
    """A job that a schedule has fired, from the verdict on its submit on.

    The id of that submit is known but for the incarnation of the schedule, which the event of the fire does not carry.
    """

    __slots__ = ("_revision",)

    def __init__(self, fired: OccurrenceFired, partition: int, start: Start) -> None:
        super().__init__(fired.job_id, partition, start, f"{fired.job_id}#")
        self._revision = fired.revision

    def answers(self, event: Event) -> bool:
        """Whether an event of the key is the verdict on the submit."""
        command_id = getattr(event, "command_id", None)
        if command_id is None or not command_id.startswith(self.command_id):
            return False
        incarnation = command_id.removeprefix(self.command_id).partition(".")[0]
        return bool(command_id == f"{self.command_id}{incarnation}.{self._revision}")


class ScheduleWatch(Watch):
    """A command about a schedule, up to its verdict. `job_id` is the id of the schedule."""

    kind = "schedule"

    __slots__ = ()

    @property
    def ended(self) -> bool:
        """Whether the command is answered."""
        return self.verdict is not None

    def see(self, event: Event, offset: int) -> list[Resolution]:
        """Take in one event of the key; those of a job that has the id of the schedule concern nobody here."""
        answers = type(event) in SCHEDULE_EVENT_TYPES and self.answers(event)
        if not answers or self.verdict is not None:
            return []
        self.verdict = Verdict(event, self.partition, offset)
        return self._resolutions()


def _fulfilling(future: Future[Any], value: object) -> Resolution:
    return lambda: fulfil(future, value)


def _failing(future: Future[Any], error: BaseException) -> Resolution:
    return lambda: fail(future, error)
