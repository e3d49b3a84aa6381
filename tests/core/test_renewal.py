"""Offers that nobody answers are made again elsewhere, and counted once."""

from mainspring.processors.core import QueueRules, Rules
from mainspring.processors.core.memory import RowsInMemory
from mainspring.schemas.codes import ClaimRefusal
from mainspring.schemas.events import JobStarted
from mainspring.schemas.signals import ClaimRefused
from tests.core.spec import NOON, START_MONO, Partition


def test_an_offer_is_renewed_after_one_second_then_after_twice_as_long_up_to_a_minute() -> None:
    partition = Partition().submit().dispatch()
    at: list[int] = []
    while len(at) < 9:
        wake = partition.core.wake_at()
        assert wake is not None
        assert wake.mono_ms is not None
        partition.later(wake.mono_ms - partition.now.mono_ms).tick()
        (offer,) = partition.last.offers
        assert (offer.record.attempt, offer.record.offer) == (1, len(at) + 2)
        at.append(partition.now.mono_ms - START_MONO)
    pauses = [later - earlier for earlier, later in zip([0, *at], at, strict=False)]
    assert pauses == [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]


def test_a_renewal_avoids_the_partition_of_the_last_offer_and_is_counted_once() -> None:
    partition = Partition().submit().dispatch()
    partition.core.placed("job", 5)
    (offer,) = partition.later(1000).tick().last.offers
    assert offer.avoid == 5
    assert partition.core.stats()["default"].offered == 1
    assert partition.last.events == []


def test_the_first_of_two_claims_on_a_renewed_offer_wins() -> None:
    partition = Partition().submit().dispatch().later(1000).tick().claim(worker="w2")
    assert partition.event(JobStarted).worker_id == "w2"
    assert partition.claim(attempt=1, worker="w1").signal(ClaimRefused).refusal == ClaimRefusal.STALE_ATTEMPT


def test_an_answered_offer_is_not_renewed() -> None:
    for answered in (
        Partition().submit().dispatch().claim(),
        Partition().submit().dispatch().cancel(),
        Partition().submit().dispatch().reschedule(NOON + 900_000),
    ):
        assert answered.later(100_000).tick().last.offers == []


def test_a_new_owner_renews_when_the_old_one_would_have() -> None:
    partition = Partition().submit().dispatch().later(600).taken_over()
    assert partition.later(399).tick().last.offers == []
    assert len(partition.later(1).tick().last.offers) == 1


def test_a_queue_that_is_no_longer_declared_is_not_offered_and_back_when_it_is() -> None:
    rows = RowsInMemory()
    both = Rules(queues={"default": QueueRules(), "old": QueueRules()})
    Partition(both, rows=rows).submit("offered", queue="old").dispatch().submit("ready", queue="old")
    without = Partition(rows=rows).later(5000).dispatch().later(60_000).dispatch()
    assert without.offers == []
    again = Partition(both, rows=rows, now=without.now).later(60_000).dispatch()
    assert sorted(offer.job_id for offer in again.offers) == ["offered", "ready"]
