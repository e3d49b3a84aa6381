"""The index rows that follow from rows of the changelog: made while a partition is restored."""

from collections.abc import Sequence

from mainspring.processors.core import QueueOrder, QueueRules, Rules
from mainspring.processors.core.index.entries import (
    COUNTS_KEY,
    IN_FLIGHT_KEY,
    changed_entries,
    decode_counts,
    decode_ids,
)
from mainspring.processors.engine.tables import Row, Table
from mainspring.processors.scheduler.rows import STATE_PREFIX
from mainspring.schemas import Codec, JobState

__all__ = ["IndexRows"]


class IndexRows:
    """Makes index rows from states."""

    def __init__(self, rules: Rules, codec: Codec) -> None:
        self._rules = rules
        self._codec = codec
        self._orders: dict[str, QueueOrder] = {}

    def follow(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        """What the index has to be told when the table takes these rows over, which it has not done yet.

        A row that the table has is read: what it has put into the index must go.
        """
        newest = {key: value for key, value in rows if key[:1] == STATE_PREFIX}
        if not newest:
            return []
        changes = [(self._state(table.get(key)), self._state(value)) for key, value in newest.items()]
        counts, in_flight = decode_counts(table.get(COUNTS_KEY)), decode_ids(table.get(IN_FLIGHT_KEY))
        return changed_entries(changes, self._order_of, counts, in_flight)

    def _state(self, data: bytes | None) -> JobState | None:
        if data is None:
            return None
        record = self._codec.decode(data)
        assert isinstance(record, JobState)
        return record

    def _order_of(self, queue: str) -> QueueOrder:
        order = self._orders.get(queue)
        if order is None:
            order = self._orders[queue] = QueueOrder(queue, self._rules.queues.get(queue) or QueueRules())
        return order
