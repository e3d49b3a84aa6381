"""The tables of the scheduler, by the first byte of the key.

`S` + job id → specification, `J` + job id → state, `D` + schedule id → definition, `R` + schedule id → state of the
schedule, `!position` → position row.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from mainspring.processors.engine.program import Position
from mainspring.processors.engine.staged import StagedColumn
from mainspring.processors.engine.tables import Row, Table
from mainspring.schemas import (
    Codec,
    JobSpec,
    JobState,
    MainspringError,
    PositionRow,
    ScheduleSpec,
    ScheduleState,
)

__all__ = [
    "DEFINITION_PREFIX",
    "POSITION_KEY",
    "PROTOCOL",
    "SCHEDULE_PREFIX",
    "SPEC_PREFIX",
    "STATE_PREFIX",
    "PositionRows",
    "SchedulerRows",
]

T = TypeVar("T")

SPEC_PREFIX = b"S"
STATE_PREFIX = b"J"
DEFINITION_PREFIX = b"D"
SCHEDULE_PREFIX = b"R"
POSITION_KEY = b"!position"

PROTOCOL = 2
"""The newest record types that this version writes. It is recorded with every transaction: a partition that was written
by a later version is not taken over by an earlier one, which could not read what it finds."""


class ProtocolError(MainspringError):
    """The partition was written by a later version."""


class SchedulerRows:
    """The staged rows of one partition, as the core sees them."""

    def __init__(self, table: Table, codec: Codec, cache_rows: int) -> None:
        encode = codec.encode
        self._states = StagedColumn[JobState](table, STATE_PREFIX, encode, _decoder(codec, JobState), cache_rows)
        self._specs = StagedColumn[JobSpec](table, SPEC_PREFIX, encode, _decoder(codec, JobSpec), cache_rows)
        self._schedules = StagedColumn[ScheduleState](
            table, SCHEDULE_PREFIX, encode, _decoder(codec, ScheduleState), cache_rows
        )
        self._definitions = StagedColumn[ScheduleSpec](
            table, DEFINITION_PREFIX, encode, _decoder(codec, ScheduleSpec), cache_rows
        )
        # The core's methods, without a frame in between: they are called several times for every record.
        self.state = self._states.get
        self.spec = self._specs.get
        self.put_state = self._states.put
        self.put_spec = self._specs.put
        self.schedule = self._schedules.get
        self.schedule_spec = self._definitions.get
        self.put_schedule = self._schedules.put
        self.put_schedule_spec = self._definitions.put

    @property
    def is_dirty(self) -> bool:
        """Whether the open transaction has changed a row."""
        return self._states.is_dirty or self._specs.is_dirty or self._schedules.is_dirty or self._definitions.is_dirty

    def states(self) -> Iterator[JobState]:
        """Every committed state of a job."""
        return self._states.rows()

    def schedules(self) -> Iterator[ScheduleState]:
        """Every committed state of a schedule."""
        return self._schedules.rows()

    def changes(self) -> list[Row]:
        """What the open transaction changed."""
        jobs = self._specs.changes() + self._states.changes()
        return jobs + self._definitions.changes() + self._schedules.changes()

    def commit(self) -> None:
        """The transaction was committed."""
        self._specs.commit()
        self._states.commit()
        self._definitions.commit()
        self._schedules.commit()

    def rollback(self) -> None:
        """The transaction was not committed."""
        self._specs.rollback()
        self._states.rollback()
        self._definitions.rollback()
        self._schedules.rollback()


def _decoder(codec: Codec, kind: type[T]) -> Callable[[bytes], T]:
    def decode(data: bytes) -> T:
        record = codec.decode(data)
        assert isinstance(record, kind)
        return record

    return decode


class PositionRows:
    """Position rows, to and from bytes."""

    def __init__(self, codec: Codec, commands: str, followups: str, attempts: str) -> None:
        self._codec = codec
        self._commands = commands
        self._followups = followups
        self._attempts = attempts

    def encode(self, position: Position) -> Row:
        """The row that a transaction writes."""
        row = PositionRow(
            next_seq=position.counter,
            txn_id=position.txn_id,
            commands_offset=position.offsets[self._commands],
            followups_offset=position.offsets[self._followups],
            attempts_offset=position.offsets[self._attempts],
            owner=position.owner,
            written_at_ms=position.written_at_ms,
            protocol=PROTOCOL,
            clock_ms=position.clock_ms,
        )
        return POSITION_KEY, self._codec.encode(row)

    def read(self, table: Table) -> Position | None:
        """The row of a restored table. Raises `ProtocolError` when a later version wrote it."""
        data = table.get(POSITION_KEY)
        if data is None:
            return None
        row = self._codec.decode(data)
        assert isinstance(row, PositionRow)
        if row.protocol > PROTOCOL:
            raise ProtocolError(
                f"{row.owner} has written this partition at protocol level {row.protocol}, and this version knows "
                f"{PROTOCOL}. Run the later version; a downgrade needs one that reads what it wrote"
            )
        return Position(
            offsets={
                self._commands: row.commands_offset,
                self._followups: row.followups_offset,
                self._attempts: row.attempts_offset,
            },
            counter=row.next_seq,
            txn_id=row.txn_id,
            owner=row.owner,
            written_at_ms=row.written_at_ms,
            clock_ms=row.clock_ms,
        )
