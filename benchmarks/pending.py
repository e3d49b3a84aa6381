"""What millions of pending jobs cost a scheduler, without Kafka: memory, the rate of submits, a new start, a herd.

    python benchmarks/pending.py [--pending 10000000] [--submits 100000] [--rounds 5] [--partitions 4]
        [--due-at-once] [--set-back] [--json FILE]

Submits in bytes go through the real program into RocksDB, as a scheduler process does it between reading and writing;
what would go to the producer is dropped. The tables are filled with rows of so many pending jobs and left alone until
the compactions that this asks for are done. They are opened as by a new start, and `--submits` more follow, in turn
with as many into empty tables, `--rounds` times; what a round costs is counted until its compactions are done, too.
Printed: microseconds of CPU per submit, of the loop and of all threads, resident memory, seconds to open. With
`--due-at-once` all that was filled in then falls due at one instant: how long until the first offer, until a CRITICAL
job that is submitted in the middle is offered, and how fast the rest drains. With `--set-back` the wall clock is set
back by an hour first, so that each of them is looked at: how long that takes, and how long the longest turn of the loop
meanwhile. `--json` writes the figures down, too, for `benchmarks/plots.py`.
"""

import argparse
import gc
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time, thread_time
from typing import Any, NamedTuple

from backlog import CODEC, DUE_MS, NOW_MS, Input, Scheduler, fill, submit
from scheduler import report

from mainspring.processors.core import Now
from mainspring.schemas import AttemptClaimed, AttemptSucceeded, Priority, StartConfirmed, WorkOffered

BATCH = 2_000
HERD_STEP_MS = 500
GOAL_RESIDENT_MIB, GOAL_SHARE_PCT = 400.0, 80.0


class Cost(NamedTuple):
    """What submits took: CPU of the loop's thread, and of all threads until what they had started was done."""

    submits: int
    loop_s: float
    all_s: float

    def plus(self, other: "Cost") -> "Cost":
        """Both together."""
        return Cost(self.submits + other.submits, self.loop_s + other.loop_s, self.all_s + other.all_s)

    @property
    def loop_us(self) -> float:
        """Microseconds of the loop per submit."""
        return self.loop_s / self.submits * 1e6

    @property
    def all_us(self) -> float:
        """Microseconds of all threads per submit."""
        return self.all_s / self.submits * 1e6


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
    parser.add_argument("--rounds", type=int, default=5)
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
        found = {"disk_mib": disk_mib, "empty_mib": empty_mib, "opened_mib": opened_mib, "opened_s": opened_s}
        beside = submit_many(scheduler, given.submits)
        found["submitted_mib"] = resident_mib()
        at_zero = submit_to_none(home / "empty", given.partitions, given.submits)
        for _ in range(1, given.rounds):
            beside = beside.plus(submit_many(scheduler, given.submits))
            at_zero = at_zero.plus(submit_to_none(home / "empty", given.partitions, given.submits))
        print(
            f"at zero pending / beside {given.pending:,}: loop {at_zero.loop_us:.1f} / {beside.loop_us:.1f} µs, "
            f"all threads {at_zero.all_us:.1f} / {beside.all_us:.1f} µs"
        )
        if given.set_back:
            set_back(scheduler)
        if given.due_at_once:
            herd(scheduler, given.pending)
        scheduler.store.close()
        if given.json is not None:
            report_to(given.json, given.pending, found, (at_zero, beside), load_before)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def report_to(path: Path, pending: int, found: Mapping[str, float], costs: tuple[Cost, Cost], load: float) -> None:
    """Writes the figures down; the costs are those of submits at zero pending, and beside what is pending."""
    at_zero, beside = costs
    loop_pct = round(100 * at_zero.loop_us / beside.loop_us, 1)
    all_pct = round(100 * at_zero.all_us / beside.all_us, 1)
    figures = {
        "bench": "pending",
        "jobs": pending,
        **{name: round(value, 2) for name, value in found.items()},
        "cpu_us_per_submit_at_zero": {
            "loop": round(at_zero.loop_us, 1),
            "all": round(at_zero.all_us, 1),
        },
        "cpu_us_per_submit": {"loop": round(beside.loop_us, 1), "all": round(beside.all_us, 1)},
        "goals": [
            _goal("resident memory", round(found["submitted_mib"], 1), "MiB", GOAL_RESIDENT_MIB, at_least=False),
            _goal(
                "submits by the loop's CPU, of the rate at zero pending", loop_pct, "%", GOAL_SHARE_PCT, at_least=True
            ),
            _goal("– by the CPU of all threads, compactions too", all_pct, "%", GOAL_SHARE_PCT, at_least=True),
        ],
        "layout": {"load_before": round(load, 1), "submits": at_zero.submits},
        "machine": {"cores": os.cpu_count()},
    }
    path.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def _goal(name: str, value: float, unit: str, goal: float, *, at_least: bool) -> dict[str, Any]:
    met = value >= goal if at_least else value <= goal
    return {"name": name, "value": value, "unit": unit, "goal": goal, "at_least": at_least, "met": met}


def submit_to_none(path: Path, partitions: int, jobs: int) -> Cost:
    """What as many submits cost in tables that are new."""
    scheduler = Scheduler(path, partitions, Now(NOW_MS, 0))
    try:
        return submit_many(scheduler, jobs)
    finally:
        scheduler.store.close()
        shutil.rmtree(path)


def submit_many(scheduler: Scheduler, jobs: int) -> Cost:
    """Submits jobs for the day after tomorrow."""
    topic = scheduler.topology.commands.name
    all_threads, loop = process_time(), 0.0
    for _ in range(0, jobs, BATCH):
        batch = list(islice(scheduler.source, BATCH))
        mine = thread_time()
        scheduler.later(20)
        scheduler.transact(topic, batch)
        loop += thread_time() - mine
    scheduler.settle()
    waiting = sum(each.core.waiting for each in scheduler.owned)
    cost = Cost(jobs, loop, process_time() - all_threads)
    print(
        f"{jobs:,} submits, now {waiting:,} pending: {cost.loop_us:.1f} µs of CPU each in the loop, "
        f"{cost.all_us:.1f} in all threads; {resident_mib():.0f} MiB resident",
        flush=True,
    )
    return cost


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
