"""Claims, confirmations and leases: what may start, and what is handed back, as pure logic."""

import pytest

from mainspring.schemas.attempts import AttemptReleased
from mainspring.workers import leases
from mainspring.workers.attempt import StopReason
from tests.workers.desk import Desk


def test_a_repeated_confirmation_runs_once_and_a_foreign_one_is_released() -> None:
    desk = Desk()
    desk.offer("a")
    desk.confirm("a")
    desk.confirm("a")
    assert desk.executor.running == 1
    assert desk.take(AttemptReleased) == []
    desk.confirm("unknown")
    desk.confirm("a", attempt=2)
    assert [(r.job_id, r.attempt) for r in desk.take(AttemptReleased)] == [("unknown", 1), ("a", 2)]


@pytest.mark.parametrize(("age", "runs"), [(9.99, True), (10.0, False), (60.0, False)])
def test_a_start_needs_a_lease_that_cannot_have_expired(age: float, runs: bool) -> None:
    desk = Desk()
    desk.offer("a", now=100.0)
    desk.confirm("a", now=100.0 + age)
    assert (desk.executor.running == 1) is runs
    assert len(desk.take(AttemptReleased)) == (0 if runs else 1)
    assert desk.holdings.busy == (1 if runs else 0)


def test_a_heartbeat_that_arrived_extends_the_time_to_start() -> None:
    desk = Desk()
    desk.offer("a", now=0.0)
    leases.renew([desk.holdings.attempts["a"]], sent_at=8.0, arrived_at=8.1, lease_s=10.0)
    desk.confirm("a", now=15.0)
    assert desk.executor.running == 1


def test_a_heartbeat_after_a_whole_lease_of_silence_revives_no_lease() -> None:
    # given a worker that was cut off from the brokers: what it sends when it is back arrives, and the attempt is lost
    desk = Desk()
    desk.offer("a", now=0.0)
    leases.renew([desk.holdings.attempts["a"]], sent_at=10.0, arrived_at=10.1, lease_s=10.0)

    # when the confirmation is read at last
    desk.confirm("a", now=12.0)

    # then
    assert desk.executor.running == 0
    assert [r.job_id for r in desk.take(AttemptReleased)] == ["a"]


def test_heartbeats_that_were_held_up_until_the_lease_was_over_revive_no_lease() -> None:
    # given a worker that was cut off and spoke up all the time: everything arrives when the connection is back
    desk = Desk()
    desk.offer("a", now=0.0)
    for sent_at in (3.0, 6.0, 9.0, 12.0):
        leases.renew([desk.holdings.attempts["a"]], sent_at, arrived_at=13.0, lease_s=10.0)

    # when the confirmation is read before the news that the attempt is lost
    desk.confirm("a", now=13.1)

    # then
    assert desk.executor.running == 0
    assert [r.job_id for r in desk.take(AttemptReleased)] == ["a"]


def test_an_attempt_that_was_started_is_never_claimed_again_whatever_old_offer_and_answer_come() -> None:
    # given an attempt that ran here and was reported
    desk = Desk()
    desk.offer("a", now=0.0)
    desk.confirm("a", now=0.1)
    desk.end("a", now=1.0)
    assert desk.claimed() == [("a", True)]

    # when an old offer of it comes, and the answer to an earlier claim
    desk.offer("a", now=1.1)
    desk.confirm("a", now=1.2)

    # then
    assert desk.claimed() == []
    assert desk.executor.running == 0


def test_an_attempt_that_was_confirmed_too_late_and_handed_back_is_never_claimed_again() -> None:
    desk = Desk()
    desk.offer("a", now=0.0)
    desk.confirm("a", now=20.0)
    assert [r.job_id for r in desk.take(AttemptReleased)] == ["a"]
    desk.claimed()

    desk.offer("a", now=21.0)
    desk.confirm("a", now=21.1)

    assert desk.claimed() == []
    assert desk.executor.running == 0


def test_a_claim_that_was_given_up_is_not_repeated_until_it_has_been_refused() -> None:
    # given a claim that nobody answered
    desk = Desk(lease_ms=3_600_000)
    desk.offer("a", now=0.0)
    desk.holdings.tick(60.0)
    desk.claimed()

    # when it is offered once more: its first claim may yet be confirmed
    desk.offer("a", now=61.0)
    assert desk.claimed() == []

    # and when the answer is no
    desk.holdings.refused("a", 1, now=62.0)
    desk.offer("a", now=63.0)

    # then there is nothing to confuse a new one with
    assert desk.claimed() == [("a", True)]


def test_an_unanswered_claim_gives_its_slot_away_and_runs_when_it_can() -> None:
    desk = Desk(slots=1, lease_ms=60_000)
    desk.offer("a", now=0.0)
    desk.offer("b", now=4.9)
    desk.holdings.tick(5.0)
    assert desk.claimed() == [("a", True), ("b", False)]
    desk.confirm("b", now=5.1)
    desk.confirm("a", now=5.2)
    assert set(desk.executor.begun) == {"b"}, "its slot is taken"
    desk.end("b", now=5.3)
    assert set(desk.executor.begun) == {"a"}


def test_an_attempt_that_was_confirmed_late_runs_when_the_slot_comes_free_by_a_refusal() -> None:
    # given a claim whose slot was given away to another claim before its own answer came
    desk = Desk(slots=1, lease_ms=60_000)
    desk.offer("a", now=0.0)
    desk.offer("b", now=4.9)
    desk.holdings.tick(5.0)
    desk.confirm("a", now=5.1)
    assert desk.executor.running == 0

    # when the other claim is refused, and nothing runs whose end could free a slot
    desk.holdings.refused("b", 1, now=5.2)

    # then
    assert set(desk.executor.begun) == {"a"}


def test_an_attempt_that_was_confirmed_late_is_handed_back_when_a_slot_comes_free_after_its_lease() -> None:
    # given an attempt that was confirmed in time, and waits for the slot that was given to another
    desk = Desk(slots=1, lease_ms=10_000, answer_ms=2_000)
    desk.offer("a")
    desk.holdings.tick(now=2.0)
    desk.offer("b", now=2.0)
    desk.confirm("b", now=3.0)
    desk.confirm("a", now=4.0)
    assert list(desk.executor.begun) == ["b"]

    # when the process stood still until its lease was over, and then hears first of the end of the other
    desk.end("b", now=10.0)

    # then
    assert not desk.executor.begun
    assert [r.job_id for r in desk.take(AttemptReleased)] == ["a"]


def test_what_is_out_of_lease_is_stopped_once() -> None:
    desk = Desk()
    desk.offer("a", now=0.0)
    desk.confirm("a", now=0.0)
    desk.holdings.tick(9.9)
    assert desk.executor.stopped == {}
    desk.holdings.tick(10.0)
    desk.holdings.tick(11.0)
    assert desk.executor.stopped == {"a": StopReason.LEASE_AT_RISK}
