"""Takeovers, moved on by one slice each time round the loop, so that partitions that are ready do not wait for them."""

from mainspring.processors.core import Now
from mainspring.processors.engine.ownership import Ownership
from mainspring.processors.engine.partition import Partition
from mainspring.processors.engine.ports import Clock, Received
from mainspring.processors.engine.takeover import Takeover, TakeoverContext
from mainspring.telemetry import get_logger, metrics

__all__ = ["Restoring"]

_log = get_logger(__name__)

_SLICE_RECORDS = 5_000


class Restoring:
    """Brings partitions from being assigned to being ready."""

    def __init__(self, ownership: Ownership, context: TakeoverContext, clock: Clock) -> None:
        self._ownership = ownership
        self._context = context
        self._clock = clock

    def advance(self, now: Now) -> bool:
        """Reads one slice of the changelog and moves every takeover on. Whether any is still under way."""
        taking_over = [partition for partition in self._ownership.partitions.values() if partition.takeover is not None]
        if not taking_over:
            return False
        self._read_slice(now)
        for partition in taking_over:
            takeover = partition.takeover
            if takeover is None:
                continue
            if takeover.advance(now):
                self._open(partition, takeover, now)
            else:
                metrics.RESTORE_REMAINING.labels(store="scheduler", partition=partition.number).set(takeover.remaining)
        return any(partition.takeover is not None for partition in taking_over)

    def _read_slice(self, now: Now) -> None:
        result = self._context.reader.read(_SLICE_RECORDS, 0)
        rows: dict[int, list[Received]] = {}
        for record in result.records:
            rows.setdefault(record.partition(), []).append(record)
        for number, records in rows.items():
            takeover = self._takeover_of(number)
            if takeover is not None:
                takeover.restored(records, now)
        for (_, number), offset in result.ends:
            takeover = self._takeover_of(number)
            if takeover is not None:
                takeover.met_end(offset, now)

    def _takeover_of(self, number: int) -> Takeover | None:
        partition = self._ownership.partitions.get(number)
        return None if partition is None else partition.takeover

    def _open(self, partition: Partition, takeover: Takeover, now: Now) -> None:
        """The partition decides from here on."""
        assert takeover.table is not None
        partition.takeover = None
        partition.table = takeover.table
        partition.program = self._context.program.open(partition.number, takeover.table, takeover.counter, now)
        partition.position = dict(takeover.start)
        partition.committed = dict(takeover.start)
        partition.uncommitted_since_ms = None
        partition.reached = {}
        partition.barrier = None
        self._context.inputs.start(takeover.start)
        took_ms = self._clock.mono_ms() - partition.assigned_at_ms
        metrics.RESTORE_SECONDS.labels(store="scheduler").observe(took_ms / 1_000)
        metrics.RESTORE_REMAINING.labels(store="scheduler", partition=partition.number).set(0)
        _log.info("partition ready", partition=partition.number, rows=takeover.restored_rows, took_ms=took_ms)
