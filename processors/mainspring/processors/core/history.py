"""Finished jobs that are still in the tables, oldest first: bounded by count and by age."""

from collections import deque
from collections.abc import Iterable, Iterator

__all__ = ["History"]

_AGE_STEP_MS = 60_000
"""Age is looked at once a minute: a job that ended a week ago is not worth a transaction of its own."""


class History:
    """The order in which finished jobs leave the tables. Times are epoch milliseconds."""

    def __init__(self, max_count: int, max_age_ms: int) -> None:
        self._max_count = max_count
        self._max_age_ms = max_age_ms
        self._finished: deque[tuple[int, str]] = deque()

    def __len__(self) -> int:
        return len(self._finished)

    def __iter__(self) -> Iterator[str]:
        return (job_id for _, job_id in self._finished)

    def load(self, finished: Iterable[tuple[int, str]]) -> None:
        """Adds (finished_at_ms, job_id) in any order."""
        self._finished = deque(sorted([*self._finished, *finished]))

    def add(self, job_id: str, finished_at_ms: int) -> None:
        """A job has ended."""
        self._finished.append((finished_at_ms, job_id))

    def evict(self, now_ms: int, limit: int) -> list[str]:
        """Takes out what is too many or too old, at most `limit`."""
        evicted: list[str] = []
        finished = self._finished
        while finished and len(evicted) < limit:
            if len(finished) <= self._max_count and self._due_at(finished[0][0]) > now_ms:
                break
            evicted.append(finished.popleft()[1])
        return evicted

    def next_at(self) -> int | None:
        """When the next is too old; the distant past where there are too many already."""
        if not self._finished:
            return None
        return 0 if len(self._finished) > self._max_count else self._due_at(self._finished[0][0])

    def _due_at(self, finished_at_ms: int) -> int:
        return -(-(finished_at_ms + self._max_age_ms) // _AGE_STEP_MS) * _AGE_STEP_MS
