"""Tables on the disk of a simulated machine, with the promises of the RocksDB ones: rows are held back for a moment and
written in one batch with the offset that they reach, so a process that dies loses the last moment and never half of it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import chain

from tests.sim.process import Process

__all__ = ["Disk", "DiskTable", "DiskTables", "Image"]

_HOLD_MS = 1_000


@dataclass(slots=True)
class Image:
    """What is on disk of one partition."""

    origin: str = ""
    rows: dict[bytes, bytes] = field(default_factory=dict)
    offset: int = 0
    as_of_ms: int = 0


Disk = dict[int, Image]


class DiskTable:
    """The rows of one partition."""

    def __init__(self, process: Process, image: Image) -> None:
        self._process = process
        self._image = image
        self._rows = dict(image.rows)
        self._held: dict[bytes, bytes | None] = {}
        self._offset = image.offset
        self._as_of_ms = image.as_of_ms

    @property
    def offset(self) -> int:
        return self._offset

    @property
    def as_of_ms(self) -> int:
        return self._as_of_ms

    @property
    def index(self) -> "DiskIndex":
        return DiskIndex(self)

    def get(self, key: bytes) -> bytes | None:
        return self._rows.get(key)

    def write(
        self,
        rows: Iterable[tuple[bytes, bytes | None]],
        offset: int,
        as_of_ms: int,
        index_rows: Iterable[tuple[bytes, bytes | None]] = (),
    ) -> None:
        self._process.point("apply")
        for key, value in chain(rows, index_rows):
            self._held[key] = value
            if value is None:
                self._rows.pop(key, None)
            else:
                self._rows[key] = value
        self._offset = offset
        self._as_of_ms = as_of_ms

    def flush(self) -> None:
        """Writes down what is held back."""
        image = self._image
        for key, value in self._held.items():
            if value is None:
                image.rows.pop(key, None)
            else:
                image.rows[key] = value
        image.offset, image.as_of_ms = self._offset, self._as_of_ms
        self._held = {}

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        for key in sorted(key for key in self._rows if key.startswith(prefix)):
            yield key, self._rows[key]

    def scan_after(self, prefix: bytes, after: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """The first rows under `prefix` behind a key."""
        keys = (key for key in self._rows if key.startswith(prefix) and key > after)
        return [(key, self._rows[key]) for key in nsmallest(limit, keys)]

    def write_now(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Writes rows that are not held back."""
        for key, value in rows:
            for mine in (self._rows, self._image.rows):
                if value is None:
                    mine.pop(key, None)
                else:
                    mine[key] = value

    def wipe(self) -> None:
        self._process.world.saw("local table wiped")
        self._rows, self._held = {}, {}
        self._offset = self._as_of_ms = 0
        self._image.rows.clear()
        self._image.offset = self._image.as_of_ms = 0


class DiskIndex:
    """The index rows of one partition, in the order of their keys."""

    def __init__(self, table: DiskTable) -> None:
        self._table = table

    def scan(self, prefix: bytes, after: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        return self._table.scan_after(prefix, after, limit)

    def write(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        self._table.write_now(rows)

    def clear(self, prefix: bytes, up_to: bytes | None = None) -> None:
        keys = [key for key, _ in self._table.scan(prefix) if up_to is None or key <= up_to]
        self._table.write_now((key, None) for key in keys)


class DiskTables:
    """The tables of one life of a process."""

    def __init__(self, process: Process, disk: Disk) -> None:
        self._process = process
        self._disk = disk
        self._tables: dict[int, DiskTable] = {}
        self._held_since_ms: int | None = None

    def open(self, partition: int, origin: str) -> DiskTable:
        image = self._disk.setdefault(partition, Image())
        if image.origin != origin:
            image.origin = origin
            image.rows.clear()
            image.offset = image.as_of_ms = 0
        elif image.offset:
            self._process.world.saw("restored from a local table")
        table = self._tables[partition] = DiskTable(self._process, image)
        return table

    def release(self, partition: int) -> None:
        table = self._tables.pop(partition, None)
        if table is not None:
            table.flush()

    def sync(self, now_ms: int) -> None:
        if self._held_since_ms is None:
            self._held_since_ms = now_ms
        elif now_ms - self._held_since_ms >= _HOLD_MS:
            self._held_since_ms = None
            for table in self._tables.values():
                table.flush()

    def close(self) -> None:
        for table in self._tables.values():
            table.flush()
        self._tables.clear()
