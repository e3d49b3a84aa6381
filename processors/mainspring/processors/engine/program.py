"""What the engine runs: the rules of one processor, told nothing of transactions, ownership or restores."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from mainspring.processors.core import IsOver, Now
from mainspring.processors.engine.ports import Place, Received
from mainspring.processors.engine.tables import Row, Table

__all__ = ["PartitionProgram", "Position", "Program", "Send"]

Send: TypeAlias = Callable[[str, bytes | None, bytes | None, int], None]
"""Writes one record in the open transaction: topic, value, key, partition (-1: by key)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far a partition has been processed: the row that every transaction writes for each partition it touches."""

    offsets: Mapping[str, int]
    """By input topic, the next offset to read."""
    counter: int
    """The program's own counter, which must survive with the rows."""
    txn_id: int
    owner: str
    written_at_ms: int
    clock_ms: int = 0
    """What the program's wall clock shows, or has shown: what a later owner holds its own against."""


class PartitionProgram(Protocol):
    """The rules over one partition. What is decided stays staged until `committed`, and is gone after `rolled_back`."""

    @property
    def counter(self) -> int:
        """The counter to keep in the position row."""
        ...

    @property
    def clock_ms(self) -> int:
        """The clock to keep in the position row, epoch milliseconds."""
        ...

    def apply(self, topic: str, records: Sequence[Received], now: Now) -> int:
        """Decides on inputs, in order. Raises `RecordError` when one of them makes the rules fail.

        Returns about how many bytes that brought about beyond what grows with the inputs themselves.
        """
        ...

    def condemn(self, record: Received, detail: str, now: Now, *, close: bool) -> None:
        """Puts aside an input that cannot be applied, and closes what it belongs to, so that nobody waits for it.

        Raises `RecordError` when that fails, too; it is then called again without `close`.
        """
        ...

    def tick(self, now: Now, is_over: IsOver) -> None:
        """Decides on what time has brought; once `is_over`, what is left of it is due at once."""
        ...

    def next_tick_in_ms(self, now: Now) -> int | None:
        """When `tick` has something to do; None: not before another input."""
        ...

    def wants_barrier(self, now: Now) -> bool:
        """Whether something waits for all that had been written to the barrier topic by now."""
        ...

    def barrier_passed(self, asked_at: Now, now: Now) -> None:
        """Everything that had been written to the barrier topic at `asked_at` has been applied."""
        ...

    def has_decided(self) -> bool:
        """Whether there is anything to commit."""
        ...

    def changes(self) -> list[Row]:
        """The rows that were changed, each key once."""
        ...

    def index_changes(self) -> list[Row]:
        """What the index in the local table has to be told; given out once. Not for the changelog."""
        ...

    def committed(self) -> None:
        """The transaction was committed, and the table has its rows."""
        ...

    def rolled_back(self, now: Now) -> None:
        """Starts again from the rows in the table."""
        ...

    def closed(self) -> None:
        """The partition has left this process."""
        ...


class Program(Protocol):
    """The rules of one processor, and its topics."""

    @property
    def group(self) -> str: ...
    @property
    def inputs(self) -> Sequence[str]:
        """Co-partitioned input topics, in the order in which a batch is decided."""
        ...

    @property
    def subscribed(self) -> str:
        """The input whose partitions the group shares out; the others follow it."""
        ...

    @property
    def changelog(self) -> str: ...
    @property
    def layout(self) -> str:
        """Names the form of the index rows: a local table with those of another form is made again."""
        ...

    @property
    def barrier_topic(self) -> str: ...
    def open(self, partition: int, table: Table, counter: int, now: Now) -> PartitionProgram:
        """Builds the rules of a partition over its restored table."""
        ...

    def emit(self, decided: Sequence[PartitionProgram], txn_id: int, send: Send, now: Now) -> None:
        """Writes what these partitions have decided, except for rows."""
        ...

    def index_rows(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        """The index rows that follow from rows of the changelog, which the table does not have yet."""
        ...

    def encode_position(self, position: Position) -> Row: ...
    def read_position(self, table: Table) -> Position | None:
        """The position row of a restored table."""
        ...

    def places(self, partition: int) -> list[Place]:
        """The input places of a partition."""
        ...
