"""Where the rows of a partition live in this process: in memory, or in RocksDB. Both keep the same contract."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeAlias

from mainspring.processors.core.ports import IndexStore
from mainspring.processors.engine.tables.memory import MemoryTables

__all__ = ["MemoryTables", "Row", "Table", "Tables"]

Row: TypeAlias = tuple[bytes, bytes | None]
"""A row: its key, and its bytes; None deletes it."""


class Table(Protocol):
    """The rows of one partition, as its changelog has them up to `offset`."""

    @property
    def offset(self) -> int:
        """The changelog offset to restore from; 0 when nothing is here."""
        ...

    @property
    def as_of_ms(self) -> int:
        """When the rows were last known to equal the changelog up to `offset` (wall clock); 0 when nothing is here."""
        ...

    @property
    def index(self) -> IndexStore | None:
        """Where what follows from the rows can be kept in order beside them; None: in memory."""
        ...

    def get(self, key: bytes) -> bytes | None:
        """The row under a key."""
        ...

    def write(self, rows: Iterable[Row], offset: int, as_of_ms: int, index_rows: Iterable[Row] = ()) -> None:
        """Takes rows over and moves `offset`, all of it or nothing, also when the process dies on the way.

        `index_rows`: those of the index, which are not in the changelog. One that is ever deleted is not put a second
        time without a deletion between.
        """
        ...

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Every row whose key begins with `prefix`, in the order of the keys. Write nothing while it runs."""
        ...

    def wipe(self) -> None:
        """Forgets everything, `offset` too."""
        ...


class Tables(Protocol):
    """The tables of one process."""

    def open(self, partition: int, origin: str) -> Table:
        """The table of a partition. `origin` is the identity of its changelog: rows of another one are forgotten."""
        ...

    def release(self, partition: int) -> None:
        """The partition has left this process."""
        ...

    def sync(self, now_ms: int) -> None:
        """Time to write down what was held back."""
        ...

    def close(self) -> None:
        """Writes down what was held back and lets go of the files."""
        ...
