"""Slots, holds and lanes, with a clock that only the tests move."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.jobs import App, JobContext
from mainspring.schemas.common import Priority
from mainspring.workers.attempt import Attempt
from mainspring.workers.offers import PATIENCE, OfferBook

app = App("offers")


@app.job
async def nothing() -> None:
    """Stands for any job."""


def offer(lane: Priority, job_id: str = "j") -> Attempt:
    return Attempt(handler=nothing.handler, context=JobContext(job_id=job_id, name="nothing", attempt=1, priority=lane))


def book(held_max: int = 1_000_000, hold_s: float = 0.3) -> OfferBook:
    return OfferBook(held_max=held_max, hold_s=hold_s)


lanes = st.lists(st.sampled_from(list(Priority)), min_size=1, max_size=60)


def test_the_best_lane_goes_first_and_the_oldest_inside_it() -> None:
    held = book()
    for number, lane in enumerate([Priority.LOW, Priority.HIGH, Priority.CRITICAL, Priority.HIGH]):
        held.add(offer(lane, str(number)), now=float(number) / 100)
    assert [attempt.job_id for attempt in held.take(4)] == ["2", "1", "3", "0"]


@settings(deadline=None)  # a busy machine is no failure
@given(lanes)
def test_everything_that_is_added_is_taken_once(added: list[Priority]) -> None:
    held = book()
    for number, lane in enumerate(added):
        held.add(offer(lane, str(number)), now=0.0)
    taken = held.take(len(added) + 5)
    assert sorted(int(attempt.job_id) for attempt in taken) == list(range(len(added)))
    assert len(held) == 0


@settings(deadline=None)  # a busy machine is no failure
@given(st.integers(min_value=1, max_value=200), st.sampled_from([Priority.LOW, Priority.MEDIUM, Priority.HIGH]))
def test_a_flood_of_critical_offers_leaves_every_lower_lane_its_share(slots: int, lane: Priority) -> None:
    """At any moment a lane has waited for at most its patience of slots."""
    held = book()
    for _ in range(slots):
        held.add(offer(Priority.CRITICAL), now=0.0)
        held.add(offer(lane), now=0.0)
    taken = [attempt.lane for attempt in held.take(slots)]
    assert taken.count(lane) == slots // (PATIENCE[lane] + 1)


@settings(deadline=None)  # a busy machine is no failure
@given(st.integers(min_value=20, max_value=300))
def test_a_flood_of_all_higher_lanes_leaves_low_every_twentieth_slot(slots: int) -> None:
    held = book()
    for lane in Priority:
        for _ in range(slots):
            held.add(offer(lane), now=0.0)
    taken = [attempt.lane for attempt in held.take(slots)]
    assert taken.count(Priority.LOW) == slots // 20
    assert taken.count(Priority.CRITICAL) > slots // 2


def test_a_lane_that_has_nothing_saves_up_no_share() -> None:
    held = book()
    for _ in range(100):
        held.add(offer(Priority.CRITICAL), now=0.0)
    held.take(90)
    held.add(offer(Priority.LOW), now=0.0)
    assert held.take(1)[0].lane is Priority.CRITICAL


@settings(deadline=None)  # a busy machine is no failure
@given(lanes, st.floats(min_value=0, max_value=1))
def test_an_offer_is_held_for_its_time_and_not_longer(added: list[Priority], now: float) -> None:
    held = book(hold_s=0.3)
    for number, lane in enumerate(added):
        held.add(offer(lane, str(number)), now=number / 100)
    gone = held.expired(now)
    assert all(attempt.arrived_at <= now - 0.3 for attempt in gone)
    assert len(held) == len(added) - len(gone)
    assert all(attempt.arrived_at > now - 0.3 for attempt in held.clear())


@settings(deadline=None)  # a busy machine is no failure
@given(lanes, st.integers(min_value=0, max_value=20))
def test_beyond_the_bound_the_worst_and_newest_go(added: list[Priority], held_max: int) -> None:
    held = book(held_max=held_max)
    for number, lane in enumerate(added):
        held.add(offer(lane, str(number)), now=0.0)
    gone = held.expired(0.0)
    kept = held.clear()
    assert len(kept) == min(len(added), held_max)
    if gone and kept:
        assert max(attempt.lane for attempt in gone) <= min(attempt.lane for attempt in kept)
