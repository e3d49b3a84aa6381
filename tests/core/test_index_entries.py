"""What the table holds of the indexes follows from the rows: live, restored, rolled back, or stale."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.processors.core import (
    EarliestDeadlineFirstStrategy,
    FIFOStrategy,
    PriorityStrategy,
    QueueOrder,
    QueueRules,
    Rules,
)
from mainspring.processors.core.explain import Ready
from mainspring.processors.core.index.entries import (
    COUNTS_KEY,
    IN_FLIGHT_KEY,
    WAITING_PREFIX,
    changed_entries,
    decode_counts,
    decode_ids,
    waiting_key,
)
from mainspring.processors.core.index.lanes import LANE_PREFIX
from mainspring.processors.core.index.orders import encode_waiting
from mainspring.schemas.common import JobStatus, Priority
from mainspring.schemas.tables import JobState
from tests.core.spec import NOON, Partition
from tests.core.test_small_windows import RULES, Pair, Step, _apply, steps
from tests.support.index_store import DictStore


def order_of(queue: str) -> QueueOrder:
    return QueueOrder(queue, RULES.queues[queue])


def entries(store: DictStore) -> dict[bytes, Any]:
    """What a later owner reads; which order ids in flight are in means nothing."""
    rows: dict[bytes, Any] = {key: value for key, value in store.rows.items() if not key.startswith(LANE_PREFIX)}
    rows[COUNTS_KEY] = decode_counts(rows.get(COUNTS_KEY))
    rows[IN_FLIGHT_KEY] = set(decode_ids(rows.get(IN_FLIGHT_KEY)))
    return rows


@settings(max_examples=150, deadline=None)
@given(taken=st.lists(steps, max_size=60), cut=st.integers(0, 60))
def test_a_tail_that_is_replayed_over_an_older_store_leaves_what_the_owner_had(taken: list[Step], cut: int) -> None:
    # Given an owner with a store, and a copy of that store as it was some time ago,
    partition = Partition(RULES, index=DictStore(), window_jobs=1)
    assert partition.index is not None
    older, known = DictStore(), dict[str, JobState]()
    for number, (step, name, argument) in enumerate(taken):
        if number == cut:
            older.rows, known = dict(partition.index.rows), dict(partition.rows.states)
        _apply(partition, step, name, argument)
    if cut >= len(taken):
        older.rows, known = dict(partition.index.rows), dict(partition.rows.states)

    # when the rows that have changed since are restored over the copy,
    states = partition.rows.states
    changes = [(known.get(name), states.get(name)) for name in sorted({*known, *states})]
    changed = [(before, after) for before, after in changes if before is not after]
    counts = decode_counts(older.rows.get(COUNTS_KEY))
    in_flight = decode_ids(older.rows.get(IN_FLIGHT_KEY))
    older.write(changed_entries(changed, order_of, counts, in_flight))

    # then it holds what the owner's holds.
    assert entries(older) == entries(partition.index)


@settings(max_examples=100, deadline=None)
@given(before=st.lists(steps, max_size=40), lost=st.lists(steps, max_size=20), more=st.lists(steps, max_size=30))
def test_what_an_aborted_transaction_did_is_as_if_it_had_never_been(
    before: list[Step], lost: list[Step], more: list[Step]
) -> None:
    pair = Pair()
    for step in before:
        pair.take(*step)
    for each in (pair.roomy, pair.tight):
        # Given a transaction that decides and is not committed,
        rows, specs, next_seq = dict(each.rows.states), dict(each.rows.specs), each.core.next_seq
        committed, each.index = each.index, None
        for step in lost:
            _apply(each, *step)
        # when the core is built again from what was committed,
        each.rows.states, each.rows.specs, each.index = rows, specs, committed
        each.core.next_seq = next_seq
        each.taken_over().tick()
    # then both go on alike.
    pair.compare()
    for step in more:
        pair.take(*step)
    pair.compare()


def test_an_entry_of_a_job_that_is_elsewhere_by_its_row_is_dropped_and_the_job_still_starts() -> None:
    # Given three jobs that wait, and entries that are not true: of no job, of one that has ended, of another instant,
    store = DictStore()
    partition = Partition(RULES, index=store, window_jobs=2)
    partition.submit("ended").start("ended").succeed("ended")
    for number in range(3):
        partition.submit(f"job-{number}", delay_ms=1_000 + number)
    orders = order_of("default")
    for name, at_ms, seq in (("nobody", NOON, 90), ("ended", NOON + 5, 0), ("job-0", NOON + 7, 1), ("job-2", NOON, 3)):
        job = orders.ready_job(partition.state("job-1"))._replace(job_id=name, at_ms=at_ms, seq=seq)
        row = encode_waiting(("default", orders.tag, job))
        store.rows[waiting_key(job)] = row

    # when another owner takes over and all are due,
    partition.taken_over().later(2_000)
    while partition.dispatch().last.offers:
        for offer in partition.last.offers:
            partition.claim(offer.record.job_id).succeed(offer.record.job_id)

    # then each job has run once, and the false entries are gone.
    assert [offer.job_id for offer in partition.offers[1:]] == ["job-0", "job-1", "job-2"]
    assert all(state.status is JobStatus.COMPLETED for state in partition.rows.states.values())
    assert [key for key in store.rows if key.startswith(WAITING_PREFIX)] == []


def test_a_queue_whose_strategy_has_changed_orders_what_waits_in_the_store_anew() -> None:
    # Given jobs that wait, ordered first in, first out,
    rules = Rules(queues={"default": QueueRules(strategy=FIFOStrategy())}, partitions=1, window_start=1)
    partition = Partition(rules, index=DictStore(), window_jobs=4)
    for number in range(12):
        priority = Priority.HIGH if number % 3 == 0 else Priority.LOW
        partition.submit(f"job-{number:02}", delay_ms=100 + number, priority=priority)

    # when a new owner has another strategy,
    strategy = PriorityStrategy()
    partition.rules = Rules(queues={"default": QueueRules(strategy=strategy)}, partitions=1, window_start=100)
    partition.taken_over().later(1_000).dispatch()

    # then that is the order in which they are offered.
    offered = [offer.job_id for offer in partition.offers]
    assert offered == sorted(offered, key=lambda name: (int(name[4:]) % 3 != 0, name))
    assert len(offered) == 12


def test_of_a_deep_backlog_the_place_in_the_queue_is_told_as_at_least() -> None:
    rules = Rules(queues={"default": QueueRules(strategy=EarliestDeadlineFirstStrategy())}, window_start=1)
    partition = Partition(rules, index=DictStore(), window_jobs=10)
    for number in range(60):
        partition.submit(f"job-{number:02}", deadline_ms=NOON + 1_000 * number + 60_000)
    first, last = partition.why_not("job-03"), partition.why_not("job-59")
    assert isinstance(first, Ready)
    assert isinstance(last, Ready)
    assert (first.ahead, first.is_at_least) == (3, False)
    assert last.is_at_least
    assert "at least" in str(last)
    assert last.ahead is not None
    assert last.ahead >= 1


def test_a_job_that_is_cancelled_deep_in_the_backlog_is_never_offered() -> None:
    partition = Partition(Rules(partitions=1, window_start=1), index=DictStore(), window_jobs=4)
    for number in range(40):
        partition.submit(f"job-{number:02}")
    partition.cancel("job-35").cancel("job-02")
    while (offers := partition.later(2_000).dispatch().last.offers) or partition.core.stats()["default"].ready:
        for offer in offers:
            partition.claim(offer.record.job_id).succeed(offer.record.job_id)
    assert [offer.job_id for offer in partition.offers] == [
        f"job-{number:02}" for number in range(40) if number not in (2, 35)
    ]
