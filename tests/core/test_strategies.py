"""Strategies: keys that stand still and mean what they say."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.processors.core import (
    AgingPriorityStrategy,
    EarliestDeadlineFirstStrategy,
    FIFOStrategy,
    PriorityStrategy,
    QueueRules,
    Rules,
    SchedulingStrategy,
)
from mainspring.processors.core.indexes import QueueIndex
from mainspring.processors.core.strategies import Key
from mainspring.schemas.common import JobStatus, Priority
from mainspring.schemas.tables import Dispatch, JobState
from tests.core.spec import NOON, Partition


def state(seq: int, priority: Priority, due_at_ms: int, deadline_ms: int | None) -> JobState:
    return JobState(
        job_id=f"job-{seq}",
        revision=1,
        seq=seq,
        status=JobStatus.PENDING,
        queue="default",
        priority=priority,
        tenant="",
        submitted_at_ms=0,
        due_at_ms=due_at_ms,
        deadline_ms=deadline_ms,
        attempt=0,
        retries=0,
        lost=0,
        submit_command_id="c",
        dispatch=Dispatch(),
    )


@st.composite
def job_lists(draw: st.DrawFn) -> list[JobState]:
    rows = st.tuples(
        st.sampled_from(Priority), st.integers(NOON - 100_000, NOON), st.none() | st.integers(NOON - 100, NOON + 100)
    )
    return [state(seq, *row) for seq, row in enumerate(draw(st.lists(rows, max_size=40)))]


def served(strategy: SchedulingStrategy, jobs: list[JobState]) -> list[JobState]:
    queue = QueueIndex("default", Rules(queues={"default": QueueRules(strategy=strategy)}))
    for each in jobs:
        queue.ready.add(queue.order.ready_job(each))
    by_id = {each.job_id: each for each in jobs}
    order = []
    while (job := queue.ready.pop()) is not None:
        order.append(by_id[job.job_id])
    return order


STRATEGIES = [
    FIFOStrategy(),
    PriorityStrategy(),
    AgingPriorityStrategy(0.25),
    AgingPriorityStrategy(0),
    EarliestDeadlineFirstStrategy(),
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda each: type(each).__name__)
@given(jobs=job_lists())
def test_the_heap_serves_in_sorted_order(strategy: SchedulingStrategy, jobs: list[JobState]) -> None:
    assert served(strategy, jobs) == sorted(jobs, key=lambda job: (strategy.key(job), job.seq))


@given(jobs=job_lists(), waited_ms=st.integers(0, 10_000_000), quarters=st.integers(0, 40))
def test_aging_serves_the_highest_aged_priority_at_any_now(jobs: list[JobState], waited_ms: int, quarters: int) -> None:
    rate = Fraction(quarters, 4)
    now = NOON + waited_ms

    def aged(job: JobState) -> Fraction:
        return job.priority + rate * Fraction(now - job.due_at_ms, 1000)

    order = served(AgingPriorityStrategy(float(rate)), jobs)
    # Keys are floats of the size of an epoch: what is equal to within their grain may come in either order.
    grain = Fraction(1, 100_000)
    assert all(aged(before) >= aged(after) - grain for before, after in pairwise(order))


def test_first_in_first_out_is_by_due_time_then_by_submission() -> None:
    jobs = [state(0, Priority.LOW, 5, None), state(1, Priority.CRITICAL, 3, None), state(2, Priority.LOW, 3, None)]
    assert [job.seq for job in served(FIFOStrategy(), jobs)] == [1, 2, 0]


def test_earliest_deadline_first_puts_jobs_without_one_last() -> None:
    jobs = [state(0, Priority.CRITICAL, 1, None), state(1, Priority.LOW, 9, 50), state(2, Priority.LOW, 9, 40)]
    assert [job.seq for job in served(EarliestDeadlineFirstStrategy(), jobs)] == [2, 1, 0]


def test_a_job_delayed_by_a_year_does_not_beat_everyone_when_it_is_due() -> None:
    year_ms = 365 * 86_400_000
    partition = Partition(Rules(queues={"default": QueueRules(strategy=AgingPriorityStrategy(1.0))}, window_start=1))
    partition.submit("old", delay_ms=year_ms, priority=Priority.LOW)
    partition.later(year_ms).submit("new", priority=Priority.HIGH).dispatch()
    assert [offer.job_id for offer in partition.offers] == ["new"]


def test_a_low_job_under_a_steady_stream_of_high_ones_starts_within_levels_over_rate() -> None:
    rules = Rules(queues={"default": QueueRules(strategy=AgingPriorityStrategy(0.5))}, window_start=1, window_max=1)
    partition = Partition(rules).submit("low", priority=Priority.LOW)
    for number in range(100):
        partition.submit(f"high-{number}", priority=Priority.HIGH).dispatch()
        (offer,) = partition.last.offers
        partition.claim(offer.record.job_id).succeed(offer.record.job_id).later(100)
        if offer.record.job_id == "low":
            break
    # Two levels at half a level per second are four seconds.
    assert partition.now.wall_ms - NOON == pytest.approx(4000, abs=200)


def test_without_aging_a_low_job_waits_as_long_as_there_are_high_ones() -> None:
    partition = Partition(Rules(window_start=1, window_max=1)).submit("low", priority=Priority.LOW)
    for number in range(50):
        partition.submit(f"high-{number}", priority=Priority.HIGH).dispatch()
        partition.claim(f"high-{number}").succeed(f"high-{number}").later(100)
    assert partition.dispatch().last.offers[0].record.job_id == "low"


@pytest.mark.parametrize(
    ("strategy", "waited_ms", "lane"),
    [
        (FIFOStrategy(), 0, Priority.MEDIUM),
        (EarliestDeadlineFirstStrategy(), 0, Priority.MEDIUM),
        (PriorityStrategy(), 10_000, Priority.LOW),
        (AgingPriorityStrategy(1.0), 999, Priority.LOW),
        (AgingPriorityStrategy(1.0), 1000, Priority.MEDIUM),
        (AgingPriorityStrategy(1.0), 1_000_000, Priority.CRITICAL),
        (AgingPriorityStrategy(1.0), -5000, Priority.LOW),
    ],
)
def test_the_lane_of_an_offer_follows_the_strategy(
    strategy: SchedulingStrategy, waited_ms: int, lane: Priority
) -> None:
    assert strategy.lane(state(0, Priority.LOW, NOON, None), NOON + waited_ms) is lane


def test_an_offer_is_made_on_its_lane() -> None:
    partition = Partition(Rules(queues={"default": QueueRules(strategy=AgingPriorityStrategy(1.0))}))
    (offer,) = partition.submit(priority=Priority.LOW).later(2000).dispatch().last.offers
    assert offer.lane is Priority.HIGH


@pytest.mark.parametrize("age_rate", [-1.0, float("nan"), float("inf")])
def test_an_age_rate_that_is_none_is_refused(age_rate: float) -> None:
    with pytest.raises(ValueError, match="age_rate"):
        AgingPriorityStrategy(age_rate)


class ShortNameFirst(SchedulingStrategy):
    """A strategy of one's own, as a user writes it."""

    def key(self, job: JobState) -> Key:
        return len(job.job_id)


def test_a_strategy_of_ones_own_needs_a_key_and_nothing_else() -> None:
    partition = Partition(Rules(queues={"default": QueueRules(strategy=ShortNameFirst())}))
    partition.submit("long-name").submit("id").dispatch()
    assert [offer.job_id for offer in partition.offers] == ["id", "long-name"]
    assert partition.last.offers[0].lane is Priority.MEDIUM


@pytest.mark.parametrize("weight", [0.0, -1.0, float("inf"), float("nan")])
def test_a_weight_that_is_none_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="weight of tenant 'a'"):
        QueueRules(tenant_weights={"a": weight})
