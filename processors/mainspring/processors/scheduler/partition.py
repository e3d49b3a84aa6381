"""The scheduler's rules over one partition: the core, its rows and its intake."""

from collections.abc import Iterable, Sequence

from mainspring.processors.core import WINDOW_JOBS, IsOver, Now, Output, PartitionCore, Rules, in_flight_in
from mainspring.processors.engine.ports import Received
from mainspring.processors.engine.tables import Row, Table
from mainspring.processors.scheduler.intake import Forwarded, Intake, IntakeContext
from mainspring.processors.scheduler.measures import count_events, count_schedule_events
from mainspring.processors.scheduler.placement import Placed, WorkPlacement
from mainspring.processors.scheduler.rows import SchedulerRows
from mainspring.schemas import JobState

__all__ = ["SchedulerPartition"]

_ROOM = 1_000
"""Offers of one partition in one transaction, so that a herd does not make one that outlasts its time-out."""


class SchedulerPartition:
    """Implements `PartitionProgram`."""

    def __init__(
        self,
        partition: int,
        table: Table,
        counter: int,
        now: Now,
        *,
        rules: Rules,
        context: IntakeContext,
        placement: WorkPlacement,
        cache_rows: int,
        window_jobs: int = WINDOW_JOBS,
        clock_ms: int = 0,
    ) -> None:
        self.number = partition
        self.placed = Placed()
        self._placement = placement
        self._rules = rules
        self._index = table.index
        self._window_jobs = window_jobs
        self._rows = SchedulerRows(table, context.codec, cache_rows)
        self._intake = Intake(partition, context, self.placed)
        self._output = Output()
        self._written = Output()
        self._committed_counter = counter
        self.core = self._load(now, clock_ms)

    @property
    def counter(self) -> int:
        return self.core.next_seq

    @property
    def clock_ms(self) -> int:
        return self.core.clock_ms

    def apply(self, topic: str, records: Sequence[Received], now: Now) -> int:
        before_bytes = self.core.decided_bytes
        self._intake.apply(self.core, topic, records, now)
        return self.core.decided_bytes - before_bytes

    def condemn(self, record: Received, detail: str, now: Now, *, close: bool) -> None:
        self._intake.condemn(self.core, record, detail, now, close=close)

    def tick(self, now: Now, is_over: IsOver) -> None:
        self.core.tick(now, is_over)
        self.core.dispatch(now, _ROOM)

    def next_tick_in_ms(self, now: Now) -> int | None:
        wake = self.core.wake_at()
        if wake is None:
            return None
        waits = []
        if wake.wall_ms is not None:
            waits.append(wake.wall_ms - now.wall_ms)
        if wake.mono_ms is not None:
            waits.append(wake.mono_ms - now.mono_ms)
        return max(0, min(waits)) if waits else None

    def wants_barrier(self, now: Now) -> bool:
        return self.core.overdue_leases(now)

    def barrier_passed(self, asked_at: Now, now: Now) -> None:
        for incarnation in self.core.expire_leases(asked_at, now):
            self._placement.gone(incarnation, now.mono_ms)

    def has_decided(self) -> bool:
        fresh = self.core.drain()
        mine = self._output
        mine.events += fresh.events
        mine.schedule_events += fresh.schedule_events
        mine.offers += fresh.offers
        mine.signals += fresh.signals
        mine.followups += fresh.followups
        return (
            bool(mine.events or mine.offers or mine.signals or mine.followups or self._intake.out)
            or bool(mine.schedule_events)
            or self._rows.is_dirty
        )

    def take(self) -> tuple[Output, Forwarded]:
        """What was decided since the last transaction, to be written in this one."""
        output, self._output = self._output, Output()
        self._written = output
        return output, self._intake.drain()

    def changes(self) -> list[Row]:
        return self._rows.changes()

    def index_changes(self) -> list[Row]:
        return self.core.drain_index()

    def committed(self) -> None:
        # Before the rows of this transaction are what the next one begins with: a job may be gone after it.
        count_events(self._written.events, self._rows.state)
        count_schedule_events(self._written.schedule_events)
        self._written = Output()
        self._rows.commit()
        self._committed_counter = self.core.next_seq

    def rolled_back(self, now: Now) -> None:
        self._rows.rollback()
        self._intake.drain()
        self._output = Output()
        self._written = Output()
        self.placed.clear()
        self.core = self._load(now, self.core.clock_ms)

    def closed(self) -> None:
        self.placed.clear()

    def _load(self, now: Now, clock_ms: int) -> PartitionCore:
        # The partition's number as the seed: every owner computes the same jitter, so that a replay agrees.
        core = PartitionCore(
            self.number,
            self._rules,
            self._rows,
            seed=self.number,
            schedules=self._rows,
            index=self._index,
            window_jobs=self._window_jobs,
        )
        core.load(self._states(), self._committed_counter, now, self._rows.schedules(), clock_ms)
        return core

    def _states(self) -> Iterable[JobState]:
        """All there are; with an index, those in flight, from which it can be read what else there is to know."""
        if self._index is None:
            return self._rows.states()
        return [state for job_id in in_flight_in(self._index) if (state := self._rows.state(job_id)) is not None]
