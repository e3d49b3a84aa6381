"""What the core costs: submit, offer, claim, success, and the timers, per job, on rows in a dictionary.

    python benchmarks/core.py [jobs]

Prints CPU microseconds per job, or per item, so that the figures hold on a machine that does other things as well.
"""

import sys
from collections.abc import Callable
from time import process_time

from mainspring.processors.core import (
    AgingPriorityStrategy,
    EarliestDeadlineFirstStrategy,
    FIFOStrategy,
    Now,
    PartitionCore,
    PriorityStrategy,
    QueueRules,
    Rules,
    SchedulingStrategy,
)
from mainspring.processors.core.memory import RowsInMemory
from mainspring.schemas.attempts import AttemptClaimed, AttemptHeartbeat, AttemptSucceeded
from mainspring.schemas.commands import SubmitJob
from mainspring.schemas.common import Cause, CauseSource, HeldAttempt, Priority
from mainspring.schemas.job import JobSpec

BATCH = 1_000
START = Now(1_767_268_800_000, 0)


class Bench:
    """One partition that is fed batch by batch; each phase keeps its own CPU time."""

    def __init__(self, strategy: SchedulingStrategy, jobs: int) -> None:
        self.rows = RowsInMemory()
        rules = Rules(
            queues={"default": QueueRules(strategy=strategy)}, window_start=4096, history_max_count=12 * (jobs + 1)
        )
        self.rules = rules
        self.core = PartitionCore(0, rules, self.rows, 1)
        self.core.load([], 0, START)
        self.now = START
        self.spent: dict[str, float] = {}

    def phase(self, name: str, act: Callable[[], None]) -> None:
        """Runs a phase and adds its CPU time."""
        began = process_time()
        act()
        self.spent[name] = self.spent.get(name, 0.0) + process_time() - began

    def lives(self, jobs: int) -> None:
        """Takes this many jobs from submit to success."""
        cause = Cause(source=CauseSource.COMMANDS, partition=0, offset=1)
        core, now = self.core, self.now
        for first in range(0, jobs, BATCH):
            ids = [f"0193a5b2-7c1e-7d2a-9a1b-{number:012d}" for number in range(first, min(first + BATCH, jobs))]
            commands = [
                SubmitJob(
                    command_id=job_id,
                    actor="bench",
                    requested_at_ms=now.wall_ms,
                    spec=JobSpec(job_id=job_id, name="noop", priority=Priority(index % 4), payload=b"{}"),
                )
                for index, job_id in enumerate(ids)
            ]
            claims = [
                AttemptClaimed(
                    job_id=job_id, attempt=1, worker_id="w", incarnation="w#1", reported_at_ms=1, free_slot=True
                )
                for job_id in ids
            ]
            successes = [
                AttemptSucceeded(
                    job_id=job_id, attempt=1, worker_id="w", incarnation="w#1", reported_at_ms=1, started_at_ms=1
                )
                for job_id in ids
            ]

            def feed(records: list[SubmitJob] | list[AttemptClaimed] | list[AttemptSucceeded]) -> Callable[[], None]:
                def act() -> None:
                    for record in records:
                        core.apply(record, cause, now)
                    core.drain()

                return act

            def offer() -> None:
                core.tick(now)
                core.dispatch(now, BATCH)
                core.wake_at()
                core.drain()

            self.phase("submit", feed(commands))
            self.phase("offer", offer)
            self.phase("claim", feed(claims))
            self.phase("success", feed(successes))


def report(label: str, seconds: float, count: int) -> None:
    """Prints microseconds per item."""
    print(f"{label:<44} {1e6 * seconds / count:8.2f} µs")


def timers(jobs: int) -> None:
    """Many delayed jobs: load, falling due, leases."""
    bench = Bench(PriorityStrategy(), jobs)
    cause = Cause(source=CauseSource.COMMANDS, partition=0, offset=1)
    for number in range(jobs):
        spec = JobSpec(job_id=f"job-{number}", name="noop", run_at_ms=START.wall_ms + 1000)
        command = SubmitJob(command_id="c", actor="bench", requested_at_ms=START.wall_ms, spec=spec)
        bench.core.apply(command, cause, START)
    bench.core.drain()
    loaded = PartitionCore(0, bench.rules, bench.rows, 1)
    began = process_time()
    loaded.load(bench.rows.states.values(), jobs, START)
    report("load, per waiting job", process_time() - began, jobs)
    due = Now(START.wall_ms + 1000, 1000)
    began = process_time()
    wake = loaded.wake_at()
    while wake is not None and wake.wall_ms is not None and wake.wall_ms <= due.wall_ms:
        loaded.tick(due)
        wake = loaded.wake_at()
    report("fall due at one instant, per job", process_time() - began, jobs)
    held = []
    for _ in range(2):
        loaded.dispatch(due, 2_000)
        for offer in loaded.drain().offers:
            job_id = offer.record.job_id
            claim = AttemptClaimed(
                job_id=job_id, attempt=1, worker_id="w", incarnation="w#1", reported_at_ms=1, free_slot=True
            )
            loaded.apply(claim, cause, due)
            held.append(HeldAttempt(job_id=job_id, attempt=1))
    heartbeat = AttemptHeartbeat(worker_id="w", incarnation="w#1", reported_at_ms=1, attempts=tuple(held))
    began = process_time()
    for _ in range(100):
        loaded.apply(heartbeat, cause, due)
    report(f"heartbeat of {len(held)} attempts, per attempt", process_time() - began, 100 * len(held))


def main() -> None:
    """Prints all figures."""
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    strategies = (FIFOStrategy(), PriorityStrategy(), AgingPriorityStrategy(0.1), EarliestDeadlineFirstStrategy())
    for strategy in strategies:
        bench = Bench(strategy, jobs)
        bench.lives(jobs)
        name = type(strategy).__name__
        for phase, seconds in bench.spent.items():
            report(f"{name}: {phase}", seconds, jobs)
        report(f"{name}: all four", sum(bench.spent.values()), jobs)
    timers(min(jobs, 100_000))


if __name__ == "__main__":
    main()
