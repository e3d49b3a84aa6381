"""A decision in the making: what is decided next depends on the state after what was decided before."""

from typing import Final, NamedTuple, TypedDict

from mainspring.processors.core.errors import ScheduleFoldError
from mainspring.processors.core.schedule.ahead import open_times
from mainspring.processors.core.schedule.evolve import evolve_schedule
from mainspring.processors.core.timing import Occurrence, Timing, occurrence_id, tzdata_version
from mainspring.schemas.commands import CancelJob, SubmitJob
from mainspring.schemas.common import Cause, Txn
from mainspring.schemas.followups import InstanceReplaced
from mainspring.schemas.records import ScheduleEvent
from mainspring.schemas.schedule import ScheduleSpec
from mainspring.schemas.tables import FiredRun, ScheduleState

__all__ = [
    "UNNUMBERED",
    "Definition",
    "Draft",
    "Head",
    "ScheduleContext",
    "ScheduleMessage",
    "fired_revision",
    "submit_command_id",
]

UNNUMBERED: Final = Txn(id=0, index=0, size=0)
"""What an event carries until the engine numbers its transaction."""

ScheduleMessage = SubmitJob | CancelJob | InstanceReplaced
"""What a schedule tells the partitions of its jobs."""


class ScheduleContext(NamedTuple):
    """What a decision may depend on beside the schedule and the input."""

    now_ms: int
    cause: Cause
    queues: frozenset[str]
    """The declared queues."""
    next_seq: int
    """The partition's counter: what an accepted schedule takes as its incarnation."""


class Head(TypedDict):
    """The fields that every event of a schedule begins and ends with."""

    schedule_id: str
    revision: int
    decided_at_ms: int
    cause: Cause
    txn: Txn


class Definition:
    """The definition in force, and its occurrences.

    `planned` are all of them; `timing` leaves out what is `ahead` of the cursor and was fired.
    """

    __slots__ = ("_follows", "_known", "planned", "spec", "timing", "tzdata")

    def __init__(self, spec: ScheduleSpec, created_at_ms: int, ahead: tuple[FiredRun, ...] = ()) -> None:
        """`created_at_ms` anchors intervals that have no anchor. Raises CronError or UnknownZoneError."""
        self.spec = spec
        self.planned = Timing(spec.timing, spec.schedule_id, created_at_ms)
        self.timing = open_times(self.planned, ahead)
        self.tzdata = tzdata_version()
        self._known: dict[int, Occurrence | None] = {}
        self._follows: tuple[int, Occurrence] | None = None
        """A cursor, and what follows it: it follows whatever is in between, too."""

    def next_after(self, after_ms: int) -> Occurrence | None:
        """As `timing.next_after`, remembered: one decision asks for what follows the same instant several times."""
        if self._follows is not None and self._follows[0] <= after_ms < self._follows[1].nominal_ms:
            return self._follows[1]
        if after_ms not in self._known:
            self._known[after_ms] = self.timing.next_after(after_ms)
        return self._known[after_ms]

    def planned_after(self, after_ms: int) -> Occurrence | None:
        """As `planned.next_after`, and as cheap as `next_after` where nothing is ahead."""
        return self.next_after(after_ms) if self.timing is self.planned else self.planned.next_after(after_ms)

    def remember(self, state: ScheduleState) -> None:
        """Takes the plan of a row for what it is: what follows its cursor. Not for one of another definition."""
        plan = state.plan
        if plan.tzdata == self.tzdata and plan.nominal_ms is not None and plan.fire_at_ms is not None:
            self._follows = state.cursor_ms, Occurrence(nominal_ms=plan.nominal_ms, fire_at_ms=plan.fire_at_ms)


class Draft:
    """Collects events, each folded at once, and the messages that go with them."""

    def __init__(self, schedule_id: str, state: ScheduleState | None, context: ScheduleContext) -> None:
        self.schedule_id = schedule_id
        self.state = state
        self.context = context
        self.events: list[ScheduleEvent] = []
        self.followups: list[tuple[str, ScheduleMessage]] = []
        self.spec: ScheduleSpec | None = None
        """The definition that an accepted command brings."""

    @property
    def now_ms(self) -> int:
        """When this is decided, epoch milliseconds UTC."""
        return self.context.now_ms

    @property
    def present(self) -> ScheduleState:
        """The state so far. Raises ScheduleFoldError where there is none."""
        if self.state is None:
            raise ScheduleFoldError(self.schedule_id, "it is decided on and there is no row")
        return self.state

    def head(self, *, changes: bool = True) -> Head:
        """The common fields of the next event; a refusal does not change the revision."""
        revision = 0 if self.state is None else self.state.revision
        return Head(
            schedule_id=self.schedule_id,
            revision=revision + changes,
            decided_at_ms=self.context.now_ms,
            cause=self.context.cause,
            txn=UNNUMBERED,
        )

    def add(self, event: ScheduleEvent) -> None:
        """Records and folds an event."""
        self.state = evolve_schedule(self.state, event)
        self.events.append(event)

    def tell(self, job_id: str, message: ScheduleMessage) -> None:
        """Sends something to the partition of a job."""
        self.followups.append((job_id, message))

    def job_id(self, nominal_ms: int) -> str:
        """The id of the job that an occurrence of this schedule fires."""
        return occurrence_id(self.schedule_id, nominal_ms)


def submit_command_id(job_id: str, incarnation: int, fired_revision: int) -> str:
    """The command id of a fire.

    It tells the instances of a schedule from those of a former one of the same id, and the fires of one time from each
    other: the second, by a backfill, is refused by the job's partition and not taken for a repeat of the first.
    """
    return f"{job_id}#{incarnation}.{fired_revision}"


def fired_revision(command_id: str, job_id: str, incarnation: int) -> int | None:
    """The revision of the fire that a submit came from; None where it came from another schedule or from none."""
    prefix = f"{job_id}#{incarnation}."
    number = command_id.removeprefix(prefix)
    return int(number) if command_id.startswith(prefix) and number.isdecimal() else None
