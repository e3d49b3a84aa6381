"""A warm standby: the tables of partitions that others own follow their changelog, so that a takeover reads the tail.

Nothing is decided from what is followed. A takeover asks and checks all that it does without a standby, and finds a
local table that is nearly there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from mainspring.processors.core import Now
from mainspring.processors.engine.errors import OffsetOutOfRangeError, TransactionError
from mainspring.processors.engine.ports import ChangelogReader, Clock, Pending, Place, Received
from mainspring.processors.engine.replay import SLICE_RECORDS, Replay
from mainspring.processors.engine.takeover import TakeoverContext
from mainspring.schemas import RegistryError, UnreadableRecordError
from mainspring.telemetry import get_logger, metrics

__all__ = ["LOOK_EVERY_MS", "REST_MS", "RETRY_MS", "Standby"]

LOOK_EVERY_MS: Final = 5_000
"""How often the ends of the changelog are asked for, and whether it is still the same."""

REST_MS: Final = 60_000
"""How long a partition is left alone whose rows could not be read."""

RETRY_MS: Final = 1_000
"""When to ask again after a question that was not answered."""

_TURN_MS: Final = 10
"""What one turn of the loop gives to following at most: so long may an input have to wait for it."""

_CREDIT_MS: Final = 20
"""What is saved of idle time at most."""

_CHUNK: Final = 500
"""Records between two looks at the clock."""

_log = get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class _Follower:
    """One partition that is followed."""

    replay: Replay
    identity: str
    as_of_ms: int
    """When all rows of the table were last known to be those of the changelog (wall clock)."""
    end: int = 0
    """The changelog's end at the last look; behind it, the table is true as of that look."""
    asked_at_ms: int = 0
    lag: int = 0
    """What was written and not read at the last look."""

    def write_offset(self) -> None:
        """Tells the table how far it is, where no row does."""
        if self.replay.table is not None:
            self.replay.table.write((), self.replay.reached, self.as_of_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """Questions that are under way."""

    asked_at_ms: int
    ends: Pending[dict[Place, int]]
    beginnings: Pending[dict[Place, int]]
    identity: Pending[str]

    @property
    def is_done(self) -> bool:
        return self.ends.done() and self.beginnings.done() and self.identity.done()


class Standby:
    """Follows the partitions that this process does not own, in the time that its loop would only wait."""

    def __init__(
        self, partitions: Iterable[int], context: TakeoverContext, reader: ChangelogReader, clock: Clock
    ) -> None:
        self._partitions = frozenset(partitions)
        self._context = context
        self._reader = reader
        self._clock = clock
        self._changelog = context.program.changelog
        self._followers: dict[int, _Follower] = {}
        self._rests: dict[int, int] = {}
        """By partition that could not be read, until when it is left alone (monotonic)."""
        self._look: _Look | None = None
        self._look_at_ms = self._retry_at_ms = clock.mono_ms()
        self._credit_ms = 0
        self.is_behind = False
        """Whether there was more to read than there was time for."""

    def advance(self, owned: Iterable[int], now: Now, idle_ms: int, *, is_held: bool) -> None:
        """One turn: lets go of what is `owned` now, and reads on for as long as the loop has been idle, and no longer.

        `is_held`: a takeover is under way, which comes first. What is owned is let go before this returns, so its
        table may be opened.
        """
        wanted = self._partitions.difference(owned, self._resting(now))
        for number in self._followers.keys() - wanted:
            self._drop(number)
        self._credit_ms = min(self._credit_ms + idle_ms, _CREDIT_MS)
        if not wanted or is_held:
            # An answer from before a takeover knows nothing of what the owner has written since.
            self._look = None
            self.is_behind = False
            return
        self._look_around(wanted, now)
        if self._followers:
            self._follow(now)

    def lags(self) -> dict[int, int]:
        """By partition that is followed, how many changelog offsets were written and not read at the last look."""
        return {number: follower.lag for number, follower in list(self._followers.items())}

    def close(self) -> None:
        """Reads no further."""
        for number in list(self._followers):
            self._drop(number)
        self._reader.close()

    def _resting(self, now: Now) -> list[int]:
        self._rests = {number: until_ms for number, until_ms in self._rests.items() if now.mono_ms < until_ms}
        return [*self._rests]

    def _look_around(self, wanted: frozenset[int], now: Now) -> None:
        """Asks where the changelog begins and ends, and which it is, now and then and whenever a partition is new."""
        look = self._look
        if look is not None:
            if look.is_done:
                self._look = None
                self._answer(look, wanted, now)
            return
        is_due = now.mono_ms >= self._look_at_ms or bool(wanted - self._followers.keys())
        if not is_due or now.mono_ms < self._retry_at_ms:
            return
        self._look_at_ms = now.mono_ms + LOOK_EVERY_MS
        places = [(self._changelog, number) for number in sorted(wanted)]
        admin = self._context.admin
        self._look = _Look(
            asked_at_ms=now.wall_ms,
            ends=admin.ends(places),
            beginnings=admin.beginnings(places),
            identity=admin.topic_id(self._changelog),
        )

    def _answer(self, look: _Look, wanted: frozenset[int], now: Now) -> None:
        try:
            ends, beginnings, identity = look.ends.result(), look.beginnings.result(), look.identity.result()
        except TransactionError as error:
            _log.info("standby waits for the broker", why=str(error))
            self._retry_at_ms = now.mono_ms + RETRY_MS
            return
        for number in wanted:
            place = (self._changelog, number)
            if place not in ends or place not in beginnings:
                continue
            follower = self._followers.get(number)
            if follower is not None and self._is_void(follower, identity, beginnings[place], now):
                self._drop(number)
                follower = None
            if follower is None:
                follower = self._begin(number, identity, beginnings[place], ends[place], now)
            follower.end, follower.asked_at_ms = ends[place], look.asked_at_ms
            follower.lag = max(0, follower.end - follower.replay.reached)
            metrics.STANDBY_LAG.labels(partition=number).set(follower.lag)
            self._settle(follower, now)

    def _is_void(self, follower: _Follower, identity: str, beginning: int, now: Now) -> bool:
        """Whether the changelog is another one, or has lost what was to be read, or may have lost deletions of it."""
        is_too_old = now.wall_ms - follower.as_of_ms > self._context.delete_retention_ms
        return follower.identity != identity or beginning > follower.replay.reached or is_too_old

    def _begin(self, number: int, identity: str, beginning: int, end: int, now: Now) -> _Follower:
        context = self._context
        replay = Replay(number, program=context.program, tables=context.tables, reader=self._reader)
        replay.begin(identity, beginning, end, now, delete_retention_ms=context.delete_retention_ms)
        replay.read_on()
        table = replay.table
        assert table is not None
        as_of_ms = table.as_of_ms if table.offset else now.wall_ms
        follower = self._followers[number] = _Follower(replay=replay, identity=identity, as_of_ms=as_of_ms)
        _log.info("partition followed", partition=number, remaining=max(0, end - replay.reached))
        return follower

    def _drop(self, number: int) -> None:
        self._followers.pop(number).replay.stop()
        self._context.tables.release(number)
        metrics.STANDBY_LAG.remove(str(number))

    def _follow(self, now: Now) -> None:
        """Reads on, chunk by chunk, until there is nothing more or the time is up."""
        began_ms = self._clock.mono_ms()
        limit_ms, spent_ms = min(self._credit_ms, _TURN_MS), 0
        if limit_ms <= 0:
            return
        for _ in range(SLICE_RECORDS // _CHUNK):
            self.is_behind = self._read_chunk(now)
            spent_ms = self._clock.mono_ms() - began_ms
            if not self.is_behind or spent_ms >= limit_ms:
                break
        # Below zero where a chunk took too long: that is made up for.
        self._credit_ms -= spent_ms

    def _read_chunk(self, now: Now) -> bool:
        """Whether there may be more."""
        try:
            result = self._reader.read(_CHUNK, 0)
        except OffsetOutOfRangeError as error:
            # What else was read is lost with it, so all begin again from what their tables have.
            _log.warning("the changelog has lost what a standby was to read; it begins again", why=str(error))
            for number in list(self._followers):
                self._drop(number)
            self._retry_at_ms = now.mono_ms + RETRY_MS
            return False
        rows: dict[int, list[Received]] = {}
        for record in result.records:
            rows.setdefault(record.partition(), []).append(record)
        for number, records in rows.items():
            self._take(number, records, now)
        for (_, number), offset in result.ends:
            follower = self._followers.get(number)
            if follower is not None and follower.replay.met_end(offset):
                follower.write_offset()
                self._settle(follower, now)
        return len(result.records) + len(result.ends) >= _CHUNK

    def _take(self, number: int, records: Sequence[Received], now: Now) -> None:
        follower = self._followers.get(number)
        if follower is None:
            return
        try:
            follower.replay.take(records, follower.as_of_ms)
        except (UnreadableRecordError, RegistryError) as error:
            # Its owner may be of a later version. What is owned here goes on.
            _log.warning("a standby cannot read the changelog, and rests", partition=number, why=str(error))
            self._drop(number)
            self._rests[number] = now.mono_ms + REST_MS
        else:
            self._settle(follower, now)

    def _settle(self, follower: _Follower, now: Now) -> None:
        """Once all is read that was there at the last look, the table is true as of then.

        Not where that took so long that deletions may be gone from the changelog: the next look finds that.
        """
        is_too_old = now.wall_ms - follower.as_of_ms > self._context.delete_retention_ms
        if follower.replay.reached >= follower.end and follower.asked_at_ms > follower.as_of_ms and not is_too_old:
            follower.as_of_ms = follower.asked_at_ms
            follower.write_offset()
