"""How a partition changes hands: nothing is read before everything that its former owners did is known.

The order is what makes it right. Stable committed offsets first: a transaction of a former owner that is still open
could yet move them. Then the end of the changelog as it is on disk, uncommitted rows included: a consumer that reads
committed rows only meets its first end at the first open transaction, and rows that others committed behind it would
be missed. Then the rows up to that end; then the position row tells where to go on, and must agree with the committed
offsets.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mainspring.processors.core import Now
from mainspring.processors.engine.errors import (
    BrokenPromiseError,
    DeniedError,
    FaultKind,
    TransactionError,
    UnstableOffsetsError,
)
from mainspring.processors.engine.ports import Admin, ChangelogReader, Inputs, Kafka, Mark, Pending, Place, Received
from mainspring.processors.engine.program import Position, Program
from mainspring.processors.engine.replay import Replay
from mainspring.processors.engine.tables import Table, Tables
from mainspring.telemetry import get_logger

__all__ = ["FENCE_AFTER_MS", "HANGS_AFTER_MS", "Takeover", "TakeoverContext", "owner_mark"]

FENCE_AFTER_MS = 500
"""A living owner's transaction is over by then; a dead one's would hold everybody up until it times out."""

HANGS_AFTER_MS = 30_000
"""No transaction of ours lives so long: its time-out has passed, and the broker has looked for such several times."""

_RETRY_MS = 30
_NEW = "#new"

_log = get_logger(__name__)


def owner_mark(owner: str, *, has_rows: bool) -> str:
    """What is noted beside a committed offset: whose it is, and whether the changelog has anything of it."""
    return owner if has_rows else owner + _NEW


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeoverContext:
    """What every takeover of a process works with."""

    kafka: Kafka
    admin: Admin
    inputs: Inputs
    reader: ChangelogReader
    program: Program
    tables: Tables
    owner: str
    """Our own transactional id."""
    delete_retention_ms: int
    """How long the changelog keeps a deletion: a local table that is older may hold rows that were deleted since."""


class Takeover:
    """One takeover, from being assigned to being ready. `advance` moves it on as far as it goes without waiting."""

    def __init__(self, partition: int, context: TakeoverContext, now: Now, *, table: Table | None = None) -> None:
        self.partition = partition
        self.is_done = False
        self.start: dict[Place, int] = {}
        self.counter = 0
        self._replay = Replay(
            partition, program=context.program, tables=context.tables, reader=context.reader, table=table
        )
        self._context = context
        self._places = context.program.places(partition)
        self._claims = table is None
        self._changelog: Place = (context.program.changelog, partition)
        self._marks: dict[Place, Mark | None] = {}
        self._beginnings: dict[Place, int] = {}
        self._end = 0
        self._stuck_since_ms: int | None = None
        self._fenced = False
        self._has_said_hangs = False
        self._retry_at_ms = now.mono_ms
        self._has_rows = False
        self._doubted: tuple[dict[Place, Mark | None], int] | None = None
        self._offsets: Pending[dict[Place, Mark | None]]
        self._ends_answer: Pending[dict[Place, int]]
        self._beginnings_answer: Pending[dict[Place, int]]
        self._identity_answer: Pending[str]
        self._claim_answer: Pending[None]
        self._step: Callable[[Now], bool] = self._ask_offsets
        self.phase = "offsets"

    @property
    def table(self) -> Table | None:
        """The table, once it is open."""
        return self._replay.table

    @property
    def restored_rows(self) -> int:
        """Changelog records read."""
        return self._replay.rows

    @property
    def remaining(self) -> int:
        """Changelog offsets still to be read."""
        return max(0, self._end - self._replay.reached)

    def advance(self, now: Now) -> bool:
        """Goes on as far as possible. True once the partition may be opened: `table`, `counter`, `start` are set then.

        Raises `BrokenPromiseError` when what was found does not fit together.
        """
        while not self.is_done:
            if now.mono_ms < self._retry_at_ms:
                return False
            try:
                if not self._step(now):
                    return False
            except TransactionError as error:
                if error.kind is FaultKind.DENIED:
                    raise DeniedError(f"{error.code}: {error.detail}") from error
                _log.warning(
                    "takeover waits for the broker", partition=self.partition, phase=self.phase, why=str(error)
                )
                self._retry_at_ms = now.mono_ms + _RETRY_MS * 10
                self._step = {"offsets": self._ask_offsets, "ends": self._ask_ends, "claim": self._ask_claim}.get(
                    self.phase, self._step
                )
        return True

    def restored(self, records: Sequence[Received], now: Now) -> None:
        """Rows of the changelog have been read."""
        if self._replay.is_reading:
            self._stuck_since_ms = None
            self._replay.take(records, now.wall_ms)

    def met_end(self, offset: int, now: Now) -> None:
        """The reader has met an end: the last one, or the first record of an open transaction."""
        if not self._replay.is_reading:
            return
        if self._replay.met_end(offset):
            self._stuck_since_ms = None
        if offset < self._end and self._stuck_since_ms is None:
            self._stuck_since_ms = now.mono_ms

    def cancel(self) -> None:
        """The partition left before it was taken over."""
        self._replay.stop()

    def _ask_offsets(self, now: Now) -> bool:
        self.phase = "offsets"
        self._offsets = self._context.admin.committed(self._places, stable=True)
        self._step = self._await_offsets
        return True

    def _await_offsets(self, now: Now) -> bool:
        if not self._offsets.done():
            return False
        try:
            self._marks = self._offsets.result()
        except UnstableOffsetsError:
            if self._stuck_since_ms is None:
                self._stuck_since_ms = now.mono_ms
            if now.mono_ms - self._stuck_since_ms >= FENCE_AFTER_MS and not self._fenced:
                self._offsets = self._context.admin.committed(self._places, stable=False)
                self._step = self._await_owner
                return True
            self._retry_at_ms = now.mono_ms + _RETRY_MS
            self._step = self._ask_offsets
            return False
        self._stuck_since_ms = None
        self._step = self._ask_ends
        return True

    def _await_owner(self, now: Now) -> bool:
        if not self._offsets.done():
            return False
        self._fence(self._offsets.result())
        self._step = self._ask_offsets
        return True

    def _ask_ends(self, now: Now) -> bool:
        self.phase = "ends"
        admin = self._context.admin
        self._ends_answer = admin.ends([self._changelog])
        self._beginnings_answer = admin.beginnings([*self._places, self._changelog])
        self._identity_answer = admin.topic_id(self._changelog[0])
        self._step = self._await_ends
        return True

    def _await_ends(self, now: Now) -> bool:
        answers = (self._ends_answer, self._beginnings_answer, self._identity_answer)
        if not all(answer.done() for answer in answers):
            return False
        self._end = self._ends_answer.result()[self._changelog]
        self._beginnings = self._beginnings_answer.result()
        self._replay.begin(
            self._identity_answer.result(),
            self._beginnings[self._changelog],
            self._end,
            now,
            delete_retention_ms=self._context.delete_retention_ms,
        )
        if self._replay.reached < self._end:
            self._replay.read_on()
        self._step = self._restore
        self.phase = "restore"
        return True

    def _restore(self, now: Now) -> bool:
        replay = self._replay
        if replay.reached < self._end:
            stuck_ms = 0 if self._stuck_since_ms is None else now.mono_ms - self._stuck_since_ms
            if stuck_ms >= FENCE_AFTER_MS and not self._fenced:
                self._fence(self._marks)
            if stuck_ms >= HANGS_AFTER_MS and not self._has_said_hangs:
                self._say_that_it_hangs()
            return False
        replay.stop()
        if replay.table is not None:
            replay.table.write((), replay.reached, now.wall_ms)
            try:
                self._settle(self._context.program.read_position(replay.table), replay.table)
            except BrokenPromiseError as error:
                if not self._may_be_outdated():
                    raise
                _log.warning("offsets and changelog disagree, and are looked at again", why=str(error))
                self._step = self._ask_offsets
                return True
        self._step = self._ask_claim if self._claims else self._finish
        return True

    def _say_that_it_hangs(self) -> None:
        self._has_said_hangs = True
        topic, number = self._changelog
        place = f"--topic {topic} --partition {number} --start-offset {self._replay.reached}"
        _log.error(
            "a transaction in the changelog does not end, and nobody can decide for the partition until it does",
            partition=number,
            offset=self._replay.reached,
            why="its producer is gone and the broker has forgotten it; KAFKA-20734 does that to brokers without copies",
            hint=f"`kafka-transactions.sh --bootstrap-server … abort {place}` ends it; `find-hanging` shows where else",
        )

    def _may_be_outdated(self) -> bool:
        """Whether what was found may fit together after another look.

        A process that was stopped in the middle of a takeover may have lost the partition without knowing it yet:
        then somebody else has moved on between the offsets and the rows that were read. What stays the same is wrong.
        """
        found = (self._marks, self._replay.reached)
        is_new = found != self._doubted
        self._doubted = found
        return is_new

    def _settle(self, position: Position | None, table: Table) -> None:
        """From where to go on, if everything fits together."""
        if position is None:
            self._settle_first_start(table)
            return
        self._has_rows = True
        self.counter = position.counter
        for place in self._places:
            at, mark = position.offsets[place[0]], self._marks[place]
            if mark is not None and mark.offset != at:
                raise BrokenPromiseError(
                    f"{place[0]}[{place[1]}]: the group has committed offset {mark.offset}, the changelog says {at}. "
                    "Both are written in one transaction, so someone has changed one of them by hand, or removed a "
                    f"topic. Set the group's offset to {at} if the changelog is right; to go on anyway could lose jobs."
                )
            self.start[place] = at if at >= 0 else self._beginnings[place]

    def _settle_first_start(self, table: Table) -> None:
        if next(iter(table.scan(b"")), None) is not None:
            raise BrokenPromiseError(
                f"{self._changelog[0]}[{self.partition}] has rows but no position row: it was not written by this "
                "program, or rows were deleted by hand. Restore the topic, or begin with another prefix."
            )
        for place in self._places:
            mark = self._marks[place]
            if mark is not None and not mark.metadata.endswith(_NEW):
                raise BrokenPromiseError(
                    f"{place[0]}[{place[1]}] has been processed up to offset {mark.offset} and the changelog is empty: "
                    f"the topic {self._changelog[0]} was deleted or made again, and with it the state of every job. "
                    "Restore it, or begin with another prefix."
                )
            self.start[place] = self._beginnings[place] if mark is None else mark.offset

    def _ask_claim(self, now: Now) -> bool:
        # A note of who owns the partition now, before its first transaction: should this process die inside that one,
        # the next owner must end it, and not the transaction of whoever owned the partition before and lives.
        self.phase = "claim"
        mark = owner_mark(self._context.owner, has_rows=self._has_rows)
        marks = {place: Mark(offset=at, metadata=mark) for place, at in self.start.items()}
        self._claim_answer = self._context.inputs.claim(marks)
        self._step = self._await_claim
        return True

    def _await_claim(self, now: Now) -> bool:
        if not self._claim_answer.done():
            return False
        self._claim_answer.result()
        self._step = self._finish
        return True

    def _finish(self, now: Now) -> bool:
        self.phase = "done"
        self.is_done = True
        return True

    def _fence(self, marks: dict[Place, Mark | None]) -> None:
        self._fenced = True
        owners = {mark.metadata.removesuffix(_NEW) for mark in marks.values() if mark is not None and mark.metadata}
        for owner in sorted(owners - {self._context.owner}):
            _log.warning("ending the transaction of a dead owner", partition=self.partition, owner=owner)
            self._context.kafka.fence(owner)
