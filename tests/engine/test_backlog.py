"""What was read and does not fit into one transaction: bounded, in order, void when its partition moves."""

from hypothesis import given
from hypothesis import strategies as st

from mainspring.processors.engine.backlog import Backlog
from mainspring.processors.engine.ports import ReadResult, Received
from tests.engine.fake_record import FakeRecord


def commands(count: int, size: int, partition: int = 0) -> list[Received]:
    return [FakeRecord(("commands", partition), at, size) for at in range(count)]


def offsets(read: ReadResult) -> list[int]:
    return [record.offset() for record in read.records]


def test_while_something_waits_no_more_is_read_than_lets_the_group_see_us() -> None:
    backlog = Backlog(max_records=4_000, max_bytes=100)
    assert backlog.room == 4_000

    backlog.take(ReadResult(records=commands(5, size=60)))
    assert backlog.room == 1

    while backlog:
        backlog.take(ReadResult())
    assert backlog.room == 4_000


def test_an_end_counts_as_reached_only_when_all_before_it_has_been_taken_out() -> None:
    heartbeats, large = ("attempts", 0), ("commands", 0)
    backlog = Backlog(max_records=4_000, max_bytes=100)

    first = backlog.take(
        ReadResult(
            records=[*commands(2, size=90), FakeRecord(heartbeats, 7, 10)],
            ends=[(heartbeats, 8), (("followups", 0), 0)],
        )
    )
    second = backlog.take(ReadResult(ends=[(large, 2)]))

    assert (offsets(first), first.ends) == ([0], [(("followups", 0), 0)])
    assert (offsets(second), dict(second.ends)) == ([1, 7], {heartbeats: 8, large: 2})
    assert not backlog


def test_what_waits_of_a_partition_that_moved_is_dropped_with_its_ends() -> None:
    backlog = Backlog(max_records=4_000, max_bytes=100)
    both = [*commands(2, size=60), *commands(2, size=60, partition=1)]
    backlog.take(ReadResult(records=both, ends=[(("commands", 0), 2), (("commands", 1), 2)]))

    backlog.drop({0})

    rest = [backlog.take(ReadResult()) for _ in range(3)]
    assert [(record.partition(), record.offset()) for read in rest for record in read.records] == [(1, 0), (1, 1)]
    assert [end for read in rest for end in read.ends] == [(("commands", 1), 2)]


@given(st.lists(st.integers(min_value=0, max_value=250), max_size=30), st.integers(1, 200))
def test_everything_comes_out_once_in_order_and_in_pieces_that_fit(sizes: list[int], max_bytes: int) -> None:
    backlog = Backlog(max_records=10, max_bytes=max_bytes)
    read: list[Received] = [FakeRecord(("commands", 0), at, size) for at, size in enumerate(sizes)]

    pieces = [backlog.take(ReadResult(records=list(read)))]
    while backlog:
        pieces.append(backlog.take(ReadResult()))

    assert [record for piece in pieces for record in piece.records] == read
    for piece in pieces:
        assert len(piece.records) <= 1 or sum(len(record.value() or b"") for record in piece.records) <= max_bytes


def test_what_was_not_decided_comes_first_and_its_end_is_told_again() -> None:
    backlog = Backlog(max_records=10, max_bytes=100)
    place = ("commands", 0)
    taken = backlog.take(ReadResult(records=commands(4, size=10), ends=[(place, 4)]))

    backlog.put_back(taken.records[1:], {place: 4})
    assert backlog.room == 7, "others are read meanwhile, as much as fits beside"
    again = backlog.take(ReadResult(records=[FakeRecord(place, 4), FakeRecord(place, 5)], ends=[(place, 6)]))

    assert offsets(again) == [1, 2, 3, 4, 5]
    assert again.ends == [(place, 6)]


def test_what_was_put_back_of_a_partition_that_was_set_back_is_read_again() -> None:
    backlog = Backlog(max_records=10, max_bytes=100)
    backlog.put_back([*commands(2, size=1), *commands(2, size=1, partition=1)], {("commands", 0): 2})

    backlog.drop({0})

    read = backlog.take(ReadResult())
    assert ([record.partition() for record in read.records], read.ends) == ([1, 1], [])
