"""Rows as a transaction sees them: what it has changed so far, over what was committed before."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar, cast

from mainspring.processors.engine.tables import Row, Table

__all__ = ["StagedColumn"]

T = TypeVar("T")


class StagedColumn(Generic[T]):
    """One kind of row of a partition, decoded, with the changes of the open transaction on top.

    Rows that were used lately stay decoded, `cache_rows` of them at most.
    """

    def __init__(
        self,
        table: Table,
        prefix: bytes,
        encode: Callable[[T], bytes],
        decode: Callable[[bytes], T],
        cache_rows: int,
    ) -> None:
        self._table = table
        self._prefix = prefix
        self._encode = encode
        self._decode = decode
        self._cache_rows = cache_rows
        self._staged: dict[str, T | None] = {}
        self._cache: dict[str, T] = {}

    @property
    def is_dirty(self) -> bool:
        """Whether the open transaction has changed anything here."""
        return bool(self._staged)

    def get(self, key: str) -> T | None:
        """The row as the open transaction sees it."""
        if key in self._staged:
            return self._staged[key]
        row = self._cache.get(key)
        if row is not None:
            return row
        data = self._table.get(self._prefix + key.encode())
        if data is None:
            return None
        row = self._decode(data)
        self._cache[key] = row
        # Here as well: whoever looks through all rows may change none for a long time.
        self._forget_surplus()
        return row

    def put(self, key: str, row: T | None) -> None:
        """Changes a row in the open transaction; None deletes it."""
        self._staged[key] = row

    def changes(self) -> list[Row]:
        """What the open transaction changed, each key once, ready for the changelog."""
        prefix, encode = self._prefix, self._encode
        return [(prefix + key.encode(), None if row is None else encode(row)) for key, row in self._staged.items()]

    def commit(self) -> None:
        """The transaction was committed, and the table has its rows."""
        cache, staged = self._cache, self._staged
        deleted = [key for key, row in staged.items() if row is None]
        for key in deleted:
            del staged[key]
            cache.pop(key, None)
        cache.update(cast(dict[str, T], staged))
        self._staged = {}
        self._forget_surplus()

    def _forget_surplus(self) -> None:
        cache = self._cache
        surplus = len(cache) - self._cache_rows
        if surplus > 0:
            # The oldest first; a quarter more than needed, so that this is not done for every row.
            for key in [key for key, _ in zip(cache, range(surplus + self._cache_rows // 4), strict=False)]:
                del cache[key]

    def rollback(self) -> None:
        """The transaction was not committed."""
        self._staged = {}

    def rows(self) -> Iterator[T]:
        """Every committed row. The open transaction must not have changed anything."""
        decode = self._decode
        for _, data in self._table.scan(self._prefix):
            yield decode(data)
