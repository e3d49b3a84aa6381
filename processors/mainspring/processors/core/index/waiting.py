"""What waits, one range of time per priority: of what is due now, the important comes first.

A herd of one instant takes a while to be moved to its lanes. In one range by time, an urgent job that was submitted
last, or that falls due a second later, would wait for all of the herd to be moved before its own priority counts.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Final

from mainspring.processors.core.index.entries import waiting_range
from mainspring.processors.core.index.keys import TimeKey
from mainspring.processors.core.index.orders import Waiting, encode_waiting, time_key
from mainspring.processors.core.index.ready_job import ReadyJob
from mainspring.processors.core.index.timed import TimedIndex
from mainspring.processors.core.ports import IndexRow, IndexStore
from mainspring.schemas.common import Priority

__all__ = ["WaitingIndex"]

_DOWNWARDS: Final = sorted(Priority, reverse=True)


class WaitingIndex:
    """Waiting jobs, by priority and then by (instant, seq, job id)."""

    def __init__(
        self,
        decode: Callable[[int, TimeKey, bytes], Waiting],
        *,
        store: IndexStore | None = None,
        window: int = 0,
    ) -> None:
        """`decode` makes a job of its priority, its key and its row; `window`: jobs in memory, per priority."""
        self._ranges: dict[int, TimedIndex[Waiting]] = {
            int(priority): TimedIndex(
                waiting_range(priority),
                encode_waiting,
                partial(decode, int(priority)),
                store=store,
                window=window,
            )
            for priority in _DOWNWARDS
        }
        self._count = 0

    def __len__(self) -> int:
        """Jobs that have not been removed, taken ones included."""
        # Entries that were not true may have been removed beyond what had been counted.
        return max(0, self._count)

    @property
    def in_memory(self) -> int:
        """Jobs that take up memory."""
        return sum(each.in_memory for each in self._ranges.values())

    def open(self, count: int) -> None:
        """Begins with what is in the table, which is `count` jobs."""
        self._count = count
        for each in self._ranges.values():
            # How they are spread over the priorities is not known, and nobody asks.
            each.open(0)

    def load(self, jobs: Iterable[Waiting]) -> None:
        """Adds many at once in linear time, where there is no table."""
        found: dict[int, list[tuple[TimeKey, Waiting]]] = {priority: [] for priority in self._ranges}
        for waiting in jobs:
            found[waiting[2].priority].append((time_key(waiting[2]), waiting))
        self._count = sum(map(len, found.values()))
        for priority, entries in found.items():
            self._ranges[priority].load(entries)

    def add(self, waiting: Waiting) -> None:
        """Puts a job here that is not here."""
        self._count += 1
        self._ranges[waiting[2].priority].add(time_key(waiting[2]), waiting)

    def add_taken(self, waiting: Waiting) -> None:
        """Puts a job here that is taken at once: it is not given out, and is here until it is removed."""
        self._count += 1
        self._ranges[waiting[2].priority].add_taken(time_key(waiting[2]), waiting)

    def holds(self, job: ReadyJob) -> bool:
        """Whether a job that is here has not been taken."""
        return self._ranges[job.priority].holds(time_key(job))

    def remove(self, job: ReadyJob) -> bool:
        """Removes a job that is here; says whether it had not been taken."""
        self._count -= 1
        return self._ranges[job.priority].remove(time_key(job))

    def names(self, behind: TimeKey) -> Iterator[str]:
        """The ids of all jobs behind a key, one priority after the other: see `TimedIndex.names`."""
        return chain.from_iterable([each.names(behind) for each in self._ranges.values()])

    def next_at(self) -> int | None:
        """When the next falls due, or None where nothing waits."""
        return min((at for each in self._ranges.values() if (at := each.next_at()) is not None), default=None)

    def pop_due(self, now_ms: int, limit: int) -> list[Waiting]:
        """Takes what is due, at most `limit`, each priority earliest first. It stays in the table until it is removed.

        Each priority has an equal share of `limit`, so that the lanes of none run empty while it has jobs that are due:
        which of them starts is for the queues to say. What the shares leave goes to the most important.
        """
        due: list[Waiting] = []
        share = limit // len(self._ranges)
        for each in self._ranges.values():
            due += [waiting for _, waiting in each.pop_due(now_ms, share)]
        for each in self._ranges.values():
            if len(due) == limit:
                break
            due += [waiting for _, waiting in each.pop_due(now_ms, limit - len(due))]
        return due

    def drain(self) -> list[IndexRow]:
        """What the open transaction has changed, to be written together with its rows."""
        return [row for each in self._ranges.values() for row in each.drain()]
