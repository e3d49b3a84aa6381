"""Inputs that were read and do not fit into one transaction."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from mainspring.processors.engine.ports import Place, ReadResult, Received

__all__ = ["Backlog"]


class Backlog:
    """What was read and waits for its transaction, in the order of reading.

    It is little more than one reading: while as much waits as fits into a transaction, no more is read than it takes
    to let the group see us.
    """

    def __init__(self, max_records: int, max_bytes: int) -> None:
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._records: list[Received] = []
        self._ends: dict[Place, int] = {}

    def __bool__(self) -> bool:
        return bool(self._records)

    @property
    def room(self) -> int:
        """How many records may be read now."""
        if not self._records:
            return self._max_records
        if self._fitting(self._records) < len(self._records):
            return 1
        return max(1, self._max_records - len(self._records))

    def take(self, read: ReadResult) -> ReadResult:
        """Adds what was read, and takes out as much as fits into one transaction, one record at least.

        An end that was met is told once everything before it has been taken out: who has reached an end must have
        processed what came before it.
        """
        self._ends.update(read.ends)
        records = self._records + read.records if self._records else read.records
        taken = self._fitting(records)
        self._records = records[taken:]
        if not self._ends:
            return ReadResult(records=records[:taken])
        held = {(record.topic(), record.partition()) for record in self._records}
        ends = [(place, end) for place, end in self._ends.items() if place not in held]
        for place, _ in ends:
            del self._ends[place]
        return ReadResult(records=records[:taken], ends=ends)

    def put_back(self, records: Sequence[Received], ends: Mapping[Place, int]) -> None:
        """Takes back what was taken out last and not processed: it comes first, and its ends are told again."""
        self._records = [*records, *self._records]
        self._ends = {**ends, **self._ends}

    def drop(self, partitions: AbstractSet[int]) -> None:
        """Forgets what waits of these partitions, which changed hands or were set back: it is read again."""
        self._records = [record for record in self._records if record.partition() not in partitions]
        self._ends = {place: end for place, end in self._ends.items() if place[1] not in partitions}

    def _fitting(self, records: list[Received]) -> int:
        room = self._max_bytes
        for index, record in enumerate(records):
            room -= len(record.value() or b"")
            if room < 0:
                return max(1, index)
        return len(records)
