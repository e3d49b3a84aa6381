"""Finished jobs that are still in the tables, oldest first: bounded by count and by age.

With an index store, all of them are in the table and the oldest in memory, up to the *horizon*; those that end later
are only in the table until their turn comes.
"""

from collections import deque
from collections.abc import Iterable

from mainspring.processors.core.index.entries import FINISHED_PREFIX
from mainspring.processors.core.index.keys import BEGINNING, TimeKey, decode_time_key, encode_time_key, encode_time_keys
from mainspring.processors.core.ports import IndexRow, IndexStore

__all__ = ["History"]

_AGE_STEP_MS = 60_000
"""Age is looked at once a minute: a job that ended a week ago is not worth a transaction of its own."""


class History:
    """The order in which finished jobs leave the tables. Times are epoch milliseconds."""

    def __init__(self, max_count: int, max_age_ms: int, *, store: IndexStore | None = None, window: int = 0) -> None:
        self._max_count = max_count
        self._max_age_ms = max_age_ms
        self._store = store
        self._window = window
        self._oldest: deque[TimeKey] = deque()
        self._horizon: TimeKey | None = None
        self._added: dict[TimeKey, None] = {}
        self._removed: list[TimeKey] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def open(self, count: int) -> None:
        """Begins with what is in the table, which is so many."""
        self._count = count
        self._horizon = BEGINNING

    def load(self, finished: Iterable[TimeKey]) -> None:
        """Adds finished jobs, by when they ended, in any order, where there is no table."""
        self._oldest = deque(sorted(finished))
        self._count = len(self._oldest)

    def add(self, job_id: str, seq: int, finished_at_ms: int) -> None:
        """A job has ended."""
        key = (finished_at_ms, seq, job_id)
        self._count += 1
        if self._store is not None:
            self._added[key] = None
            if self._horizon is not None and key > self._horizon:
                return
            if len(self._oldest) >= self._window and self._horizon is None:
                # A clock may have been set back, so the last is not always the latest.
                self._horizon = max(self._oldest)
                if key > self._horizon:
                    return
        self._oldest.append(key)

    def evict(self, now_ms: int, limit: int) -> list[str]:
        """Takes out what is too many or too old, at most `limit`."""
        evicted: list[str] = []
        while len(evicted) < limit and self._has_any():
            key = self._oldest[0]
            if self._count <= self._max_count and self._due_at(key[0]) > now_ms:
                break
            self._oldest.popleft()
            self._count -= 1
            if self._store is not None and self._added.pop(key, self) is self:
                self._removed.append(key)
            evicted.append(key[2])
        return evicted

    def next_at(self) -> int | None:
        """When the next is too old; the distant past where there are too many already."""
        if not self._has_any():
            return None
        return 0 if self._count > self._max_count else self._due_at(self._oldest[0][0])

    def drain(self) -> list[IndexRow]:
        """What the open transaction has changed in the table."""
        rows: list[IndexRow] = [(key, b"") for key in encode_time_keys(FINISHED_PREFIX, self._added)]
        rows += [(key, None) for key in encode_time_keys(FINISHED_PREFIX, self._removed)]
        self._added = {}
        self._removed = []
        return rows

    def _has_any(self) -> bool:
        """Whether a job is in memory, which is filled from the table when it is empty."""
        while not self._oldest:
            if self._store is None or self._horizon is None:
                return False
            prefix, limit = FINISHED_PREFIX, max(1, self._window // 2)
            rows = self._store.scan(prefix, prefix + encode_time_key(self._horizon), limit)
            found = [decode_time_key(key, len(prefix)) for key, _ in rows]
            last = found[-1] if len(found) == limit else None
            fresh = [key for key in self._added if key > self._horizon and (last is None or key <= last)]
            removed = set(self._removed)
            self._horizon = last
            self._oldest.extend(key for key in sorted(found + fresh) if key not in removed)
        return True

    def _due_at(self, finished_at_ms: int) -> int:
        return -(-(finished_at_ms + self._max_age_ms) // _AGE_STEP_MS) * _AGE_STEP_MS
