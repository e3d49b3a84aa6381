"""Things that fall due: a heap by time, from which what is withdrawn is dropped lazily."""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

__all__ = ["DueIndex"]

T = TypeVar("T")

_GARBAGE_MIN = 64
"""Below this many withdrawn entries a rebuild costs more than it saves."""


class DueIndex(Generic[T]):
    """Values by name and time: adding costs O(log n), withdrawing O(1).

    Nobody polls: `next_at` says when to look again. A name is in the index once; adding it again moves it.
    """

    def __init__(self) -> None:
        # One tuple per entry, shared by both. The tick keeps comparisons from ever reaching name or value.
        self._heap: list[tuple[int, int, str, T]] = []
        self._live: dict[str, tuple[int, int, str, T]] = {}
        self._tick = 0

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, name: str) -> bool:
        return name in self._live

    def __iter__(self) -> Iterator[str]:
        return iter(self._live)

    def at(self, name: str) -> int | None:
        """When the name falls due, or None where it is not here."""
        entry = self._live.get(name)
        return None if entry is None else entry[0]

    def add(self, name: str, at: int, value: T) -> None:
        """Puts the value here until `at`. Equal times fall due in the order they were added."""
        self._tick += 1
        entry = (at, self._tick, name, value)
        self._live[name] = entry
        heappush(self._heap, entry)
        self._compact()

    def load(self, entries: Iterable[tuple[str, int, T]]) -> None:
        """Adds many at once, in linear time."""
        for name, at, value in entries:
            self._tick += 1
            entry = (at, self._tick, name, value)
            self._live[name] = entry
            self._heap.append(entry)
        heapify(self._heap)

    def discard(self, name: str) -> bool:
        """Withdraws the name; says whether it was here."""
        return self._live.pop(name, None) is not None

    def next_at(self) -> int | None:
        """When the next falls due, or None where nothing waits."""
        self._drop_withdrawn()
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: int, limit: int) -> list[tuple[str, T]]:
        """Takes out what is due at `now`, earliest first, at most `limit`."""
        due: list[tuple[str, T]] = []
        heap, live = self._heap, self._live
        while heap and len(due) < limit and heap[0][0] <= now:
            entry = heappop(heap)
            name = entry[2]
            if live.get(name) is entry:
                del live[name]
                due.append((name, entry[3]))
        return due

    def _drop_withdrawn(self) -> None:
        heap, live = self._heap, self._live
        while heap and live.get(heap[0][2]) is not heap[0]:
            heappop(heap)

    def _compact(self) -> None:
        """Rebuilds a heap that is mostly withdrawn entries, so that cancelling a million jobs frees their memory."""
        if len(self._heap) > 2 * len(self._live) + _GARBAGE_MIN:
            self._heap = list(self._live.values())
            heapify(self._heap)
