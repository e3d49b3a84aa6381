"""What the scheduler does for a job between reading and writing, per job, without Kafka.

    python benchmarks/scheduler.py [--jobs 40000] [--partitions 4] [--batch 2000] [--produce] [--rocksdb] [--at-once]

Real commands and reports in bytes go through the real program: decode, decide, evolve, offers, encode, rows, local
table. A stand-in for the producer collects what is sent, and a stand-in for the worker answers it. `--produce` hands
every record to a real producer that reaches no broker, to see what that costs as well. `--at-once`
submits all jobs before the first report comes, so that most of them wait on disk. CPU microseconds per job.
"""

import argparse
import gc
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

from confluent_kafka import Producer

from mainspring.client.commands import CommandMaker, Submission
from mainspring.client.config import ClientConfig
from mainspring.jobs.options import JobOptions
from mainspring.processors.core import Now, Rules
from mainspring.processors.core.ports import never
from mainspring.processors.engine.program import Position
from mainspring.processors.engine.tables import MemoryTables, Table
from mainspring.processors.scheduler.partition import SchedulerPartition
from mainspring.processors.scheduler.program import SchedulerProgram
from mainspring.schemas import AttemptClaimed, AttemptSucceeded, Codec, StartConfirmed, WorkOffered
from mainspring.settings import Settings
from mainspring.topics import Topology, partition_for

NOW_MS = 1_796_047_454_123
CODEC = Codec.embedded()


class Message:
    """A record as the client library gives it."""

    __slots__ = ("_key", "_offset", "_partition", "_topic", "_value")

    def __init__(self, topic: str, partition: int, offset: int, key: bytes, value: bytes) -> None:
        self._topic, self._partition, self._offset, self._key, self._value = topic, partition, offset, key, value

    def topic(self) -> str:
        """As confluent-kafka has it."""
        return self._topic

    def partition(self) -> int:
        """As confluent-kafka has it."""
        return self._partition

    def offset(self) -> int:
        """As confluent-kafka has it."""
        return self._offset

    def key(self) -> bytes:
        """As confluent-kafka has it."""
        return self._key

    def value(self) -> bytes:
        """As confluent-kafka has it."""
        return self._value


class Costs:
    """CPU time by stage."""

    def __init__(self) -> None:
        self.used: Counter[str] = Counter()
        self._at = process_time()

    def begin(self) -> None:
        """What follows counts from here."""
        self._at = process_time()

    def end(self, stage: str) -> None:
        """What came since belongs to this stage."""
        now = process_time()
        self.used[stage] += int((now - self._at) * 1e9)
        self._at = process_time()


class Bench:
    """The program of one scheduler, and the world around it."""

    def __init__(self, partitions: int, tables: Any, *, produce: bool) -> None:
        self.topology = Topology(partitions=partitions, work_partitions=partitions)
        self.program = SchedulerProgram(
            topology=self.topology,
            codec=CODEC,
            rules=Rules(partitions=partitions, window_start=4_096),
            recorded_by="bench",
            cache_rows=100_000,
            window_jobs=40_000,
        )
        self.now = Now(NOW_MS, 0)
        self.tables: dict[int, Table] = {number: tables.open(number, "bench") for number in range(partitions)}
        self.owned = [self.program.open(number, table, 0, self.now) for number, table in self.tables.items()]
        self.costs = Costs()
        self.sent: list[tuple[str, bytes, bytes, int]] = []
        self.offsets: Counter[tuple[str, int]] = Counter()
        queue = {"queue.buffering.max.messages": 1_000_000, "queue.buffering.max.kbytes": 1_000_000, "log_level": 0}
        self.producer = Producer({"bootstrap.servers": "127.0.0.1:1", **queue}) if produce else None
        self.counts: Counter[str] = Counter()

    def transact(self, topic: str, records: list[tuple[bytes, bytes, int]]) -> list[tuple[str, bytes, bytes, int]]:
        """One transaction over these inputs of one topic; returns what it sends."""
        self.now = Now(self.now.wall_ms + 20, self.now.mono_ms + 20)
        by_partition: defaultdict[int, list[Any]] = defaultdict(list)
        for key, value, number in records:
            offset = self.offsets[topic, number]
            self.offsets[topic, number] = offset + 1
            by_partition[number].append(Message(topic, number, offset, key, value))
        costs, now = self.costs, self.now
        costs.begin()
        for number, messages in by_partition.items():
            self.owned[number].apply(topic, messages, now)
        costs.end(f"{topic.rpartition('.')[2]}: decode, decide, evolve")
        for each in self.owned:
            each.tick(now, never)
        costs.end("tick, dispatch")
        decided = [each for each in self.owned if each.has_decided()]
        rows = {each.number: self._rows(each) for each in decided}
        index_rows = {each.number: each.index_changes() for each in decided}
        costs.end("encode rows")
        self.sent = []
        send = self._produce if self.producer is not None else self._collect
        self.program.emit(decided, 1, send, now)
        costs.end("encode and send events, offers, signals")
        sent = self.sent
        for each in decided:
            for key, row in rows[each.number]:
                send(self.program.changelog, row, key, each.number)
        costs.end("send rows")
        self.sent = []
        for each in decided:
            self.tables[each.number].write(rows[each.number], 0, now.wall_ms, index_rows[each.number])
            each.committed()
        costs.end("local table")
        if self.producer is not None:
            self.producer.purge()
            self.producer.poll(0)
        for name, *_ in sent:
            self.counts[name] += 1
        return sent

    def _rows(self, each: SchedulerPartition) -> list[tuple[bytes, bytes | None]]:
        offsets = dict.fromkeys(self.program.inputs, 0)
        position = Position(offsets=offsets, counter=each.counter, txn_id=1, owner="bench", written_at_ms=0)
        return [*each.changes(), self.program.encode_position(position)]

    def _collect(self, topic: str, value: bytes | None, key: bytes | None, number: int) -> None:
        self.sent.append((topic, value or b"", key or b"", number))

    def _produce(self, topic: str, value: bytes | None, key: bytes | None, number: int) -> None:
        self.sent.append((topic, value or b"", key or b"", number))
        assert self.producer is not None
        self.producer.produce(topic, value, key, number)


def commands(jobs: int, partitions: int) -> Iterator[tuple[bytes, bytes, int]]:
    """Submits as a client sends them: key, value, partition."""
    maker = CommandMaker(ClientConfig.of(Settings(), actor="bench"))
    terms = JobOptions()
    for _ in range(jobs):
        envelope = maker.envelope(maker.submit(Submission("noop", {}), terms, ""))
        yield envelope.key, envelope.value, partition_for(envelope.key, partitions)


def answer(sent: list[tuple[str, bytes, bytes, int]], partitions: int) -> list[tuple[bytes, bytes, int]]:
    """What a worker says to offers and to confirmed starts."""
    who: dict[str, Any] = {
        "worker_id": "vm-12345-abcdef",
        "incarnation": "0123456789abcdef" * 2,
        "reported_at_ms": NOW_MS,
    }
    reports: list[tuple[bytes, bytes, int]] = []
    for topic, value, _, _ in sent:
        if ".work." not in topic and not topic.endswith(".signals"):
            continue
        record = CODEC.decode(value)
        if isinstance(record, WorkOffered):
            claim = AttemptClaimed(job_id=record.job_id, attempt=record.attempt, free_slot=True, **who)
            reports.append(report(claim, partitions))
        elif isinstance(record, StartConfirmed):
            for start in record.starts:
                done = AttemptSucceeded(job_id=start.job_id, attempt=start.attempt, started_at_ms=NOW_MS, **who)
                reports.append(report(done, partitions))
    return reports


def report(record: Any, partitions: int) -> tuple[bytes, bytes, int]:
    """What a worker writes to `attempts`: key, value, partition."""
    key = record.job_id.encode()
    return key, CODEC.encode(record), partition_for(key, partitions)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=40_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--batch", type=int, default=2_000)
    parser.add_argument("--produce", action="store_true")
    parser.add_argument("--rocksdb", action="store_true")
    parser.add_argument("--at-once", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        tables: Any = MemoryTables()
        if given.rocksdb:
            from mainspring.processors.engine.tables.rocks import RocksTables

            tables = RocksTables(Path(home) / "state")
        run(Bench(given.partitions, tables, produce=given.produce), given.jobs, given.batch, at_once=given.at_once)
        tables.close()


def run(bench: Bench, jobs: int, batch: int, *, at_once: bool) -> None:
    """Takes the jobs through their whole life: a batch after the other, or all submits first."""
    partitions, topology = bench.topology.partitions, bench.topology
    waiting = list(commands(jobs, partitions))
    gc.collect()
    gc.freeze()
    gc.disable()
    unanswered: list[tuple[str, bytes, bytes, int]] = []
    for first in range(0, jobs, batch):
        unanswered += bench.transact(topology.commands.name, waiting[first : first + batch])
        if at_once and first + batch < jobs:
            continue
        while reports := answer(unanswered, partitions):
            unanswered = []
            for of_batch in range(0, len(reports), batch):
                unanswered += bench.transact(topology.attempts.name, reports[of_batch : of_batch + batch])
    total = sum(bench.costs.used.values())
    for stage, used_ns in bench.costs.used.items():
        print(f"{stage:<42}{used_ns / 1000 / jobs:>7.2f} µs")
    print(f"{'all':<42}{total / 1000 / jobs:>7.2f} µs")
    print({name.partition(".")[2]: round(count / jobs, 2) for name, count in bench.counts.items()})


if __name__ == "__main__":
    main()
