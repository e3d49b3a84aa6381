"""Which partitions this process has, and in what state."""

from collections.abc import Callable, Sequence

from mainspring.processors.core import Now
from mainspring.processors.engine.errors import FatalKafkaError
from mainspring.processors.engine.partition import Partition
from mainspring.processors.engine.ports import Place
from mainspring.processors.engine.takeover import Takeover, TakeoverContext
from mainspring.telemetry import get_logger, metrics

__all__ = ["Ownership"]

_log = get_logger(__name__)


class Ownership:
    """The partitions of this process.

    The group shares out one topic, and the other inputs of a partition follow it by hand: two subscribed topics would
    get different owners for most partitions. No transaction is ever open in these callbacks, because they run while
    inputs are read; so to give a partition up is to forget it.
    """

    def __init__(self, context: TakeoverContext, now: Callable[[], Now]) -> None:
        self.partitions: dict[int, Partition] = {}
        self._has_changed = False
        self._moved: set[int] = set()
        self._context = context
        self._program = context.program
        self._inputs = context.inputs
        self._tables = context.tables
        self._now = now

    def on_assigned(self, partitions: Sequence[int]) -> None:
        self._inputs.add(self._places(partitions))
        now = self._now()
        for number in partitions:
            self.partitions[number] = Partition(
                number=number,
                places=self._program.places(number),
                takeover=Takeover(number, self._context, now),
                assigned_at_ms=now.mono_ms,
            )
            metrics.PARTITION_OWNER.labels(role="scheduler", partition=number).set(1)
        self._changed("assigned", partitions)

    def on_revoked(self, partitions: Sequence[int]) -> None:
        self._inputs.remove(self._places(partitions))
        for number in partitions:
            partition = self.partitions.pop(number, None)
            if partition is not None:
                _let_go(partition)
            self._tables.release(number)
            metrics.PARTITION_OWNER.labels(role="scheduler", partition=number).set(0)
        self._changed("revoked", partitions)

    def on_lost(self, partitions: Sequence[int]) -> None:
        _log.warning("evicted from the group; its other members go on", partitions=list(partitions))
        self.on_revoked(partitions)

    def check(self) -> None:
        """Raises unless all inputs of each partition are here, and those of no other."""
        if not self._has_changed:
            return
        self._has_changed = False
        held = self._inputs.owned()
        expected = {place for partition in self.partitions.values() for place in partition.places}
        if held != expected:
            raise FatalKafkaError(
                f"the inputs of a partition came apart: held without need {sorted(held - expected)}, missing "
                f"{sorted(expected - held)}. No decision is made on part of the inputs"
            )

    def take_moved(self) -> set[int]:
        """The partitions that came or went since the last call: what was read of them before is void."""
        moved, self._moved = self._moved, set()
        return moved

    def ready(self) -> list[Partition]:
        """The partitions that decide."""
        return [partition for partition in self.partitions.values() if partition.program is not None]

    def _places(self, partitions: Sequence[int]) -> list[Place]:
        return [place for number in partitions for place in self._program.places(number)]

    def _changed(self, what: str, partitions: Sequence[int]) -> None:
        if partitions:
            self._has_changed = True
            self._moved.update(partitions)
            metrics.REBALANCES.labels(group=self._program.group).inc()
            _log.info(f"partitions {what}", partitions=sorted(partitions), owned=sorted(self.partitions))


def _let_go(partition: Partition) -> None:
    if partition.takeover is not None:
        partition.takeover.cancel()
    if partition.program is not None:
        partition.program.closed()
