"""What millions of pending jobs cost a scheduler, without Kafka: memory, the rate of submits, a new start, a herd.

    python benchmarks/pending.py [--pending 10000000] [--submits 100000] [--partitions 4] [--due-at-once] [--set-back]
        [--json FILE]

Submits in bytes go through the real program into RocksDB, as a scheduler process does it between reading and writing;
what would go to the producer is dropped. The tables are filled with rows of so many pending jobs, opened as by a new
start, and `--submits` more follow; at last as many with nothing pending, to compare with. Printed: microseconds of CPU
per submit, resident memory, seconds to open. With `--due-at-once` all that was filled in then falls due at one instant:
how long until the first offer, until a CRITICAL job that is submitted in the middle is offered, and how fast the rest
drains. With `--set-back` the wall clock is set back by an hour first, so that each of them is looked at: how long that
takes, and how long the longest turn of the loop meanwhile. `--json` writes the figures down, too, for
`benchmarks/plots.py`.
"""

import argparse
import gc
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice
from pathlib import Path
from time import perf_counter, process_time, thread_time
from typing import Any

from scheduler import Message, report

from mainspring.processors.core import Now, QueueOrder, QueueRules, Rules
from mainspring.processors.core.index.entries import COUNTS_KEY, encode_counts, waiting_key
from mainspring.processors.core.index.orders import encode_waiting
from mainspring.processors.core.ports import never
from mainspring.processors.engine.program import Position
from mainspring.processors.engine.tables.rocks import RocksTables
from mainspring.processors.scheduler.partition import SchedulerPartition
from mainspring.processors.scheduler.program import SchedulerProgram
from mainspring.schemas import (
    AttemptClaimed,
    AttemptSucceeded,
    Codec,
    JobSpec,
    JobState,
    Priority,
    StartConfirmed,
    SubmitJob,
    WorkOffered,
)
from mainspring.topics import Topology, partition_for

NOW_MS = 1_796_047_454_123
DUE_MS = NOW_MS + 86_400_000
CODEC = Codec.embedded()
CACHED_ROWS, WINDOW_JOBS = 100_000, 40_000
"""As a scheduler has them that is told nothing else."""
BATCH = 2_000
FILL_ROWS = 20_000
HERD_STEP_MS = 500
GOAL_RESIDENT_MIB, GOAL_SHARE_PCT = 400.0, 80.0
Input = tuple[bytes, bytes, int]


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


def answers(sent: Sequence[tuple[str, bytes]], partitions: int, now_ms: int) -> tuple[list[Input], list[str]]:
    """What a worker with room for all says, and the jobs that were offered."""
    who: dict[str, Any] = {"worker_id": "w", "incarnation": "0123456789abcdef" * 2, "reported_at_ms": now_ms}
    reports: list[Input] = []
    offered: list[str] = []
    for _, value in sent:
        record = CODEC.decode(value)
        if isinstance(record, WorkOffered):
            offered.append(record.job_id)
            answer = AttemptClaimed(job_id=record.job_id, attempt=record.attempt, free_slot=True, **who)
            reports.append(report(answer, partitions))
        elif isinstance(record, StartConfirmed):
            for start in record.starts:
                done = AttemptSucceeded(job_id=start.job_id, attempt=start.attempt, started_at_ms=now_ms, **who)
                reports.append(report(done, partitions))
    return reports, offered


def resident_mib() -> float:
    """Memory of this process."""
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096 / (1 << 20)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pending", type=int, default=10_000_000)
    parser.add_argument("--submits", type=int, default=100_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--due-at-once", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--set-back", action="store_true")
    given = parser.parse_args()
    load_before = os.getloadavg()[0]
    home = Path(tempfile.mkdtemp(prefix="mainspring-pending-"))
    spread_ms = 0 if given.due_at_once else 30 * 86_400_000
    try:
        empty_mib = resident_mib()
        print(f"resident before anything: {empty_mib:.0f} MiB", flush=True)
        fill(home / "state", given.partitions, given.pending, spread_ms)
        gc.collect()
        disk_mib = size_mib(home)
        print(f"{disk_mib:,.0f} MiB on disk", flush=True)
        began = perf_counter()
        scheduler = Scheduler(home / "state", given.partitions, Now(NOW_MS, 0))
        scheduler.transact(scheduler.topology.commands.name, [])
        opened_s, opened_mib = perf_counter() - began, resident_mib()
        waiting = sum(each.core.waiting for each in scheduler.owned)
        print(f"opened with {waiting:,} pending: {opened_s:.2f} s, {opened_mib:.0f} MiB", flush=True)
        us_beside = submit_many(scheduler, given.submits)
        found = {"disk_mib": disk_mib, "empty_mib": empty_mib, "opened_mib": opened_mib, "opened_s": opened_s}
        found["submitted_mib"] = resident_mib()
        if given.set_back:
            set_back(scheduler)
        if given.due_at_once:
            herd(scheduler, given.pending)
        scheduler.store.close()
        del scheduler
        # At last, so that what it leaves in memory is not taken for that of the others.
        scheduler = Scheduler(home / "empty", given.partitions, Now(NOW_MS, 0))
        us_at_zero = submit_many(scheduler, given.submits)
        scheduler.store.close()
        if given.json is not None:
            report_to(given.json, given.pending, found, (us_at_zero, us_beside), load_before)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def report_to(
    path: Path, pending: int, found: Mapping[str, float], us_per_submit: tuple[float, float], load: float
) -> None:
    """Writes the figures down; microseconds per submit are those at zero pending, and beside what is pending."""
    at_zero, beside = us_per_submit
    share_pct = round(100 * at_zero / beside, 1)
    figures = {
        "bench": "pending",
        "jobs": pending,
        **{name: round(value, 2) for name, value in found.items()},
        "cpu_us_per_submit_at_zero": round(at_zero, 1),
        "cpu_us_per_submit": round(beside, 1),
        "goals": [
            _goal("resident memory", round(found["submitted_mib"], 1), "MiB", GOAL_RESIDENT_MIB, at_least=False),
            _goal("submits, of the rate at zero pending", share_pct, "%", GOAL_SHARE_PCT, at_least=True),
        ],
        "layout": {"load_before": round(load, 1)},
        "machine": {"cores": os.cpu_count()},
    }
    path.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def _goal(name: str, value: float, unit: str, goal: float, *, at_least: bool) -> dict[str, Any]:
    met = value >= goal if at_least else value <= goal
    return {"name": name, "value": value, "unit": unit, "goal": goal, "at_least": at_least, "met": met}


def submit_many(scheduler: Scheduler, jobs: int) -> float:
    """Submits jobs for the day after tomorrow; returns the microseconds of CPU that each took in the loop."""
    partitions, topic = scheduler.topology.partitions, scheduler.topology.commands.name
    source = submits(partitions, DUE_MS + 86_400_000, 86_400_000)
    used = behind = 0.0
    for _ in range(0, jobs, BATCH):
        batch = list(islice(source, BATCH))
        all_threads, mine = process_time(), thread_time()
        scheduler.later(20)
        scheduler.transact(topic, batch)
        used += thread_time() - mine
        behind += process_time() - all_threads
    behind -= used
    waiting = sum(each.core.waiting for each in scheduler.owned)
    print(
        f"{jobs:,} submits, now {waiting:,} pending: {used / jobs * 1e6:.1f} µs of CPU each, "
        f"and {behind / jobs * 1e6:.1f} for compactions; "
        f"{resident_mib():.0f} MiB resident",
        flush=True,
    )
    return used / jobs * 1e6


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
            print(f"{number:>12,} filled in, {perf_counter() - began:.0f} s, {resident_mib():.0f} MiB", flush=True)
    scheduler.store.close()


def _id(number: int, kind: str) -> str:
    return f"01k{number * 2_654_435_761 % (1 << 40):015x}-{kind}{number:08d}"


def _varint(value: int) -> bytes:
    """As Avro writes a positive integer: seven bits to a byte, the lowest first, a mark on all but the last."""
    rest = value << 1
    groups = [rest >> shift & 127 for shift in range(0, rest.bit_length(), 7)]
    return bytes([*(group | 128 for group in groups[:-1]), groups[-1]])


def herd(scheduler: Scheduler, jobs: int) -> None:
    """Lets all fall due, answers as a worker does, and has a CRITICAL job among them."""
    partitions, topology = scheduler.topology.partitions, scheduler.topology
    scheduler.now = Now(DUE_MS, scheduler.now.mono_ms + 1)
    began, cpu = perf_counter(), process_time()
    ended, first_s, urgent_s, urgent_at = 0, None, None, None
    sent = scheduler.transact(topology.commands.name, [])
    top = resident_mib()
    while ended < jobs:
        # About as long as so many jobs take with Kafka: leases of what has ended are forgotten when they would run out.
        scheduler.later(HERD_STEP_MS)
        reports, offered = answers(sent, partitions, scheduler.now.wall_ms)
        first_s = perf_counter() - began if first_s is None and offered else first_s
        if urgent_at is not None and urgent_s is None and "urgent" in offered:
            urgent_s = perf_counter() - urgent_at
        ended += len(offered)
        sent = scheduler.transact(topology.attempts.name, reports)
        if urgent_at is None and ended >= jobs // 2:
            urgent_at = perf_counter()
            sent += scheduler.transact(
                topology.commands.name, [submit("urgent", partitions, priority=Priority.CRITICAL)]
            )
        top = max(top, resident_mib())
    took_s, used = perf_counter() - began, process_time() - cpu
    assert first_s is not None
    assert urgent_s is not None
    print(f"first offer {first_s * 1e3:.0f} ms after the instant")
    print(f"CRITICAL offered {urgent_s * 1e3:.0f} ms after its submit")
    print(f"{ended / took_s:,.0f} jobs/s, {used / ended * 1e6:.0f} µs of CPU per job (with a stand-in for the worker)")
    print(f"at most {top:.0f} MiB resident")


def set_back(scheduler: Scheduler) -> None:
    """Sets the wall clock back by an hour, and takes turns until every job has been looked at."""
    scheduler.now = Now(scheduler.now.wall_ms - 3_600_000, scheduler.now.mono_ms + 1)
    began, cpu, turns = perf_counter(), process_time(), []
    is_busy = True
    while is_busy:
        turn = perf_counter()
        scheduler.later(1)
        scheduler.transact(scheduler.topology.commands.name, [])
        turns.append(perf_counter() - turn)
        is_busy = any(each.core.clock_ms > scheduler.now.wall_ms for each in scheduler.owned)
    took_s, used_s = perf_counter() - began, process_time() - cpu
    print(
        f"set back by an hour: all looked at in {took_s:.1f} s ({used_s:.1f} s of CPU) and "
        f"{len(turns):,} turns, the longest {max(turns) * 1e3:.0f} ms, half of them up to "
        f"{sorted(turns)[len(turns) // 2] * 1e3:.0f} ms; {resident_mib():.0f} MiB resident",
        flush=True,
    )


def size_mib(path: Path) -> float:
    """Bytes on disk."""
    return sum(each.stat().st_size for each in path.rglob("*") if each.is_file()) / (1 << 20)


if __name__ == "__main__":
    main()
