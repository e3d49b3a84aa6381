"""Logs of schedules as a scheduler writes them, in memory: the real core decides, and what it says is put down."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mainspring.processors.core import Now, PartitionCore, Rules
from mainspring.processors.core.schedule.rows import ScheduleRowsInMemory
from mainspring.schemas import (
    AttemptClaimed,
    AttemptSucceeded,
    Cause,
    CauseSource,
    Codec,
    Command,
    CreateSchedule,
    IntervalRule,
    JobSpec,
    JobState,
    PositionRow,
    Record,
    ScheduleSpec,
    ScheduleState,
    ScheduleTiming,
    Txn,
)
from mainspring.schemas.schedule_limits import schedule_of
from mainspring.topics import Topic, Topology
from tests.support.synthetic_log import START_MS, MemoryLog

__all__ = ["MINUTE", "ScheduleLog", "definition"]

MINUTE = 60_000


def definition(schedule_id: str = "report", every_ms: int = MINUTE, **policies: Any) -> ScheduleSpec:
    """A definition; by default once a minute, anchored at the start of the log."""
    timing = ScheduleTiming(rules=(IntervalRule(every_ms=every_ms, anchor_ms=START_MS),))
    return ScheduleSpec(schedule_id=schedule_id, timing=timing, job=JobSpec(job_id="", name="work"), **policies)


class ScheduleLog:
    """One partition: inputs, transactions with events, follow-ups and rows, and a clock that the test moves."""

    def __init__(self) -> None:
        self.topology = Topology(partitions=1, work_partitions=1)
        self.codec = Codec.embedded()
        self.log = MemoryLog(self.topology)
        self.now_ms = START_MS
        self._jobs: dict[str, JobState] = {}
        self._specs: dict[str, JobSpec] = {}
        self._schedules = ScheduleRowsInMemory()
        self._written: dict[bytes, Any] = {}
        self._read: dict[str, int] = {}
        self._txn_id = 100
        self._commands = 0
        self._mono_ms = START_MS
        self._core = PartitionCore(0, Rules(partitions=1), self, 0, self._schedules)
        self._core.load((), 0, self._now)

    # The rows of jobs, as the core sees them.

    def state(self, job_id: str) -> JobState | None:
        return self._jobs.get(job_id)

    def spec(self, job_id: str) -> JobSpec | None:
        return self._specs.get(job_id)

    def put_state(self, job_id: str, state: JobState | None) -> None:
        assert state is not None
        self._jobs[job_id] = state

    def put_spec(self, job_id: str, spec: JobSpec | None) -> None:
        assert spec is not None
        self._specs[job_id] = spec

    # What happens.

    @property
    def _now(self) -> Now:
        return Now(self.now_ms, self._mono_ms)

    def set_clock(self, by_ms: int) -> "ScheduleLog":
        """The wall clock is set, ahead or back."""
        self.now_ms += by_ms
        return self

    def command(self, kind: Callable[..., Command], **fields: Any) -> "ScheduleLog":
        """A user asks."""
        self._commands += 1
        if kind is not CreateSchedule and "spec" not in fields:
            fields.setdefault("schedule_id", "report")
        asked = kind(command_id=f"c{self._commands}", actor="ada", requested_at_ms=self.now_ms, **fields)
        key = asked.spec.job_id if hasattr(asked, "spec") and isinstance(asked.spec, JobSpec) else schedule_of(asked)  # type: ignore[arg-type]  # all but SubmitJob are about a schedule here
        return self._input(self.topology.commands, CauseSource.COMMANDS, key, asked)

    def create(self, **policies: Any) -> "ScheduleLog":
        """A schedule is created."""
        return self.command(CreateSchedule, spec=definition(**policies))

    def later(self, ms: int) -> "ScheduleLog":
        """Time passes, and what is due is decided."""
        self.now_ms += ms
        self._mono_ms += ms
        self._core.tick(self._now)
        return self._commit()

    def run(self, job_id: str) -> "ScheduleLog":
        """A worker runs a job to its end."""
        self._core.dispatch(self._now, 100)
        self._commit()
        attempt = self._jobs[job_id].attempt + 1
        report: dict[str, Any] = {
            "job_id": job_id,
            "attempt": attempt,
            "worker_id": "w",
            "incarnation": "w#1",
            "reported_at_ms": self.now_ms,
        }
        self._input(self.topology.attempts, CauseSource.ATTEMPTS, job_id, AttemptClaimed(free_slot=True, **report))
        succeeded = AttemptSucceeded(started_at_ms=self.now_ms, **report)
        return self._input(self.topology.attempts, CauseSource.ATTEMPTS, job_id, succeeded)

    def _input(self, topic: Topic, source: CauseSource, key: str, record: Record) -> "ScheduleLog":
        offset = self.log.append(topic, 0, key.encode(), self.codec.encode(record), self.now_ms)
        return self._decide(topic, source, offset, record)

    def _decide(self, topic: Topic, source: CauseSource, offset: int, record: Record) -> "ScheduleLog":
        self._read[topic.name] = offset + 1
        self._core.apply(record, Cause(source=source, partition=0, offset=offset), self._now)
        self._core.tick(self._now)
        return self._commit()

    def _commit(self) -> "ScheduleLog":
        """Writes a transaction; what it tells other partitions comes back at once."""
        output = self._core.drain()
        log, topology, encode = self.log, self.topology, self.codec.encode
        events = [*output.events, *output.schedule_events]
        self._txn_id += 1
        log.begin()
        for index, event in enumerate(events):
            key = event.job_id if event in output.events else event.schedule_id  # type: ignore[union-attr]  # one or the other
            txn = Txn(id=self._txn_id, index=index, size=len(events))
            log.append(topology.events, 0, key.encode(), encode(event, txn), self.now_ms)
        told = [
            (log.append(topology.followups, 0, key.encode(), encode(record), self.now_ms), record)
            for key, record in output.followups
        ]
        self._write_rows()
        log.commit()
        for offset, record in told:
            self._decide(topology.followups, CauseSource.FOLLOWUPS, offset, record)
        return self

    def _write_rows(self) -> None:
        rows: dict[bytes, Any] = {b"J" + key.encode(): row for key, row in self._jobs.items()}
        rows |= {b"S" + key.encode(): row for key, row in self._specs.items()}
        rows |= {b"R" + key.encode(): row for key, row in self._schedules.states.items()}
        rows |= {b"D" + key.encode(): row for key, row in self._schedules.specs.items()}
        changelog = self.topology.scheduler_changelog
        for key in self._written.keys() - rows.keys():
            self.log.append(changelog, 0, key, None, self.now_ms)
        for key, row in rows.items():
            if self._written.get(key) != row:
                self.log.append(changelog, 0, key, self.codec.encode(row), self.now_ms)
        self._written = rows
        position = PositionRow(
            next_seq=self._core.next_seq,
            txn_id=self._txn_id,
            commands_offset=self._read.get(self.topology.commands.name, 0),
            followups_offset=self._read.get(self.topology.followups.name, 0),
            attempts_offset=self._read.get(self.topology.attempts.name, 0),
            owner="test",
            written_at_ms=self.now_ms,
        )
        self.log.append(changelog, 0, b"!position", self.codec.encode(position), self.now_ms)

    # Damage.

    def edit(self, kind: type[Any], nth: int = 0, **changes: Any) -> None:
        """Changes fields of one event where it stands."""
        partition, offset = self.log.find(self.codec, self.topology.events, kind, nth)
        self.log.edit(self.codec, self.topology.events, partition, offset, **changes)

    def drop(self, kind: type[Any], nth: int = 0) -> None:
        """Makes one event invisible."""
        self.log.drop(self.topology.events, *self.log.find(self.codec, self.topology.events, kind, nth))

    def edit_row(self, **changes: Any) -> None:
        """Changes the last state row of the schedule."""
        changelog = self.topology.scheduler_changelog
        partition, offset = self.log.find(self.codec, changelog, ScheduleState, -1)
        self.log.edit(self.codec, changelog, partition, offset, **changes)

    def events(self, kind: type[Any]) -> list[Any]:
        """The events of a type."""
        records = self.log.records[self.topology.events.name, 0]
        decoded = [self.codec.decode(raw.value) for raw in records if raw is not None and raw.value is not None]
        return [replace(each) for each in decoded if type(each) is kind]
