"""Rows in the order of their keys, in a dictionary: what RocksDB is to a partition's indexes."""

from collections.abc import Iterable

__all__ = ["DictStore"]


class DictStore:
    """Implements `IndexStore`."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}

    def scan(self, prefix: bytes, after: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        return sorted(row for row in self.rows.items() if row[0].startswith(prefix) and row[0] > after)[:limit]

    def write(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        for key, value in rows:
            if value is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = value

    def clear(self, prefix: bytes, up_to: bytes | None = None) -> None:
        for key in [key for key in self.rows if key.startswith(prefix) and (up_to is None or key <= up_to)]:
            del self.rows[key]
