"""The parts of the loop that need no Kafka: pace, batches, staged rows, placement of offers."""

from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.processors.engine.batch import Slice, in_order, split
from mainspring.processors.engine.pace import Pace
from mainspring.processors.engine.partition import Partition
from mainspring.processors.engine.staged import StagedColumn
from mainspring.processors.engine.tables import MemoryTables
from mainspring.processors.scheduler.placement import SILENT_MS, Placed, WorkPlacement
from mainspring.schemas import Priority
from mainspring.topics import Topology
from tests.engine.fake_record import FakeRecord

INPUTS = ("followups", "attempts", "commands")


def owned(number: int, *, ready: bool = True, at: int = 0) -> Partition:
    places = [(topic, number) for topic in INPUTS]
    program = object() if ready else None
    return Partition(number=number, places=places, program=program, position=dict.fromkeys(places, at))  # type: ignore[arg-type]  # never called


def test_a_batch_is_decided_in_the_order_of_the_inputs_whatever_came_first() -> None:
    read = [
        FakeRecord(("commands", 0), 0),
        FakeRecord(("attempts", 1), 4),
        FakeRecord(("followups", 0), 2),
        FakeRecord(("commands", 0), 1),
    ]

    batch = in_order(read, INPUTS, {0: owned(0), 1: owned(1)})

    assert [(each.topic, each.partition, [record.offset() for record in each.records]) for each in batch] == [
        ("followups", 0, [2]),
        ("attempts", 1, [4]),
        ("commands", 0, [0, 1]),
    ]


def test_records_of_partitions_that_are_not_ours_or_not_ready_are_left_out() -> None:
    read = [FakeRecord(("commands", number), 0) for number in range(3)]

    batch = in_order(read, INPUTS, {0: owned(0), 1: owned(1, ready=False)})

    assert [each.partition for each in batch] == [0]


def test_records_before_the_position_are_left_out() -> None:
    read = [FakeRecord(("commands", 0), offset) for offset in range(5)]

    (only,) = in_order(read, INPUTS, {0: owned(0, at=3)})

    assert [record.offset() for record in only.records] == [3, 4]


@given(sizes=st.lists(st.integers(min_value=1, max_value=9), min_size=1, max_size=6).filter(lambda s: sum(s) > 1))
def test_halves_hold_everything_once_and_in_order(sizes: list[int]) -> None:
    batch = [
        Slice(topic="commands", partition=number, records=[FakeRecord(("commands", number), at) for at in range(size)])
        for number, size in enumerate(sizes)
    ]

    first, second = split(batch)

    assert first
    assert second
    for half in (first, second):
        assert all(each.records for each in half)
    whole = [record for half in (first, second) for each in half for record in each.records]
    assert whole == [record for each in batch for record in each.records]
    assert abs(sum(len(each.records) for each in first) - sum(len(each.records) for each in second)) <= 1


def test_the_first_transactions_after_a_quiet_while_do_not_wait() -> None:
    pace = Pace(interval_ms=25, burst=3)

    waits = []
    for _ in range(5):
        waits.append(pace.wait_ms(1_000))
        pace.spend(1_000)

    assert waits == [0, 0, 0, 25, 25]


def test_under_load_there_is_one_transaction_per_interval() -> None:
    pace = Pace(interval_ms=25, burst=3)
    now_ms, begun = 0, []
    while now_ms < 1_000:
        now_ms += pace.wait_ms(now_ms)
        begun.append(now_ms)
        pace.spend(now_ms)
        now_ms += 1

    assert len(begun) == pytest.approx(1_000 / 25 + 2, abs=2)
    assert all(later - earlier >= 24 for earlier, later in pairwise(begun[3:]))


@given(st.lists(st.integers(min_value=0, max_value=100), max_size=50), st.integers(1, 50), st.integers(1, 5))
def test_nobody_waits_longer_than_one_interval(gaps: list[int], interval_ms: int, burst: int) -> None:
    pace = Pace(interval_ms=interval_ms, burst=burst)
    now_ms = 0
    for gap in gaps:
        now_ms += gap
        assert 0 <= pace.wait_ms(now_ms) <= interval_ms
        pace.spend(now_ms)


def column(cache_rows: int = 10) -> StagedColumn[str]:
    table = MemoryTables().open(0, "o")
    table.write([(b"Jold", b"committed"), (b"Sother", b"another kind")], 1, 1)
    return StagedColumn(table, b"J", str.encode, bytes.decode, cache_rows)


def test_a_transaction_sees_its_own_changes_and_a_rollback_takes_them_back() -> None:
    rows = column()
    rows.put("old", "changed")
    rows.put("new", "made")
    assert (rows.get("old"), rows.get("new"), rows.is_dirty) == ("changed", "made", True)

    rows.rollback()

    assert (rows.get("old"), rows.get("new"), rows.is_dirty) == ("committed", None, False)


def test_a_key_that_changes_often_is_one_row() -> None:
    rows = column()
    rows.put("one", "a")
    rows.put("one", "b")
    rows.put("old", None)

    assert rows.changes() == [(b"Jone", b"b"), (b"Jold", None)]


def test_after_a_commit_rows_are_read_as_they_were_staged() -> None:
    rows = column()
    rows.put("one", "a")
    rows.commit()

    assert (rows.get("one"), rows.is_dirty, rows.changes()) == ("a", False, [])


def test_the_rows_are_those_of_the_column_only() -> None:
    assert list(column().rows()) == ["committed"]


def test_whoever_reads_all_rows_and_changes_none_keeps_few_of_them_in_memory() -> None:
    table = MemoryTables().open(0, "o")
    table.write([(b"J%d" % number, b"row") for number in range(1_000)], 1, 1)
    rows: StagedColumn[str] = StagedColumn(table, b"J", str.encode, bytes.decode, 8)

    kept = []
    for number in range(1_000):
        assert rows.get(str(number)) == "row"
        kept.append(len(rows._cache))

    assert max(kept) <= 8


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.none() | st.sampled_from("xyz"), st.booleans()), max_size=60))
def test_a_bounded_cache_never_shows(steps: list[tuple[str, str | None, bool]]) -> None:
    table = MemoryTables().open(0, "o")
    rows: StagedColumn[str] = StagedColumn(table, b"J", str.encode, bytes.decode, 3)
    model: dict[str, str] = {}
    for offset, (key, value, is_committed) in enumerate(steps):
        rows.put(key, value)
        if is_committed:
            table.write(rows.changes(), offset, offset)
            rows.commit()
            model = {**model, key: value} if value is not None else {k: v for k, v in model.items() if k != key}
        else:
            rows.rollback()
        assert {name: row for name in "abcdefgh" if (row := rows.get(name)) is not None} == model


def placement(partitions: int = 4, run: int = 2) -> WorkPlacement:
    return WorkPlacement(Topology(work_partitions=partitions), run)


def chosen(placement: WorkPlacement, placed: Placed, job: str, avoid: int | None = None) -> int:
    return placement.choose("default", Priority.HIGH, avoid, placed, job)[1]


def test_a_run_of_offers_goes_to_one_partition_and_the_next_run_to_another() -> None:
    choose, placed = placement(run=3), Placed()
    choose.begin(0)

    where = [chosen(choose, placed, f"job-{number}") for number in range(9)]

    assert [where[first : first + 3] for first in (0, 3, 6)] == [[1] * 3, [2] * 3, [3] * 3]


def test_offers_go_where_fewest_are_unanswered() -> None:
    choose, placed = placement(run=1), Placed()
    where = {f"job-{number}": chosen(choose, placed, f"job-{number}") for number in range(8)}
    answered = [job for job, partition in where.items() if partition == 2]
    for job in answered:
        placed.answered(job, "w")

    choose.begin(0)

    assert [chosen(choose, placed, f"more-{number}") for number in range(2)] == [2, 2]


def test_a_declined_offer_goes_elsewhere_where_there_is_an_elsewhere() -> None:
    choose, placed = placement(run=10), Placed()
    first = chosen(choose, placed, "job")

    assert chosen(choose, placed, "job", avoid=first) != first
    alone = placement(partitions=1)
    assert chosen(alone, placed, "other", avoid=0) == 0


def test_a_partition_that_an_offer_came_back_from_unanswered_gets_no_more_for_a_while() -> None:
    # Given a dead worker on two of four partitions, whose offers come back
    choose, placed = placement(run=1), Placed()
    choose.begin(0)
    first = {f"job-{number}": chosen(choose, placed, f"job-{number}") for number in range(4)}
    lost = {job: partition for job, partition in first.items() if partition in {1, 3}}
    for job in first.keys() - lost.keys():
        placed.answered(job, "w")
    choose.begin(1_000)
    for job, partition in lost.items():
        chosen(choose, placed, job, avoid=partition)

    # When many more are offered, then none goes to the silent partitions, although the others have more unanswered
    assert {chosen(choose, placed, f"more-{number}") for number in range(8)} == {0, 2}

    # And when the group has had the time to give the partitions away, they are tried again
    choose.begin(1_000 + SILENT_MS)
    assert {chosen(choose, placed, f"last-{number}") for number in range(4)} == {1, 3}


def test_an_answer_ends_the_silence_of_a_partition() -> None:
    choose, placed = placement(run=1, partitions=2), Placed()
    choose.begin(0)
    slow = chosen(choose, placed, "unanswered")
    chosen(choose, placed, "answered", avoid=1 - slow)
    choose.begin(1_000)
    chosen(choose, placed, "unanswered", avoid=slow)

    placed.answered("answered", "w")

    assert chosen(choose, placed, "next") == slow


def test_the_partitions_of_a_worker_that_let_a_lease_run_out_get_no_more_for_a_while() -> None:
    # Given two workers with two of four partitions each, known by their answers
    choose, placed = placement(run=1), Placed()
    choose.begin(0)
    for number in range(4):
        partition = chosen(choose, placed, f"job-{number}")
        placed.answered(f"job-{number}", "dead" if partition in {1, 3} else "alive")

    # When one of them is lost with what it ran
    choose.gone("dead", 5_000)

    # Then that is offered to the other at once, and not to the dead one first
    choose.begin(5_000)
    assert {chosen(choose, placed, f"again-{number}") for number in range(8)} == {0, 2}


def test_where_every_partition_is_silent_offers_go_out_all_the_same() -> None:
    choose, placed = placement(run=1, partitions=2), Placed()
    for at_ms in (0, 1_000):
        choose.begin(at_ms)
        for number in range(2):
            chosen(choose, placed, f"job-{number}")

    choose.begin(2_000)

    assert {chosen(choose, placed, f"job-{number}") for number in range(2)} == {0, 1}


def test_a_partition_that_is_given_up_leaves_no_load_behind() -> None:
    choose, mine, theirs = placement(run=1), Placed(), Placed()
    for number in range(8):
        chosen(choose, mine, f"job-{number}")
    chosen(choose, theirs, "other")

    mine.clear()

    assert sorted(chain.from_iterable(lane.unanswered for lane in choose._lanes.values())) == [0] * 15 + [1]
