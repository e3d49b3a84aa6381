"""Tables that live as long as the process: for tests, and where a restore from the changelog is quick enough."""

from collections.abc import Iterable, Iterator
from itertools import chain

__all__ = ["MemoryTable", "MemoryTables"]


class MemoryTable:
    """The rows of one partition in a dictionary."""

    def __init__(self) -> None:
        self._rows: dict[bytes, bytes] = {}
        self._offset = 0
        self._as_of_ms = 0

    @property
    def offset(self) -> int:
        return self._offset

    @property
    def as_of_ms(self) -> int:
        return self._as_of_ms

    @property
    def index(self) -> None:
        return None

    def get(self, key: bytes) -> bytes | None:
        return self._rows.get(key)

    def write(
        self,
        rows: Iterable[tuple[bytes, bytes | None]],
        offset: int,
        as_of_ms: int,
        index_rows: Iterable[tuple[bytes, bytes | None]] = (),
    ) -> None:
        mine = self._rows
        for key, value in chain(rows, index_rows):
            if value is None:
                mine.pop(key, None)
            else:
                mine[key] = value
        self._offset = offset
        self._as_of_ms = as_of_ms

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        for key in sorted(key for key in self._rows if key.startswith(prefix)):
            yield key, self._rows[key]

    def wipe(self) -> None:
        self._rows.clear()
        self._offset = 0
        self._as_of_ms = 0


class MemoryTables:
    """Tables in memory. A partition that left and comes back is restored from its changelog."""

    def open(self, partition: int, origin: str) -> MemoryTable:
        return MemoryTable()

    def release(self, partition: int) -> None:
        pass

    def sync(self, now_ms: int) -> None:
        pass

    def close(self) -> None:
        pass
