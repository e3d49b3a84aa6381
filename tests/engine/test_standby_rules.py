"""When a standby reads, how much, and what it believes of its tables; without a broker."""

from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from mainspring.processors.core import Now, Rules
from mainspring.processors.engine.errors import ConfigurationError, FaultKind, OffsetOutOfRangeError, TransactionError
from mainspring.processors.engine.ports import Pending, Place, ReadResult
from mainspring.processors.engine.standby import LOOK_EVERY_MS, Standby
from mainspring.processors.engine.tables.memory import MemoryTable
from mainspring.processors.scheduler import SchedulerConfig
from mainspring.schemas import Codec
from mainspring.topics import Connection, Topology

T = TypeVar("T")

DAY_MS = 86_400_000
RECORDS_PER_MS = 50
"""What reading costs here."""


class Row:
    """A record of the changelog."""

    def __init__(self, partition: int, offset: int) -> None:
        self._partition = partition
        self._offset = offset

    def topic(self) -> str:
        return "changelog"

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return b"%d" % self._offset

    def value(self) -> bytes:
        return b"row"


class Site:
    """A changelog, a disk and a clock: all that a standby asks for."""

    def __init__(self, partitions: int = 2) -> None:
        self.now_ms = 10 * DAY_MS
        self.end = dict.fromkeys(range(partitions), 0)
        self.beginning = dict.fromkeys(range(partitions), 0)
        self.identity = "first"
        self.outage: TransactionError | None = None
        self.gap: OffsetOutOfRangeError | None = None
        self.disk: dict[tuple[int, str], MemoryTable] = {}
        self.reading: dict[int, int] = {}
        self.read = 0
        self.asked = 0
        context: Any = SimpleNamespace(
            program=SimpleNamespace(changelog="changelog", layout="1", index_rows=lambda _table, _rows: []),
            tables=SimpleNamespace(open=self._open, release=lambda _: None),
            admin=SimpleNamespace(ends=self._ends, beginnings=self._beginnings, topic_id=self._topic_id),
            delete_retention_ms=DAY_MS,
        )
        reader: Any = SimpleNamespace(
            add=self.reading.__setitem__, remove=self.reading.__delitem__, read=self._read, close=lambda: None
        )
        clock: Any = SimpleNamespace(mono_ms=lambda: self.now_ms)
        self.standby = Standby(range(partitions), context, reader, clock)

    def turn(self, *, owned: Sequence[int] = (), idle_ms: int = 1_000, is_held: bool = False) -> int:
        """One turn of the loop; returns how long it took."""
        before_ms = self.now_ms
        now = Now(wall_ms=self.now_ms, mono_ms=self.now_ms)
        self.standby.advance(owned, now, idle_ms, is_held=is_held)
        return self.now_ms - before_ms

    def catch_up(self) -> None:
        """Turns until nothing is left to be read, and the standby has looked and seen it."""
        for _ in range(10):
            while self.turn():
                pass
            self.now_ms += LOOK_EVERY_MS

    def table(self, partition: int = 0) -> MemoryTable:
        return self.disk[partition, f"{self.identity}/1"]

    def _open(self, partition: int, origin: str) -> MemoryTable:
        return self.disk.setdefault((partition, origin), MemoryTable())

    def _ends(self, places: Sequence[Place]) -> Pending[dict[Place, int]]:
        self.asked += 1
        return self._answered({place: self.end[place[1]] for place in places})

    def _beginnings(self, places: Sequence[Place]) -> Pending[dict[Place, int]]:
        return self._answered({place: self.beginning[place[1]] for place in places})

    def _topic_id(self, _topic: str) -> Pending[str]:
        return self._answered(self.identity)

    def _answered(self, found: T) -> Pending[T]:
        answer: Future[T] = Future()
        if self.outage is None:
            answer.set_result(found)
        else:
            answer.set_exception(self.outage)
        return answer

    def _read(self, max_records: int, _wait_ms: int) -> ReadResult:
        if self.gap is not None:
            error, self.gap = self.gap, None
            raise error
        result = ReadResult()
        for number, offset in list(self.reading.items()):
            until = min(self.end[number], offset + max_records - len(result.records))
            result.records.extend(Row(number, at) for at in range(offset, until))
            self.reading[number] = until
            if until == self.end[number]:
                result.ends.append((("changelog", number), until))
        self.read += len(result.records)
        self.now_ms += -(-len(result.records) // RECORDS_PER_MS)
        return result


def test_it_takes_no_more_time_than_the_loop_has_been_idle_and_never_much_at_once() -> None:
    # given far more rows than fit into a turn
    site = Site(partitions=1)
    site.end[0] = 1_000_000
    site.turn()
    site.turn(idle_ms=0)

    # when
    site.turn(idle_ms=0)
    took_ms = {idle_ms: [site.turn(idle_ms=idle_ms) for _ in range(50)] for idle_ms in (1, 5, 1_000)}

    # then: a piece is read to its end, and what that took too long is paid with the next
    piece_ms = 10
    assert all(sum(took) <= 50 * idle_ms + piece_ms + 20 for idle_ms, took in took_ms.items())
    assert max(took_ms[1_000]) <= 10 + piece_ms
    assert sum(took_ms[5]) >= 50 * 5 // 2


def test_what_comes_in_small_pieces_is_paid_for_as_well() -> None:
    # given rows that never fill a reading
    site = Site(partitions=1)
    site.turn()
    site.turn()

    # when
    took_ms = 0
    for _ in range(200):
        site.end[0] += 400
        took_ms += site.turn(idle_ms=1)

    # then
    assert 100 <= took_ms <= 200 + 10 + 20


def test_records_that_were_read_before_set_nothing_back() -> None:
    site = Site(partitions=1)
    site.end[0] = 300
    site.catch_up()

    # when the reader brings some of them again, with new ones behind them
    site.reading[0], site.end[0] = 200, 250
    site.turn()
    offset = site.table().offset
    site.reading[0], site.end[0] = 200, 400
    site.catch_up()

    # then
    assert (offset, site.table().offset, len(list(site.table().scan(b"")))) == (300, 400, 400)


def test_a_question_that_is_not_answered_is_not_asked_again_at_once() -> None:
    site = Site(partitions=1)
    site.outage = TransactionError(FaultKind.UNKNOWN, "_TRANSPORT", "away")

    for _ in range(100):
        site.turn()
        site.now_ms += 10

    assert 1 <= site.asked <= 2


def test_a_busy_process_follows_nothing() -> None:
    # given a standby that is behind, and has used up what was saved of idle time
    site = Site(partitions=1)
    site.end[0] = 1_000_000
    for _ in range(3):
        site.turn()
    while site.turn(idle_ms=0):
        pass
    before = site.read

    # when the loop never waits
    for _ in range(100):
        site.turn(idle_ms=0)

    # then
    assert site.read == before > 0


def test_a_takeover_comes_first() -> None:
    site = Site()
    site.end.update({0: 500, 1: 500})

    # when partition 0 is being taken over
    for _ in range(10):
        site.turn(owned=[0], is_held=True)
    assert (site.read, site.asked) == (0, 0)

    # and then has been
    for _ in range(10):
        site.turn(owned=[0])

    # then
    assert site.table(1).offset == 500
    assert site.standby.lags() == {1: 500}, "as of the look before it read"


def test_what_is_owned_is_let_go_of_before_it_may_be_opened_and_is_followed_again_afterwards() -> None:
    site = Site()
    site.catch_up()
    assert set(site.reading) == {0, 1}

    site.turn(owned=[1], is_held=True)
    assert set(site.reading) == {0}

    site.catch_up()
    assert set(site.reading) == {0, 1}


def test_an_answer_from_before_a_takeover_does_not_make_the_table_of_its_owner_useless() -> None:
    # given a question that is answered when the partition has been given to this process,
    site = Site(partitions=1)
    site.end[0] = 300
    site.catch_up()
    asked = site.asked
    while site.asked == asked:
        site.now_ms += LOOK_EVERY_MS
        site.turn()
    site.turn(owned=[0], is_held=True)

    # when that has written to it, and gives it away again
    site.end[0] = 900
    site.table().write((), 900, site.now_ms)
    site.turn(owned=[0])
    site.catch_up()

    # then it goes on from there, and reads nothing twice
    assert (site.table().offset, site.read) == (900, 300)


def test_who_owns_all_is_behind_in_nothing_and_its_loop_may_sleep() -> None:
    site = Site(partitions=1)
    site.end[0] = 1_000_000
    for _ in range(3):
        site.turn()
    assert site.standby.is_behind

    site.turn(owned=[0])

    assert not site.standby.is_behind


def test_a_table_that_is_up_to_date_stays_so_however_long_nothing_is_written() -> None:
    site = Site(partitions=1)
    site.end[0] = 300
    site.catch_up()

    # when nothing happens for two days
    for _ in range(48):
        site.now_ms += DAY_MS // 24
        site.catch_up()

    # then a takeover finds it fresh
    assert site.now_ms - site.table().as_of_ms < 5 * LOOK_EVERY_MS
    assert site.read == 300


def test_a_table_that_is_behind_is_as_old_as_what_it_was_last_seen_to_equal() -> None:
    # given a table that equals its changelog
    site = Site(partitions=1)
    site.end[0] = 300
    site.catch_up()
    before_ms = site.table().as_of_ms

    # when more is written than there is time to read
    site.end[0] = 1_000_000
    for _ in range(20):
        site.now_ms += LOOK_EVERY_MS
        site.turn(idle_ms=5)

    # then
    assert site.table().offset > 300
    assert site.table().as_of_ms - before_ms < 5 * LOOK_EVERY_MS


def test_who_was_behind_for_longer_than_deletions_are_kept_begins_again() -> None:
    # given a table with rows, and a process that has stood still for two days
    site = Site(partitions=1)
    site.end[0] = 300
    site.catch_up()
    site.end[0] = 400
    site.now_ms += 2 * DAY_MS

    # when
    site.catch_up()

    # then all is read again, for the deletion of a row may be gone
    assert site.read == 300 + 400
    assert (site.table().offset, site.standby.lags()) == (400, {0: 0})


@pytest.mark.parametrize("what", ["made anew", "beginning moved"])
def test_rows_that_are_not_those_of_the_changelog_any_more_are_forgotten(what: str) -> None:
    site = Site(partitions=1)
    site.end[0] = 300
    site.catch_up()

    # when
    if what == "made anew":
        site.identity, site.end[0] = "second", 200
    else:
        site.beginning[0], site.end[0] = 800, 900
        # The client library is behind its last record, and hears of it first.
        site.gap = OffsetOutOfRangeError(("changelog", 0), "out of range")
    site.catch_up()

    # then
    rows = {int(key) for key, _ in site.table().scan(b"")}
    assert rows == set(range(site.beginning[0], site.end[0]))


def test_a_gap_in_one_partition_loses_nothing_of_another() -> None:
    # given two partitions, and a reading that fails for one of them, with whatever it had of the other
    site = Site()
    site.end.update({0: 100, 1: 100})
    site.catch_up()
    site.end.update({0: 200, 1: 200})
    site.reading[1] = 150
    site.gap = OffsetOutOfRangeError(("changelog", 0), "out of range")

    # when
    site.catch_up()

    # then
    assert [len(list(site.table(number).scan(b""))) for number in (0, 1)] == [200, 200]


def test_while_the_broker_is_away_it_waits() -> None:
    site = Site(partitions=1)
    site.end[0] = 100
    site.outage = TransactionError(FaultKind.UNKNOWN, "_TIMED_OUT", "no answer")
    site.catch_up()
    assert site.standby.lags() == {}

    site.outage = None
    site.catch_up()

    assert site.table().offset == 100


def test_a_scheduler_with_its_tables_in_memory_is_no_standby(tmp_path: Path) -> None:
    given: Any = {
        "connection": Connection("localhost:9092"),
        "topology": Topology(prefix="t."),
        "codec": Codec.embedded(),
        "rules": Rules(partitions=12),
    }

    with pytest.raises(ConfigurationError, match="give it a state directory"):
        SchedulerConfig(**given, standby=True)

    assert SchedulerConfig(**given, standby=True, state_dir=tmp_path).engine_options().standby == range(12)
    assert not SchedulerConfig(**given, state_dir=tmp_path).engine_options().standby
