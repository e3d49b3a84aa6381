"""On which partition of its work topic an offer goes: chosen, not hashed.

A partition of a work topic is read by one worker. Where offers lie unanswered the worker is slow, full or gone, so
the next ones go elsewhere. Every partition that a transaction touches costs the broker time, so within one
transaction a run of offers of one lane goes to the same partition, up to `run`.
"""

from dataclasses import dataclass, field

from mainspring.schemas import Priority
from mainspring.topics import Topology

__all__ = ["Placed", "WorkPlacement"]

_RUN = 64


@dataclass(slots=True)
class _Lane:
    topic: str
    unanswered: list[int]
    current: int = 0
    left: int = 0


class WorkPlacement:
    """Chooses work partitions for all partitions of a process, by what is unanswered on each."""

    def __init__(self, topology: Topology, run: int = _RUN) -> None:
        self._run = run
        self._lanes: dict[tuple[str, Priority], _Lane] = {}
        for queue in topology.queues:
            for lane in Priority:
                topic = topology.work(queue, lane)
                self._lanes[queue, lane] = _Lane(topic.name, [0] * topic.partitions)

    def begin(self) -> None:
        """A new transaction."""
        for lane in self._lanes.values():
            lane.left = 0

    def choose(
        self, queue: str, priority: Priority, avoid: int | None, placed: "Placed", job_id: str
    ) -> tuple[str, int]:
        """The topic and partition for an offer; not `avoid` where there is another."""
        lane = self._lanes[queue, priority]
        if lane.left == 0 or (avoid == lane.current and len(lane.unanswered) > 1):
            lane.current = self._least(lane, avoid)
            lane.left = self._run
        lane.left -= 1
        placed.put(job_id, lane.unanswered, lane.current)
        return lane.topic, lane.current

    @staticmethod
    def _least(lane: _Lane, avoid: int | None) -> int:
        """The partition with the fewest unanswered offers; among equals the one after the last: all get a turn."""
        count = len(lane.unanswered)
        best, fewest = lane.current, None
        for step in range(1, count + 1):
            candidate = (lane.current + step) % count
            if candidate == avoid and count > 1:
                continue
            if fewest is None or lane.unanswered[candidate] < fewest:
                best, fewest = candidate, lane.unanswered[candidate]
        return best


@dataclass(slots=True)
class Placed:
    """Where the unanswered offers of one partition lie."""

    _where: dict[str, tuple[list[int], int]] = field(default_factory=dict)

    def put(self, job_id: str, unanswered: list[int], partition: int) -> None:
        """An offer went out; an earlier one of the same job no longer counts."""
        before = self._where.get(job_id)
        if before is not None:
            before[0][before[1]] -= 1
        unanswered[partition] += 1
        self._where[job_id] = (unanswered, partition)

    def answered(self, job_id: str) -> None:
        """A worker has claimed or declined, or the job needs no worker any more."""
        where = self._where.pop(job_id, None)
        if where is not None:
            where[0][where[1]] -= 1

    def clear(self) -> None:
        """The partition was given up, or begins again."""
        for unanswered, partition in self._where.values():
            unanswered[partition] -= 1
        self._where.clear()
