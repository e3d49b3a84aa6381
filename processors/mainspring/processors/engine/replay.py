"""The rows of one changelog partition on their way into the local table, slice by slice."""

from collections.abc import Sequence
from typing import Final

from mainspring.processors.core import Now
from mainspring.processors.engine.ports import ChangelogReader, Received
from mainspring.processors.engine.program import Program
from mainspring.processors.engine.tables import Table, Tables
from mainspring.telemetry import get_logger

__all__ = ["SLICE_RECORDS", "Replay"]

SLICE_RECORDS: Final = 5_000
"""What is read of the changelog in one turn of the loop at most."""

_log = get_logger(__name__)


class Replay:
    """Brings one local table up to where its changelog is: for a takeover, and for a standby.

    Rows, index and offset are written in one batch, so it may end, or the process die, after any slice.
    """

    def __init__(
        self, partition: int, *, program: Program, tables: Tables, reader: ChangelogReader, table: Table | None = None
    ) -> None:
        """`table`: one that is open already."""
        self.partition = partition
        self.table = table
        self.reached = 0
        """The next changelog offset to read."""
        self.rows = 0
        """How many records were read."""
        self._program = program
        self._tables = tables
        self._reader = reader
        self.is_reading = False

    def begin(self, identity: str, beginning: int, end: int, now: Now, *, delete_retention_ms: int) -> None:
        """Opens the table and begins behind its rows, if something is there to read before `end`.

        `identity`: of the changelog; `beginning`: its first offset. Rows that do not belong to it are wiped: those of
        another topic or another form of index, those from beyond its ends, and those that have not been known to be
        true for so long that the deletion of some may be gone from the changelog.
        """
        table = self.table
        if table is None:
            table = self.table = self._tables.open(self.partition, f"{identity}/{self._program.layout}")
        too_old = now.wall_ms - table.as_of_ms > delete_retention_ms
        if table.offset and (table.offset > end or table.offset < beginning or too_old):
            _log.warning("local table is of no use and is wiped", partition=self.partition, too_old=too_old)
            table.wipe()
        self.reached = max(table.offset, beginning)

    def read_on(self) -> None:
        """Has the reader bring what follows."""
        if not self.is_reading:
            self._reader.add(self.partition, self.reached)
            self.is_reading = True

    def take(self, records: Sequence[Received], as_of_ms: int) -> None:
        """Rows of the changelog have been read. `as_of_ms`: since when the table is known to be true to it."""
        assert self.table is not None
        if records[0].offset() < self.reached:
            # The table has them: what was fetched before the reading was begun anew must not set it back.
            records = [record for record in records if record.offset() >= self.reached]
            if not records:
                return
        self.reached = records[-1].offset() + 1
        self.rows += len(records)
        rows = [(record.key() or b"", record.value()) for record in records]
        index_rows = self._program.index_rows(self.table, rows)
        self.table.write(rows, self.reached, as_of_ms, index_rows)

    def met_end(self, offset: int) -> bool:
        """The reader has met an end: the last one, or the first record of an open transaction. Whether that is news."""
        is_news = offset > self.reached
        self.reached = max(self.reached, offset)
        return is_news

    def stop(self) -> None:
        """Reads no further."""
        if self.is_reading:
            self._reader.remove(self.partition)
            self.is_reading = False
