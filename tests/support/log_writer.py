"""How a scheduler writes: inputs that it has read, then events, rows and positions, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from mainspring.processors.core.job.evolve import evolve
from mainspring.schemas import (
    Cause,
    CauseSource,
    Codec,
    CommandRejected,
    JobSpec,
    JobState,
    JobSubmitted,
    PositionRow,
    ReportRefused,
    Txn,
)
from mainspring.topics import Topic, Topology, partition_for
from tests.support.synthetic_log import START_MS, Sink

_NO_TXN = Txn(id=0, index=0, size=0)


class LogWriter:
    """Writes inputs as they come, and decisions in transactions with the rows and the positions that they make."""

    def __init__(self, topology: Topology, codec: Codec, sink: Sink) -> None:
        self.topology = topology
        self.codec = codec
        self.sink = sink
        self.now_ms = START_MS
        self.states: dict[str, JobState] = {}
        self.specs: dict[str, JobSpec] = {}
        self._seq = dict.fromkeys(range(topology.partitions), 0)
        self._read: dict[tuple[str, int], int] = {}
        self._txn_id = 1_000
        self._pending: list[Any] | None = None
        self._followups: list[tuple[str, Any]] = []
        self._ids = 0

    def tick(self, ms: int = 10) -> int:
        """Lets time pass."""
        self.now_ms += ms
        return self.now_ms

    def partition(self, job_id: str) -> int:
        """Where a job is at home."""
        return partition_for(job_id.encode(), self.topology.partitions)

    # Inputs.

    def put(self, topic: Topic, job_id: str, record: Any, partition: int | None = None) -> Cause:
        """Writes an input and notes it as read."""
        at = self.partition(job_id) if partition is None else partition
        offset = self.sink.append(topic, at, job_id.encode(), self.codec.encode(record), self.now_ms)
        self._read[topic.name, at] = offset + 1
        source = CauseSource.COMMANDS if topic is self.topology.commands else CauseSource.ATTEMPTS
        return Cause(source=source, partition=at, offset=offset)

    def reads(self, topic: Topic, partition: int, offset: int) -> None:
        """Notes that everything before an offset has been read."""
        self._read[topic.name, partition] = offset

    def command_id(self) -> str:
        self._ids += 1
        return f"c{self._ids}"

    # Transactions.

    @contextmanager
    def transaction(self, end: Callable[[], None] | None = None) -> Iterator[None]:
        """What is decided inside is one transaction; `end` instead of the commit."""
        if self._pending is not None:
            yield
            return
        self._pending, self._followups = [], []
        yield
        events, self._pending = self._pending, None
        self._txn_id += 1
        self.sink.begin()
        touched: dict[str, None] = {}
        for index, event in enumerate(events):
            numbered = replace(event, txn=Txn(id=self._txn_id, index=index, size=len(events)))
            home = self.partition(event.job_id)
            self.sink.append(
                self.topology.events, home, event.job_id.encode(), self.codec.encode(numbered), self.now_ms
            )
            if not isinstance(event, CommandRejected | ReportRefused):
                touched[event.job_id] = None
        for key, record in self._followups:
            self.sink.append(
                self.topology.followups, self.partition(key), key.encode(), self.codec.encode(record), self.now_ms
            )
        self._write_rows(touched)
        (end or self.sink.commit)()

    def _write_rows(self, touched: dict[str, None]) -> None:
        changelog = self.topology.scheduler_changelog
        for job_id in touched:
            state = self.states.get(job_id)
            if state is None:
                continue
            home = self.partition(job_id)
            if state.revision == 1:
                spec = self.codec.encode(self.specs[job_id])
                self.sink.append(changelog, home, b"S" + job_id.encode(), spec, self.now_ms)
            row = self.codec.encode(state)
            self.sink.append(changelog, home, b"J" + job_id.encode(), row, self.now_ms)
        for partition in range(self.topology.partitions):
            self.sink.append(
                changelog, partition, b"!position", self.codec.encode(self._position(partition)), self.now_ms
            )

    def _position(self, partition: int) -> PositionRow:
        topology = self.topology
        return PositionRow(
            next_seq=self._seq[partition],
            txn_id=self._txn_id,
            commands_offset=self._read.get((topology.commands.name, partition), 0),
            followups_offset=self._read.get((topology.followups.name, partition), 0),
            attempts_offset=self._read.get((topology.attempts.name, partition), 0),
            owner="double",
            written_at_ms=self.now_ms,
        )

    def emit(self, event: Any) -> None:
        """Decides one event: folds it and writes it with the transaction that is open, or in one of its own."""
        with self.transaction():
            assert self._pending is not None
            self._pending.append(event)
            before = self.states.get(event.job_id)
            if type(event) is JobSubmitted:
                before = None
                self.specs[event.job_id] = event.spec
            after = evolve(before, event)
            if after is not None:
                self.states[event.job_id] = after

    def _decided(self, job_id: str, cause: Cause) -> dict[str, Any]:
        state = self.states.get(job_id)
        return {
            "job_id": job_id,
            "revision": (0 if state is None else state.revision) + 1,
            "decided_at_ms": self.tick(1),
            "cause": cause,
            "txn": _NO_TXN,
        }

    def timer(self, job_id: str) -> Cause:
        return Cause(source=CauseSource.TIMER, partition=self.partition(job_id), offset=-1)
