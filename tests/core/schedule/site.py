"""Given, when, then for schedules: one partition that holds them and their jobs, and a clock that the test moves."""

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from mainspring.processors.core import Now, PartitionCore, Rules
from mainspring.processors.core.memory import RowsInMemory
from mainspring.processors.core.output import Message
from mainspring.processors.core.schedule.evolve import NO_PLAN, fold_schedule
from mainspring.processors.core.schedule.rows import ScheduleRowsInMemory
from mainspring.schemas.attempts import AttemptClaimed, AttemptFailed, AttemptSucceeded
from mainspring.schemas.commands import (
    BackfillSchedule,
    CreateSchedule,
    DeleteSchedule,
    PauseSchedule,
    ResumeSchedule,
    SubmitJob,
    TriggerSchedule,
    UpdateSchedule,
)
from mainspring.schemas.common import AttemptError, Cause, CauseSource, JobStatus
from mainspring.schemas.job import JobSpec
from mainspring.schemas.records import JobEvent, Record, ScheduleEvent
from mainspring.schemas.schedule import IntervalRule, ScheduleSpec, ScheduleTiming
from mainspring.schemas.schedule_events import OccurrenceFired, OccurrencesSkipped, ScheduleCommandRejected
from mainspring.schemas.tables import ScheduleState
from tests.core.spec import NOON, START_MONO

T = TypeVar("T")

MINUTE = 60_000
HOUR = 60 * MINUTE
ID = "report"


def every(interval_ms: int = MINUTE, **timing: Any) -> ScheduleTiming:
    """A schedule every so often, anchored at noon."""
    rules = (IntervalRule(every_ms=interval_ms, anchor_ms=NOON),)
    return ScheduleTiming(rules=rules, **timing)


def definition(timing: ScheduleTiming | None = None, schedule_id: str = ID, **policies: Any) -> ScheduleSpec:
    """A definition; by default once a minute."""
    job = policies.pop("job", JobSpec(job_id="", name="work"))
    return ScheduleSpec(schedule_id=schedule_id, timing=timing or every(), job=job, **policies)


@dataclass
class Site:
    """A partition under test; what it tells other partitions comes back to it, for it is the only one."""

    rules: Rules = field(default_factory=Rules)
    now: Now = field(default_factory=lambda: Now(NOON, START_MONO))
    rows: RowsInMemory = field(default_factory=RowsInMemory)
    schedules: ScheduleRowsInMemory = field(default_factory=ScheduleRowsInMemory)
    events: list[ScheduleEvent] = field(default_factory=list)
    job_events: list[JobEvent] = field(default_factory=list)
    submits: list[SubmitJob] = field(default_factory=list)
    last: list[ScheduleEvent] = field(default_factory=list)
    held: list[tuple[str, Message]] | None = None
    """Where the follow-ups go instead, once it is a list."""
    core: PartitionCore = field(init=False)
    offset: int = 0
    commands: int = 0

    def __post_init__(self) -> None:
        self.core = PartitionCore(0, self.rules, self.rows, 7, self.schedules)
        self.core.load(self.rows.states.values(), 0, self.now, self.schedules.states.values())

    # Time and the shell.

    def later(self, ms: int) -> "Site":
        """Moves both clocks, and does what is due; one turn."""
        self.now = Now(self.now.wall_ms + ms, self.now.mono_ms + max(0, ms))
        return self.tick()

    def set_clock(self, by_ms: int) -> "Site":
        """Sets the wall clock, ahead or back; no time passes, and nobody has looked at it yet."""
        self.now = Now(self.now.wall_ms + by_ms, self.now.mono_ms)
        return self

    def tick(self) -> "Site":
        """One turn of the timers."""
        self.last = []
        self.core.tick(self.now)
        return self._settle()

    def until_idle(self) -> "Site":
        """As many turns as there is something due."""
        self.tick()
        while (
            (wake := self.core.wake_at()) is not None and wake.wall_ms is not None and wake.wall_ms <= self.now.wall_ms
        ):
            before = list(self.last)
            self.tick()
            self.last = before + self.last
        return self

    def each(self, step_ms: int, times: int) -> "Site":
        """Steps in time."""
        for _ in range(times):
            self.later(step_ms)
        return self

    def taken_over(self) -> "Site":
        """Another owner loads the partition from its rows."""
        states, schedules = list(self.rows.states.values()), list(self.schedules.states.values())
        next_seq, clock_ms = self.core.next_seq, self.core.clock_ms
        self.core = PartitionCore(0, self.rules, self.rows, 7, self.schedules)
        self.core.load(states, next_seq, self.now, schedules, clock_ms)
        return self

    def apply(self, record: Record, source: CauseSource = CauseSource.COMMANDS) -> "Site":
        """One input."""
        self.last = []
        self._give(record, source)
        return self._settle()

    def _give(self, record: Record, source: CauseSource) -> None:
        self.offset += 1
        self.core.apply(record, Cause(source=source, partition=0, offset=self.offset), self.now)

    def _settle(self) -> "Site":
        pending: deque[Message] = deque()
        while True:
            output = self.core.drain()
            self.events += output.schedule_events
            self.last += output.schedule_events
            self.job_events += output.events
            self.submits += [record for _, record in output.followups if isinstance(record, SubmitJob)]
            if self.held is None:
                pending += [record for _, record in output.followups]
            else:
                self.held += output.followups
            if not pending:
                return self
            self._give(pending.popleft(), CauseSource.FOLLOWUPS)

    # Users.

    def _command(self, command_id: str | None = None) -> dict[str, Any]:
        self.commands += 1
        return {
            "command_id": command_id or f"command-{self.commands}",
            "actor": "ada",
            "reason": "because",
            "requested_at_ms": self.now.wall_ms,
        }

    def create(self, spec: ScheduleSpec | None = None, command_id: str | None = None, **policies: Any) -> "Site":
        return self.apply(CreateSchedule(spec=spec or definition(**policies), **self._command(command_id)))

    def update(self, spec: ScheduleSpec, expected_version: int | None = None) -> "Site":
        return self.apply(UpdateSchedule(spec=spec, expected_version=expected_version, **self._command()))

    def pause(self, note: str = "", command_id: str | None = None) -> "Site":
        return self.apply(PauseSchedule(schedule_id=ID, note=note, **self._command(command_id)))

    def resume(self) -> "Site":
        return self.apply(ResumeSchedule(schedule_id=ID, **self._command()))

    def trigger(self, command_id: str | None = None) -> "Site":
        return self.apply(TriggerSchedule(schedule_id=ID, **self._command(command_id)))

    def backfill(self, from_ms: int, until_ms: int) -> "Site":
        return self.apply(BackfillSchedule(schedule_id=ID, from_ms=from_ms, until_ms=until_ms, **self._command()))

    def delete(self) -> "Site":
        return self.apply(DeleteSchedule(schedule_id=ID, **self._command()))

    # Workers.

    def start(self, job_id: str) -> "Site":
        """Offers what is due, and a worker claims the job."""
        self.core.dispatch(self.now, 1_000)
        self._settle()
        attempt = self.rows.states[job_id].attempt + 1
        claim = AttemptClaimed(free_slot=True, **self._report(job_id, attempt))
        return self.apply(claim, CauseSource.ATTEMPTS)

    def succeed(self, job_id: str) -> "Site":
        """Runs an instance to its end, at once."""
        self.start(job_id)
        return self.done(job_id)

    def done(self, job_id: str) -> "Site":
        """A started instance reports success."""
        attempt = self.rows.states[job_id].attempt
        report = AttemptSucceeded(started_at_ms=self.now.wall_ms, **self._report(job_id, attempt))
        return self.apply(report, CauseSource.ATTEMPTS)

    def fail(self, job_id: str) -> "Site":
        """An instance starts and fails for good."""
        self.start(job_id)
        report = AttemptFailed(
            started_at_ms=self.now.wall_ms,
            error=AttemptError(type="ValueError", message="no"),
            retryable=False,
            **self._report(job_id, self.rows.states[job_id].attempt),
        )
        return self.apply(report, CauseSource.ATTEMPTS)

    def _report(self, job_id: str, attempt: int) -> dict[str, Any]:
        return {
            "job_id": job_id,
            "attempt": attempt,
            "worker_id": "w1",
            "incarnation": "w1#1",
            "reported_at_ms": self.now.wall_ms,
        }

    # What then.

    def state(self, schedule_id: str = ID) -> ScheduleState:
        return self.schedules.states[schedule_id]

    def status(self, job_id: str) -> JobStatus:
        return self.rows.states[job_id].status

    def fired(self) -> list[str]:
        """The ids of all jobs that were fired, in order."""
        return [each.job_id for each in self.events if isinstance(each, OccurrenceFired)]

    def skipped(self) -> list[tuple[str, int, int, int]]:
        """Outcome, first and last as minutes after noon, and count of all that was not fired."""
        return [
            (each.outcome, (each.first_ms - NOON) // MINUTE, (each.last_ms - NOON) // MINUTE, each.count)
            for each in self.events
            if isinstance(each, OccurrencesSkipped)
        ]

    def event(self, kind: type[T]) -> T:
        """The one event of this type of the last step."""
        (event,) = (each for each in self.last if isinstance(each, kind))
        return event

    def refusal(self) -> str:
        """The code of the refusal, which must be all that the last step led to."""
        (event,) = self.last
        assert isinstance(event, ScheduleCommandRejected), event
        return event.reject_code

    def assert_row_is_fold(self, schedule_id: str = ID) -> None:
        """The row is the fold of the events since the schedule was created."""
        events = [each for each in self.events if each.schedule_id == schedule_id]
        folded = fold_schedule(events)
        row = self.schedules.states.get(schedule_id)
        assert folded == (None if row is None else replace(row, plan=folded.plan if folded else NO_PLAN))


def minute(number: int) -> str:
    """The id of the instance that is planned this many minutes after noon (2026-01-01)."""
    return f"{ID}@2026-01-01T{12 + number // 60:02}:{number % 60:02}:00Z"
