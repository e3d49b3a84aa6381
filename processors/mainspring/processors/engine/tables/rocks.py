"""Tables in RocksDB: a cache of the changelog on disk, so that a restart reads the tail only and memory stays flat.

One database per process, keys led by the partition. Rows are held back for a moment and written in one batch together
with the changelog offset that they reach: a job that lives for half a second costs one write instead of four, and a
process that dies loses the last moment, never half of one. The changelog gives it back.
"""

import shutil
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import cast

from rocksdict import (
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
)

from mainspring.processors.engine.errors import ConfigurationError

__all__ = ["RocksTable", "RocksTables"]

HOLD_MS = 1_000
HOLD_ROWS = 5_000

_META = b"\xff\xff\xff\xffmeta"
"""Leads the rows that tell how far each partition is; no partition has this number."""

_META_HEAD = Struct(">qq")
CACHE_BYTES = 64 << 20
_METADATA_BLOCK_BYTES = 4096
_WRITE_BUFFER_BYTES = 16 << 20
_NEW_FILES = 8
"""So many files are written before they are merged into the large ones. With the 4 that are usual a submit beside ten
million pending jobs costs a fifth more in compactions; with 8 a look-up passes four filters more."""


class RocksTables:
    """The tables of one process under `path`. The caller sees to it that no other process has them open.

    A database that cannot be opened is thrown away: whatever was in it is in the changelog.
    """

    def __init__(self, path: Path, *, hold_ms: int = HOLD_MS, hold_rows: int = HOLD_ROWS) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = _open(path)
        self._hold_ms = hold_ms
        self._hold_rows = hold_rows
        self._tables: dict[int, RocksTable] = {}
        self._held_since_ms: int | None = None

    def open(self, partition: int, origin: str) -> "RocksTable":
        table = RocksTable(self._db, partition, origin, self._hold_rows)
        self._tables[partition] = table
        return table

    def release(self, partition: int) -> None:
        table = self._tables.pop(partition, None)
        if table is not None:
            table.flush()

    def sync(self, now_ms: int) -> None:
        if self._held_since_ms is None:
            self._held_since_ms = now_ms
        elif now_ms - self._held_since_ms >= self._hold_ms:
            self._held_since_ms = None
            for table in self._tables.values():
                table.flush()

    def close(self) -> None:
        for table in self._tables.values():
            table.flush()
        self._tables.clear()
        self._db.close()


class RocksTable:
    """The rows of one partition."""

    def __init__(self, db: Rdict, partition: int, origin: str, hold_rows: int) -> None:
        self._db = db
        self._lead = partition.to_bytes(4, "big")
        self._meta = _META + self._lead
        self._origin = origin.encode()
        self._hold_rows = hold_rows
        self._held: dict[bytes, bytes | None] = {}
        self._only_held: set[bytes] = set()
        """Index rows that are held back and have not been written before: deleted meanwhile, they cost no write."""
        self.index = RocksIndex(self)
        self._dirty = False
        self._offset = 0
        self._as_of_ms = 0
        meta = db.get(self._meta)
        if meta is not None:
            if meta[_META_HEAD.size :] == self._origin:
                self._offset, self._as_of_ms = _META_HEAD.unpack_from(meta)
            else:
                self.wipe()

    @property
    def offset(self) -> int:
        return self._offset

    @property
    def as_of_ms(self) -> int:
        return self._as_of_ms

    def get(self, key: bytes) -> bytes | None:
        held = self._held
        if key in held:
            return held[key]
        value: bytes | None = self._db.get(self._lead + key)
        return value

    def write(
        self,
        rows: Iterable[tuple[bytes, bytes | None]],
        offset: int,
        as_of_ms: int,
        index_rows: Iterable[tuple[bytes, bytes | None]] = (),
    ) -> None:
        held, only_held = self._held, self._only_held
        held.update(rows)
        for key, value in index_rows:
            if value is not None:
                if key not in held:
                    only_held.add(key)
                held[key] = value
            elif key in only_held:
                only_held.discard(key)
                del held[key]
            else:
                held[key] = None
        self._offset = offset
        self._as_of_ms = as_of_ms
        self._dirty = True
        if len(self._held) >= self._hold_rows:
            self.flush()

    def flush(self) -> None:
        """Writes down what is held back, in one batch with the offset."""
        if not self._dirty:
            return
        lead = self._lead
        batch = WriteBatch(raw_mode=True)
        for key, value in self._held.items():
            if value is None:
                batch.delete(lead + key)
            else:
                batch.put(lead + key, value)
        batch.put(self._meta, _META_HEAD.pack(self._offset, self._as_of_ms) + self._origin)
        self._db.write(batch)
        self._held = {}
        self._only_held = set()
        self._dirty = False

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self.scan_from(prefix, prefix)

    def scan_from(self, prefix: bytes, key: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The rows under `prefix` from `key` on."""
        self.flush()
        options = ReadOptions()
        options.set_iterate_upper_bound(_after(self._lead + prefix))
        skip = len(self._lead)
        rows = self._db.items(from_key=self._lead + key, read_opt=options)
        for found, value in cast("Iterator[tuple[bytes, bytes]]", rows):
            yield found[skip:], value

    def write_now(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Writes rows that are not held back and of which `offset` says nothing."""
        lead = self._lead
        batch = WriteBatch(raw_mode=True)
        for key, value in rows:
            if value is None:
                batch.delete(lead + key)
            else:
                batch.put(lead + key, value)
        self._db.write(batch)

    def delete_from(self, first: bytes, end: bytes | None) -> None:
        """Deletes the keys from `first` up to, and without, `end`; None: all that begin with `first`."""
        lead = self._lead
        self._db.delete_range(lead + first, _after(lead + first) if end is None else lead + end)

    def wipe(self) -> None:
        self._held = {}
        self._only_held = set()
        self._dirty = False
        self._offset = 0
        self._as_of_ms = 0
        self._db.delete(self._meta)
        self._db.delete_range(self._lead, _after(self._lead))


class RocksIndex:
    """The index rows of one partition, in the order of their keys."""

    def __init__(self, table: RocksTable) -> None:
        self._table = table

    def scan(self, prefix: bytes, after: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        # The least key behind `after`.
        first = max(prefix, after + b"\x00")
        return list(islice(self._table.scan_from(prefix, first), limit))

    def write(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        self._table.write_now(rows)

    def clear(self, prefix: bytes, up_to: bytes | None = None) -> None:
        self._table.delete_from(prefix, None if up_to is None else up_to + b"\x00")


def _after(prefix: bytes) -> bytes:
    """The first key behind every key that begins with `prefix`."""
    number = int.from_bytes(prefix, "big") + 1
    return number.to_bytes(len(prefix), "big")


def _open(path: Path) -> Rdict:
    try:
        return _connect(path)
    except Exception as error:
        # rocksdict raises bare exceptions. A lock means another process, anything else that the cache is of no use.
        if "lock" in str(error).lower():
            raise ConfigurationError(
                f"{path} is in use by another process: two schedulers were given the same state directory and slot. "
                "Give each its own slot."
            ) from error
        shutil.rmtree(path, ignore_errors=True)
        return _connect(path)


def _connect(path: Path) -> Rdict:
    options = _options()
    # Named for the only column family, too: where there is a database, rocksdict would otherwise give it what RocksDB
    # wrote down of the last options, which has neither the filters' bits nor the cache.
    return Rdict(str(path), options, column_families={"default": options})


def _options() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)  # noqa: FBT003 - the library takes it by position only
    options.set_write_buffer_size(_WRITE_BUFFER_BYTES)
    options.set_max_write_buffer_number(3)
    options.set_level_zero_file_num_compaction_trigger(_NEW_FILES)
    options.set_max_open_files(256)
    options.set_keep_log_file_num(2)
    options.set_compression_type(DBCompressionType.lz4())
    blocks = BlockBasedOptions()
    blocks.set_block_cache(Cache(CACHE_BYTES))
    blocks.set_bloom_filter(10, False)  # noqa: FBT003 - as above
    # In the cache, and so bounded: beside ten million jobs they would be a hundred megabytes. In parts, since a whole
    # filter would push all else out of the cache: looking up a job that is not there would take 230 µs instead of 6.
    blocks.set_cache_index_and_filter_blocks(True)
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
    blocks.set_index_type(BlockBasedIndexType.two_level_index_search())
    blocks.set_partition_filters(True)
    blocks.set_pin_top_level_index_and_filter(True)
    blocks.set_metadata_block_size(_METADATA_BLOCK_BYTES)
    options.set_block_based_table_factory(blocks)
    return options
