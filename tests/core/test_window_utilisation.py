"""A model of workers, slots and offers around the real windows: slots stay busy, and nobody is shut out.

Ten workers hold offers for 300 ms when they are full and then decline; messages take 15 ms; twelve partitions dispatch
every 10 ms against their own windows. Time is virtual and the random numbers are seeded.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random

import pytest

from mainspring.processors.core import Rules
from mainspring.processors.core.window import DispatchWindow

HOP_MS, TICK_MS, HOLD_MS = 15, 10, 300


@dataclass
class Worker:
    """A worker with slots, and the offers it holds (partition, still held)."""

    free: int
    load: int = 0
    held: list[list[int]] = field(default_factory=list)


class Cluster:
    """Workers and partitions under an endless backlog in the first `busy` partitions."""

    def __init__(self, *, busy: int, service_ms: float, workers: int = 10, slots: int = 10) -> None:
        self.random = Random(1)
        self.now_ms = 0
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.tie = count()
        self.service_ms = service_ms
        self.slots = slots
        self.workers = [Worker(slots) for _ in range(workers)]
        self.windows = [DispatchWindow(Rules()) for _ in range(busy)]
        self.starts = [0] * busy
        self.busy_ms = 0.0
        self.capacity_ms = 0.0
        self.measure_from_ms = 0
        self.at(0, self.dispatch)

    def at(self, after_ms: float, act: Callable[[], None]) -> None:
        heappush(self.events, (self.now_ms + int(after_ms), next(self.tie), act))

    def run(self, until_ms: int) -> None:
        while self.events[0][0] <= until_ms:
            at_ms, _, act = heappop(self.events)
            if at_ms > self.measure_from_ms:
                step = at_ms - max(self.now_ms, self.measure_from_ms)
                total = sum(self.slots for _ in self.workers)
                self.busy_ms += step * (total - sum(worker.free for worker in self.workers))
                self.capacity_ms += step * total
            self.now_ms = at_ms
            act()

    def dispatch(self) -> None:
        for partition, window in enumerate(self.windows):
            allowed = window.allowance(self.now_ms)
            for _ in range(allowed):
                worker = min(self.workers, key=lambda each: (each.load, self.random.random()))
                worker.load += 1
                window.offered += 1
                self.at(HOP_MS, lambda worker=worker, partition=partition: self.arrive(worker, partition))  # type: ignore[misc] # bound now
            window.settle(allowed, self.now_ms, more_waiting=True, stopped_by_window=True)
        self.at(TICK_MS, self.dispatch)

    def arrive(self, worker: Worker, partition: int) -> None:
        if worker.free:
            self.start(worker, partition, free_slot=True)
            return
        held = [partition]
        worker.held.append(held)
        self.at(HOLD_MS, lambda: self.give_up(worker, held))

    def give_up(self, worker: Worker, held: list[int]) -> None:
        if any(each is held for each in worker.held):
            worker.held = [each for each in worker.held if each is not held]
            worker.load -= 1
            self.at(HOP_MS, lambda: self.declined(held[0]))

    def declined(self, partition: int) -> None:
        self.windows[partition].offered -= 1
        self.windows[partition].declined_for_slots(self.now_ms)

    def start(self, worker: Worker, partition: int, *, free_slot: bool) -> None:
        worker.free -= 1
        self.starts[partition] += 1
        self.at(HOP_MS, lambda: self.claimed(partition, free_slot=free_slot))
        runs_ms = 2 * HOP_MS + self.service_ms * self.random.uniform(0.5, 1.5)
        self.at(runs_ms, lambda: self.end(worker, partition))

    def claimed(self, partition: int, *, free_slot: bool) -> None:
        window = self.windows[partition]
        window.offered -= 1
        window.running += 1
        if free_slot:
            window.claimed_with_room(self.now_ms, 0)

    def end(self, worker: Worker, partition: int) -> None:
        worker.free += 1
        worker.load -= 1
        if worker.held:
            self.start(worker, worker.held.pop(0)[0], free_slot=False)
        self.at(HOP_MS, lambda: self.ended(partition))

    def ended(self, partition: int) -> None:
        self.windows[partition].running -= 1
        self.windows[partition].attempt_ended()

    def utilisation(self, until_ms: int) -> float:
        """Busy share of all slots in the last two thirds."""
        self.measure_from_ms = until_ms // 3
        self.run(until_ms)
        return self.busy_ms / self.capacity_ms


@pytest.mark.parametrize("busy", [1, 12])
@pytest.mark.parametrize(
    ("service_ms", "until_ms", "at_least"), [(50, 15_000, 0.9), (1000, 30_000, 0.95), (30_000, 200_000, 0.95)]
)
def test_slots_stay_busy_under_a_backlog(busy: int, service_ms: float, until_ms: int, at_least: float) -> None:
    assert Cluster(busy=busy, service_ms=service_ms).utilisation(until_ms) >= at_least


def test_partitions_share_the_slots() -> None:
    cluster = Cluster(busy=12, service_ms=50)
    cluster.run(15_000)
    assert min(cluster.starts) > max(cluster.starts) / 3


@pytest.mark.parametrize("busy", [1, 12])
def test_new_workers_are_found_within_two_seconds_while_all_slots_hold_long_jobs(busy: int) -> None:
    cluster = Cluster(busy=busy, service_ms=600_000)
    cluster.run(30_000)
    assert sum(worker.free for worker in cluster.workers) == 0
    cluster.workers += [Worker(10) for _ in range(10)]
    cluster.run(32_000)
    assert sum(worker.free for worker in cluster.workers) == 0
