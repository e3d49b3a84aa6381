"""On which partition of its work topic an offer goes: chosen, not hashed.

A partition of a work topic is read by one worker. Where offers lie unanswered the worker is slow, full or gone, so
the next ones go elsewhere. A partition that an offer came back from unanswered is silent for a while: else a job goes
from one partition of a dead worker to the next, each time for twice as long, until the group has noticed. So are all
partitions of a worker whose lease has run out: what ran there would else be offered to it again.

Every partition that a transaction touches costs the broker time, so within one transaction a run of offers of one lane
goes to the same partition, up to `run`.
"""

from dataclasses import dataclass, field

from mainspring.schemas import Priority
from mainspring.topics import Topology

__all__ = ["SILENT_MS", "Placed", "WorkPlacement"]

_RUN = 64
SILENT_MS = 10_000
"""How long a silent partition is passed over: after about this time the group has given it to a live worker."""


@dataclass(slots=True)
class _Lane:
    topic: str
    unanswered: list[int]
    silent_until_ms: list[int]
    readers: list[str]
    """The incarnation of the worker that answered last."""
    current: int = 0
    left: int = 0

    def least(self, avoid: int | None, now_ms: int) -> int:
        """The partition with the fewest unanswered offers, silent ones last; among equals all get a turn."""
        count = len(self.unanswered)
        in_turn = [(self.current + step) % count for step in range(1, count + 1)]
        allowed = [partition for partition in in_turn if partition != avoid] or in_turn
        return min(allowed, key=lambda each: (self.silent_until_ms[each] > now_ms, self.unanswered[each]))


class WorkPlacement:
    """Chooses work partitions for all partitions of a process, by what is unanswered on each."""

    def __init__(self, topology: Topology, run: int = _RUN) -> None:
        self._run = run
        self._now_ms = 0
        self._lanes: dict[tuple[str, Priority], _Lane] = {}
        for queue in topology.queues:
            for lane in Priority:
                topic = topology.work(queue, lane)
                zeros = [0] * topic.partitions
                self._lanes[queue, lane] = _Lane(topic.name, zeros, zeros.copy(), [""] * topic.partitions)

    def begin(self, now_ms: int) -> None:
        """A new transaction, at a monotonic time."""
        self._now_ms = now_ms
        for lane in self._lanes.values():
            lane.left = 0

    def choose(
        self, queue: str, priority: Priority, avoid: int | None, placed: "Placed", job_id: str
    ) -> tuple[str, int]:
        """The topic and partition for an offer; not `avoid` where there is another."""
        placed.came_back(job_id, self._now_ms + SILENT_MS)
        lane = self._lanes[queue, priority]
        if lane.left == 0 or avoid == lane.current:
            lane.current = lane.least(avoid, self._now_ms)
            lane.left = self._run
        lane.left -= 1
        placed.put(job_id, lane, lane.current)
        return lane.topic, lane.current

    def gone(self, incarnation: str, now_ms: int) -> None:
        """A worker has let a lease run out: what it read is silent for a while."""
        for lane in self._lanes.values():
            for partition, reader in enumerate(lane.readers):
                if reader == incarnation:
                    lane.silent_until_ms[partition] = now_ms + SILENT_MS


@dataclass(slots=True)
class Placed:
    """Where the unanswered offers of one partition lie."""

    _where: dict[str, tuple[_Lane, int]] = field(default_factory=dict)

    def put(self, job_id: str, lane: _Lane, partition: int) -> None:
        """An offer went out."""
        lane.unanswered[partition] += 1
        self._where[job_id] = (lane, partition)

    def came_back(self, job_id: str, silent_until_ms: int) -> None:
        """The job is offered again: an earlier offer without an answer no longer counts, and tells of silence."""
        where = self._take(job_id)
        if where is not None:
            lane, partition = where
            lane.silent_until_ms[partition] = silent_until_ms

    def answered(self, job_id: str, incarnation: str) -> None:
        """A worker has claimed or declined."""
        where = self._take(job_id)
        if where is not None:
            lane, partition = where
            lane.silent_until_ms[partition] = 0
            lane.readers[partition] = incarnation

    def clear(self) -> None:
        """The partition was given up, or begins again."""
        for job_id in tuple(self._where):
            self._take(job_id)

    def _take(self, job_id: str) -> tuple[_Lane, int] | None:
        where = self._where.pop(job_id, None)
        if where is not None:
            lane, partition = where
            lane.unanswered[partition] -= 1
        return where
