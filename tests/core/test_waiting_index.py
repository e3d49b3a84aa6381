"""What is due now, the important first: the ranges of the priorities against plain sorted lists."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from mainspring.processors.core.index.entries import LAYOUT, WAITING_PREFIX
from mainspring.processors.core.index.orders import Waiting, decode_waiting
from mainspring.processors.core.index.ready_job import ReadyJob
from mainspring.processors.core.index.waiting import WaitingIndex
from mainspring.schemas.common import Priority
from tests.core.spec import NOON, Partition
from tests.support.index_store import DictStore

DOWNWARDS = sorted(Priority, reverse=True)

jobs = st.lists(st.tuples(st.integers(0, 6), st.sampled_from(DOWNWARDS)), max_size=60)


def waiting(at_ms: int, seq: int, priority: Priority) -> Waiting:
    return "default", 7, ReadyJob((0,), seq, f"job-{seq}", priority, "", at_ms, priority)


def index_over(store: DictStore | None, window: int) -> WaitingIndex:
    return WaitingIndex(
        lambda priority, key, data: decode_waiting(priority, key, data, lambda _: None, lambda _: 7),
        store=store,
        window=window,
    )


def expected(here: Sequence[Waiting], now_ms: int, limit: int) -> list[Waiting]:
    """A share for each priority, and then the most important of what is left."""
    due = sorted((each for each in here if each[2].at_ms <= now_ms), key=lambda each: (each[2].at_ms, each[2].seq))
    lanes = [[each for each in due if each[2].priority == priority] for priority in DOWNWARDS]
    share = limit // len(lanes)
    moved = [each for lane in lanes for each in lane[:share]]
    left = [each for lane in lanes for each in lane[share:]]
    return moved + left[: limit - len(moved)]


@given(
    submitted=jobs,
    window=st.none() | st.integers(1, 8),
    ticks=st.lists(st.tuples(st.integers(0, 7), st.integers(1, 12)), max_size=20),
)
def test_every_tick_moves_what_a_sorted_list_says_in_memory_and_in_the_table(
    submitted: list[tuple[int, Priority]], window: int | None, ticks: list[tuple[int, int]]
) -> None:
    # Given jobs of several instants and priorities, in the table where there is a window,
    index = index_over(None if window is None else DictStore(), window or 0)
    here = [waiting(at_ms, seq, priority) for seq, (at_ms, priority) in enumerate(submitted)]
    for each in here:
        index.add(each)

    # when ticks take what is due, then each takes what the rule says, and the next instant is the earliest of all.
    for now_ms, limit in ticks:
        taken = index.pop_due(now_ms, limit)
        assert taken == expected(here, now_ms, limit)
        here = [each for each in here if each not in taken]
        assert index.next_at() == min((each[2].at_ms for each in here), default=None)
    assert len(index) == len(submitted)


@given(submitted=jobs, window=st.integers(1, 8))
def test_another_owner_takes_what_is_in_the_table_in_the_same_order(
    submitted: list[tuple[int, Priority]], window: int
) -> None:
    # Given jobs that an owner has written, and of which it has taken some,
    store = DictStore()
    first = index_over(store, window)
    here = [waiting(at_ms, seq, priority) for seq, (at_ms, priority) in enumerate(submitted)]
    for each in here:
        first.add(each)
    store.write(first.drain())
    first.pop_due(3, 8)

    # when another begins with that table,
    second = index_over(store, window)
    second.open(len(here))

    # then it takes all of them, in the order of the rule.
    assert second.pop_due(9, 16) == expected(here, 9, 16)
    assert len(second) == len(here)
    for each in here:
        second.remove(each[2])
    store.write(second.drain())
    assert store.rows == {}
    assert len(second) == 0


def test_an_urgent_job_overtakes_a_herd_of_its_own_and_of_an_earlier_instant_that_is_still_being_moved() -> None:
    for store in (None, DictStore()):
        # Given a herd of one instant, an urgent job of that instant submitted last, and one due a second later,
        partition = Partition(index=store, window_jobs=100)
        for number in range(1_000):
            partition.submit(f"herd-{number}", delay_ms=1_000, priority=Priority.LOW)
        partition.submit("last", delay_ms=1_000, priority=Priority.CRITICAL)
        partition.submit("later", delay_ms=2_000, priority=Priority.CRITICAL)

        # when the first slice is moved, and then, with the herd still there, the next after a second,
        partition.later(1_000).dispatch()
        offered = [offer.record.job_id for offer in partition.last.offers]

        # then the urgent one is the first that is offered, and the later one is moved at once when it is due.
        assert offered[0] == "last"
        partition.later(1_000)
        partition.core.tick(partition.now)
        moved = {*partition.core._indexes.queue("default").ready, *partition.core._indexes.renewals}
        assert "later" in moved
        assert 0 < partition.core.waiting < 1_000 - 250


def test_the_form_of_the_table_tells_it_from_one_whose_waiting_jobs_have_no_priority_in_their_keys() -> None:
    # Given a job that waits, when it is written, then its priority leads its instant, and the form is not the former.
    store = DictStore()
    index = index_over(store, 10)
    index.add(waiting(NOON, 1, Priority.HIGH))
    ((key, _),) = index.drain()
    assert key.startswith(WAITING_PREFIX + bytes((Priority.HIGH,)))
    assert LAYOUT not in {"1", "2", "3"}
