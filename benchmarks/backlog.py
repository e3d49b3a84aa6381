"""A scheduler process as far as its memory and its tables go, without Kafka, and tables full of pending jobs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from scheduler import Message

from mainspring.processors.core import Now, QueueOrder, QueueRules, Rules
from mainspring.processors.core.index.entries import COUNTS_KEY, encode_counts, waiting_key
from mainspring.processors.core.index.orders import encode_waiting
from mainspring.processors.core.ports import never
from mainspring.processors.engine.program import Position
from mainspring.processors.engine.tables.rocks import RocksTables
from mainspring.processors.scheduler.partition import SchedulerPartition
from mainspring.processors.scheduler.program import SchedulerProgram
from mainspring.schemas import Codec, JobSpec, JobState, SubmitJob
from mainspring.topics import Topology, partition_for

NOW_MS = 1_796_047_454_123
DUE_MS = NOW_MS + 86_400_000
CODEC = Codec.embedded()
CACHED_ROWS, WINDOW_JOBS = 100_000, 40_000
"""As a scheduler has them that is told nothing else."""
FILL_ROWS = 20_000
Input = tuple[bytes, bytes, int]
_AT_WORK = ("num-running-compactions", "compaction-pending", "num-running-flushes", "mem-table-flush-pending")


class Scheduler:
    """One scheduler process as far as its memory goes: the program over all partitions, and its tables."""

    def __init__(self, path: Path, partitions: int, now: Now) -> None:
        self.topology = Topology(partitions=partitions, work_partitions=partitions)
        self.program = SchedulerProgram(
            topology=self.topology,
            codec=CODEC,
            rules=Rules(partitions=partitions),
            recorded_by="bench",
            cache_rows=CACHED_ROWS,
            window_jobs=WINDOW_JOBS,
        )
        self.now = now
        self.store = RocksTables(path)
        self.tables = {number: self.store.open(number, f"bench/{self.program.layout}") for number in range(partitions)}
        self.owned: list[SchedulerPartition] = []
        for number, table in self.tables.items():
            position = self.program.read_position(table)
            counter = 0 if position is None else position.counter
            self.owned.append(self.program.open(number, table, counter, now))
        self.sent: list[tuple[str, bytes]] = []
        self.offset = 0
        self.source = submits(partitions, DUE_MS + 86_400_000, 86_400_000)

    def transact(self, topic: str, inputs: Sequence[Input]) -> list[tuple[str, bytes]]:
        """Decides on inputs, ticks, and writes rows; returns what would be sent."""
        now = self.now
        by_partition: dict[int, list[Any]] = {}
        for key, value, number in inputs:
            self.offset += 1
            by_partition.setdefault(number, []).append(Message(topic, number, self.offset, key, value))
        for number, messages in by_partition.items():
            self.owned[number].apply(topic, messages, now)
        for each in self.owned:
            each.tick(now, never)
        decided = [each for each in self.owned if each.has_decided()]
        rows = {each.number: (self._rows(each), each.index_changes()) for each in decided}
        self.sent = []
        self.program.emit(decided, 1, self._send, now)
        for each in self.owned:
            table = self.tables[each.number]
            if each in decided:
                table.write(rows[each.number][0], self.offset, now.wall_ms, rows[each.number][1])
                each.committed()
            else:
                table.write((), table.offset, now.wall_ms, each.index_changes())
        self.store.sync(now.mono_ms)
        return self.sent

    def _rows(self, each: SchedulerPartition) -> list[tuple[bytes, bytes | None]]:
        offsets = dict.fromkeys(self.program.inputs, self.offset)
        position = Position(offsets=offsets, counter=each.counter, txn_id=1, owner="bench", written_at_ms=0)
        return [*each.changes(), self.program.encode_position(position)]

    def _send(self, topic: str, value: bytes | None, key: bytes | None, number: int) -> None:
        if ".work." in topic or topic.endswith(".signals"):
            self.sent.append((topic, value or b""))

    def settle(self) -> None:
        """Waits until RocksDB has nothing left to do."""
        db = self.store._db  # noqa: SLF001 - only a measurement asks what RocksDB does behind the tables
        while any(db.property_int_value(f"rocksdb.{name}") for name in _AT_WORK):
            sleep(0.01)

    def later(self, ms: int) -> None:
        """Moves the clocks."""
        self.now = Now(self.now.wall_ms + ms, self.now.mono_ms + ms)


def submits(partitions: int, due_ms: int, spread_ms: int) -> Iterator[Input]:
    """Submits of jobs that are due somewhere within `spread_ms` behind an instant."""
    for number in count():
        yield submit(_id(number, "new"), partitions, run_at_ms=due_ms + (number * 7_919) % (spread_ms + 1))


def submit(job_id: str, partitions: int, **terms: Any) -> Input:
    """One submit: key, value, partition."""
    spec = JobSpec(job_id=job_id, name="noop", payload=b'{"order": 12345}', **terms)
    command = SubmitJob(command_id=job_id, actor="bench", requested_at_ms=NOW_MS, spec=spec)
    key = job_id.encode()
    return key, CODEC.encode(command), partition_for(key, partitions)


def fill(path: Path, partitions: int, pending: int, spread_ms: int) -> None:
    """Writes the rows of so many pending jobs and what follows from them, as they are after a restore.

    The rows of one job are taken, and its id and time replaced in their bytes: what is measured is not this.
    """
    scheduler = Scheduler(path, partitions, Now(NOW_MS, 0))
    pattern = _id(0, "old")
    scheduler.transact(scheduler.topology.commands.name, [submit(pattern, partitions, run_at_ms=DUE_MS)])
    table = scheduler.tables[partition_for(pattern.encode(), partitions)]
    state, spec = table.get(b"J" + pattern.encode()), table.get(b"S" + pattern.encode())
    assert state is not None
    assert spec is not None
    order = QueueOrder("default", QueueRules())
    row = CODEC.decode(state)
    assert isinstance(row, JobState)
    place = order.ready_job(row)
    old, old_due = pattern.encode(), _varint(DUE_MS)
    rows: dict[int, list[tuple[bytes, bytes | None]]] = {each: [] for each in scheduler.tables}
    entries: dict[int, list[tuple[bytes, bytes | None]]] = {each: [] for each in scheduler.tables}
    counts = Counter(dict.fromkeys(scheduler.tables, 0))
    began = perf_counter()
    for number in range(1, pending + 1):
        job_id = _id(number, "old")
        due_ms = DUE_MS + (number * 7_919) % (spread_ms + 1)
        key, due = job_id.encode(), _varint(due_ms)
        home = partition_for(key, partitions)
        rows[home].append((b"S" + key, spec.replace(old, key).replace(old_due, due)))
        rows[home].append((b"J" + key, state.replace(old, key).replace(old_due, due)))
        job = place._replace(key=(place.key[0], due_ms), job_id=job_id, at_ms=due_ms)
        entries[home].append((waiting_key(job), encode_waiting(("default", order.tag, job))))
        counts[home] += 1
        if number % FILL_ROWS == 0 or number == pending:
            for each, mine in rows.items():
                told = [*entries[each], (COUNTS_KEY, encode_counts((counts[each], 0, 0)))]
                scheduler.tables[each].write(mine, number, NOW_MS, told)
                mine.clear()
                entries[each].clear()
        if number % 1_000_000 == 0:
            print(f"{number:>12,} filled in, {perf_counter() - began:.0f} s", flush=True)
    scheduler.settle()
    scheduler.store.close()


def _id(number: int, kind: str) -> str:
    return f"01k{number * 2_654_435_761 % (1 << 40):015x}-{kind}{number:08d}"


def _varint(value: int) -> bytes:
    """As Avro writes a positive integer: seven bits to a byte, the lowest first, a mark on all but the last."""
    rest = value << 1
    groups = [rest >> shift & 127 for shift in range(0, rest.bit_length(), 7)]
    return bytes([*(group | 128 for group in groups[:-1]), groups[-1]])
