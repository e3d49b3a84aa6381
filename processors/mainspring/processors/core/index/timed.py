"""What falls due at an instant: the earliest of it in memory, all of it in the local table.

Invariant: every entry up to the *horizon* that has not been taken is in memory, and what is in memory is not behind it.
A new entry before the horizon goes to memory, one behind it only to the table. When the memory is used up it is filled
from the table, and when there is too much in it the later half is forgotten there. Without a table there is no horizon.

An entry stays in the table until it is removed, also when it has been taken: a later owner takes it again. What the
open transaction has added or removed is kept apart until `drain`, which says what to write with that transaction.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import chain
from typing import Final, Generic, TypeVar

from mainspring.processors.core.index.keys import BEGINNING, TimeKey, decode_time_key, encode_time_key
from mainspring.processors.core.ports import IndexRow, IndexStore

__all__ = ["TimedIndex"]

T = TypeVar("T")

_NAMES_PER_SCAN = 1_000

_GARBAGE_MIN = 64
"""Below this many removed entries a rebuild costs more than it saves."""


class _Removed:
    """Stands for an entry that the open transaction removes from the table."""


_REMOVED: Final = _Removed()


class TimedIndex(Generic[T]):
    """Entries by (instant, seq, job id), each with a value. Adding and taking cost O(log window)."""

    def __init__(
        self,
        prefix: bytes,
        encode: Callable[[T], bytes],
        decode: Callable[[TimeKey, bytes], T],
        *,
        store: IndexStore | None = None,
        window: int = 0,
    ) -> None:
        """`prefix` leads the keys in `store`; `window`: how many entries to keep in memory where there is a store."""
        self._prefix = prefix
        self._encode = encode
        self._decode = decode
        self._store = store
        self._window = window
        self._heap: list[TimeKey] = []
        self._live: dict[TimeKey, T] = {}
        self._horizon: TimeKey | None = None
        self._early: set[TimeKey] = set()
        """Entries behind the horizon that have been taken all the same."""
        self._fresh: dict[TimeKey, T | _Removed] = {}
        self._rewritten: set[TimeKey] = set()
        """Fresh entries that the table has, too."""
        self._taken_to = BEGINNING
        """The last entry that has been taken and is not early: the horizon may not go back behind it."""
        self._room = window
        self._count = 0

    def __len__(self) -> int:
        """Entries that have not been removed, taken ones included."""
        # Entries that were not true may have been removed beyond what had been counted.
        return max(0, self._count)

    @property
    def in_memory(self) -> int:
        """Entries that take up memory."""
        return len(self._live)

    def open(self, count: int) -> None:
        """Begins with what is in the table, which is `count` entries."""
        self._count = count
        self._horizon = BEGINNING

    def load(self, entries: Iterable[tuple[TimeKey, T]]) -> None:
        """Adds many at once in linear time, where there is no table."""
        self._live.update(entries)
        self._count = len(self._live)
        self._heap = list(self._live)
        heapify(self._heap)

    def add(self, key: TimeKey, value: T) -> None:
        """Puts an entry here that is not here."""
        self._write(key, value)
        if self._horizon is None or key <= self._horizon:
            self._live[key] = value
            heappush(self._heap, key)
            if self._store is not None and len(self._live) > self._room:
                self._forget_later_half()

    def add_taken(self, key: TimeKey, value: T) -> None:
        """Puts an entry here that is taken at once: it is not given out, and is here until it is removed."""
        self._write(key, value)
        if self._horizon is not None and key > self._horizon:
            self._early.add(key)
        elif key > self._taken_to:
            self._taken_to = key

    def holds(self, key: TimeKey) -> bool:
        """Whether an entry that is here has not been taken."""
        if key in self._live:
            return True
        return self._horizon is not None and key > self._horizon and key not in self._early

    def remove(self, key: TimeKey) -> bool:
        """Removes an entry that is here; says whether it had not been taken."""
        self._count -= 1
        was_held = self._live.pop(key, self) is not self
        if was_held and len(self._heap) > 2 * len(self._live) + _GARBAGE_MIN:
            self._heap = list(self._live)
            heapify(self._heap)
        if self._store is None:
            return was_held
        if key in self._fresh and key not in self._rewritten:
            del self._fresh[key]
        else:
            self._fresh[key] = _REMOVED
            self._rewritten.discard(key)
        if was_held or self._horizon is None or key <= self._horizon:
            return was_held
        if key in self._early:
            self._early.discard(key)
            return False
        return True

    def names(self, behind: TimeKey) -> Iterator[str]:
        """The ids of all entries behind a key; where there is a table, of those that have been taken, too.

        What the open transaction has added comes first, and the table is read little by little, as it is when its turn
        comes: an entry that is removed meanwhile may be left out, and one that is added may come, or come twice.
        """
        if self._store is None:
            return iter([key[2] for key in self._live if key > behind])
        fresh = [key[2] for key, value in self._fresh.items() if key > behind and not isinstance(value, _Removed)]
        return chain(fresh, self._names_in(self._store, behind))

    def _names_in(self, store: IndexStore, behind: TimeKey) -> Iterator[str]:
        prefix = self._prefix
        last = prefix + encode_time_key(behind)
        while rows := store.scan(prefix, last, _NAMES_PER_SCAN):
            last = rows[-1][0]
            for key, _ in rows:
                yield decode_time_key(key, len(prefix))[2]

    def next_at(self) -> int | None:
        """When the next falls due, or None where nothing waits."""
        live = self._live
        while True:
            heap = self._heap
            while heap and heap[0] not in live:
                heappop(heap)
            if heap:
                return heap[0][0]
            if not self._refill():
                return None

    def pop_due(self, now: int, limit: int) -> list[tuple[TimeKey, T]]:
        """Takes what is due at `now`, earliest first, at most `limit`. It stays in the table until it is removed."""
        due: list[tuple[TimeKey, T]] = []
        while len(due) < limit:
            at = self.next_at()
            if at is None or at > now:
                break
            key = heappop(self._heap)
            due.append((key, self._live.pop(key)))
        if due:
            self._taken_to = max(self._taken_to, due[-1][0])
        return due

    def drain(self) -> list[IndexRow]:
        """What the open transaction has changed, to be written together with its rows."""
        if not self._fresh:
            return []
        prefix, encode = self._prefix, self._encode
        rows: list[IndexRow] = [(prefix + encode_time_key(key), None) for key in self._rewritten]
        rows += [
            (prefix + encode_time_key(key), None if isinstance(value, _Removed) else encode(value))
            for key, value in self._fresh.items()
        ]
        self._fresh = {}
        self._rewritten = set()
        return rows

    def _write(self, key: TimeKey, value: T) -> None:
        self._count += 1
        if self._store is not None:
            if key in self._fresh:
                self._rewritten.add(key)
            self._fresh[key] = value

    def _refill(self) -> bool:
        """Moves the horizon on to the next entries of the table; says whether there may be any in memory now."""
        store, horizon = self._store, self._horizon
        if store is None or horizon is None:
            return False
        limit = max(1, self._window // 2)
        prefix = self._prefix
        rows = store.scan(prefix, prefix + encode_time_key(horizon), limit)
        size = len(prefix)
        found = {(key := decode_time_key(data, size)): self._decode(key, value) for data, value in rows}
        last = decode_time_key(rows[-1][0], size) if len(rows) == limit else None
        for key, value in self._fresh.items():
            if key > horizon and (last is None or key <= last):
                if isinstance(value, _Removed):
                    found.pop(key, None)
                else:
                    found[key] = value
        for key in self._early.intersection(found):
            del found[key]
        passed = {key for key in self._early if last is None or key <= last}
        if passed:
            self._taken_to = max(self._taken_to, *passed)
            self._early -= passed
        self._horizon = last
        self._live.update(found)
        self._heap = sorted(self._live)
        return True

    def _forget_later_half(self) -> None:
        """What is forgotten is in the table, or in what the open transaction adds to it."""
        order = sorted(self._live)
        horizon = max(order[(len(order) - 1) // 2], self._taken_to)
        kept = bisect_right(order, horizon)
        for key in order[kept:]:
            del self._live[key]
        self._heap = order[:kept]
        if kept < len(order):
            self._horizon = horizon
        # Where a clock was set back nothing may be forgotten for a while; that must not be tried with every entry.
        self._room = max(self._window, 2 * kept)
