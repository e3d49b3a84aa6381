"""One partition: records, the control records between them, and how far a reader of committed records may read."""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final

from mainspring.processors.engine.ports import Place

__all__ = ["ABORTED", "COMMITTED", "MARKER", "OPEN", "PartitionLog", "Record"]

OPEN: Final = 0
COMMITTED: Final = 1
ABORTED: Final = 2
MARKER: Final = 3
"""What a record is: of an open transaction, readable, aborted, or a control record, which takes an offset as well."""

_offset_of = attrgetter("at")


class Record:
    """One record, with the methods of the client library's message."""

    __slots__ = ("_key", "_place", "_value", "at", "producer_id", "state", "written_at")

    def __init__(
        self,
        place: Place,
        at: int,
        key: bytes | None,
        value: bytes | None,
        producer_id: int,
        state: int,
        written_at: int,
    ) -> None:
        self._place = place
        self.at = at
        self._key = key
        self._value = value
        self.producer_id = producer_id
        self.state = state
        self.written_at = written_at

    def error(self) -> None:
        return None

    def topic(self) -> str:
        return self._place[0]

    def partition(self) -> int:
        return self._place[1]

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value


class PartitionLog:
    """An append-only log with gaps, as transactions make them, and holes, as compaction makes them."""

    def __init__(self, place: Place, now: Callable[[], int]) -> None:
        self.place = place
        self.records: list[Record] = []
        self.compacted: list[Record] = []
        """What compaction has taken away, for the oracle alone."""
        self.start = 0
        self.end = 0
        self.epochs: dict[int, int] = {}
        """By producer id, the newest epoch that has written here, markers included: older ones are shut out."""
        self.on_visible: list[Callable[[PartitionLog], None]] = []
        """Told when readers of committed records may read further."""
        self._open: dict[int, list[Record]] = {}
        self._waiting: list[Callable[[], None]] = []
        self._now = now

    @property
    def stable(self) -> int:
        """The last stable offset: the first record of the oldest open transaction, or the end."""
        if not self._open:
            return self.end
        return min(records[0].at for records in self._open.values())

    def append(self, rows: Iterable[tuple[bytes | None, bytes | None]], producer_id: int | None = None) -> int:
        """Writes rows (key, value), in an open transaction if there is a producer id. Returns the first offset."""
        first = self.end
        state = COMMITTED if producer_id is None else OPEN
        now = self._now()
        made = [
            Record(self.place, first + index, key, value, -1 if producer_id is None else producer_id, state, now)
            for index, (key, value) in enumerate(rows)
        ]
        self.records += made
        self.end += len(made)
        if producer_id is not None:
            self._open.setdefault(producer_id, []).extend(made)
        self._advanced()
        return first

    def mark(self, producer_id: int, epoch: int, *, commit: bool) -> None:
        """Writes the control record that ends a transaction here."""
        ended = self._open.pop(producer_id, [])
        state = COMMITTED if commit else ABORTED
        for record in ended:
            record.state = state
        self.records.append(Record(self.place, self.end, None, None, producer_id, MARKER, self._now()))
        self.end += 1
        self.epochs[producer_id] = max(epoch, self.epochs.get(producer_id, -1))
        self._advanced()

    def read(self, offset: int, *, committed: bool, limit: int = 1 << 30) -> tuple[list[Record], int]:
        """Records from an offset on, as a reader sees them, and the offset to go on from."""
        bound = self.stable if committed else self.end
        there = self.records[self.index(offset) : self.index(bound)]
        # Below the stable offset nothing is open.
        if committed:
            found = [record for record in there if record.state == COMMITTED]
        else:
            found = [record for record in there if record.state != MARKER]
        if len(found) > limit:
            return found[:limit], found[limit].at
        return found, max(offset, bound)

    def index(self, offset: int) -> int:
        """Where in `records` the first is that is not before an offset."""
        records = self.records
        if not records or records[-1].at < offset:
            return len(records)
        if records[0].at == self.start and records[-1].at - self.start == len(records) - 1:
            return max(0, offset - self.start)
        return bisect_left(records, offset, key=_offset_of)

    def when_longer(self, tell: Callable[[], None]) -> None:
        """Calls back, once, when there is more."""
        self._waiting.append(tell)

    def compact(self, before: int, *, keep_tombstones_since: int) -> int:
        """Keeps the newest row under each key, below an offset and never above the stable one.

        Tombstones written before `keep_tombstones_since` go as well. Returns how many records went.
        """
        bound = min(before, self.stable)
        newest = {r.key(): r.at for r in self.records if r.state == COMMITTED and r.at < bound}

        def stays(record: Record) -> bool:
            if record.at >= bound:
                return True
            if record.state != COMMITTED or newest[record.key()] != record.at:
                return False
            return record.value() is not None or record.written_at >= keep_tombstones_since

        kept = [record for record in self.records if stays(record)]
        gone = [record for record in self.records if not stays(record)]
        self.compacted += gone
        self.records = kept
        return len(gone)

    def delete_before(self, offset: int) -> None:
        """Retention: what is before an offset is gone."""
        self.records = self.records[self.index(offset) :]
        self.start = max(self.start, offset)

    def _advanced(self) -> None:
        waiting, self._waiting = self._waiting, []
        for tell in waiting:
            tell()
        for tell_visible in self.on_visible:
            tell_visible(self)
