"""The decisions of the loop as pure logic: no Kafka, and a clock that only the tests move."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.jobs import App, to_spec
from mainspring.schemas.attempts import (
    AttemptCancelled,
    AttemptClaimed,
    AttemptReleased,
    AttemptSucceeded,
    OfferDeclined,
)
from mainspring.schemas.codec import Codec
from mainspring.schemas.common import ConfirmedStart, Priority
from mainspring.schemas.work import WorkOffered
from mainspring.topics import Connection, Topology
from mainspring.workers import Registry, WorkerConfig, leases
from mainspring.workers.attempt import Attempt, Outcome, OutcomeKind, StopReason
from mainspring.workers.holdings import CLOCK_KNOWN_S, Holdings
from mainspring.workers.reports import Reporter

app = App("holdings")


@app.job
async def known() -> None:
    """Any job."""


class FakeExecutor:
    """Runs nothing: the test says when an attempt ends."""

    def __init__(self) -> None:
        self.running = 0
        self.begun: dict[str, Attempt] = {}
        self.stopped: dict[str, StopReason] = {}

    def invoke(self, attempts: Any) -> None:
        self.running += len(attempts)
        self.begun |= {attempt.job_id: attempt for attempt in attempts}

    def stop(self, attempt: Attempt, reason: StopReason) -> None:
        attempt.stop_reason = reason
        self.stopped[attempt.job_id] = reason

    def end(self, job_id: str) -> Attempt:
        attempt = self.begun.pop(job_id)
        attempt.outcome = Outcome(kind=OutcomeKind.SUCCEEDED)
        attempt.returned = True
        self.running -= 1
        return attempt


class Desk:
    """Holdings with everything around them at hand."""

    def __init__(self, slots: int = 2, **changes: Any) -> None:
        self.executor = FakeExecutor()
        self.sent: list[Any] = []
        config = WorkerConfig(
            connection=Connection("nowhere:1"),
            topology=Topology(),
            codec=Codec.embedded(),
            slots=slots,
            **changes,
        )
        self.holdings = Holdings(
            config=config,
            registry=Registry(app),
            reporter=Reporter("w", "life"),
            executor=self.executor,
            send=lambda role, record: self.sent.append(record),
            count=lambda outcome, number: None,
        )

    def offer(
        self, *job_ids: str, now: float = 0.0, name: str = "known", lane: Priority = Priority.MEDIUM, **spec: Any
    ) -> None:
        offers = [
            WorkOffered(
                job_id=job_id,
                attempt=1,
                offer=1,
                offered_at_ms=0,
                due_at_ms=0,
                spec=replace(to_spec(name), job_id=job_id, priority=lane, **spec),
            )
            for job_id in job_ids
        ]
        self.holdings.offered(offers, now)

    def confirm(self, *job_ids: str, now: float = 0.0, attempt: int = 1) -> None:
        self.holdings.confirmed([ConfirmedStart(job_id=job_id, attempt=attempt) for job_id in job_ids], now)

    def end(self, job_id: str, now: float = 0.0) -> None:
        self.holdings.ended([self.executor.end(job_id)], now)

    def take(self, kind: type) -> list[Any]:
        found = [record for record in self.sent if isinstance(record, kind)]
        self.sent = [record for record in self.sent if not isinstance(record, kind)]
        return found

    def claimed(self) -> list[tuple[str, bool]]:
        return [(claim.job_id, claim.free_slot) for claim in self.take(AttemptClaimed)]


def test_offers_take_free_slots_and_the_rest_waits() -> None:
    desk = Desk(slots=2)
    desk.offer("a", "b", "c")
    assert desk.claimed() == [("a", True), ("b", True)]
    assert (desk.holdings.busy, desk.holdings.held) == (2, 1)


def test_a_slot_that_frees_goes_to_a_held_offer_which_does_not_count_as_found_free() -> None:
    desk = Desk(slots=1)
    desk.offer("a", "b")
    desk.confirm("a")
    desk.take(AttemptClaimed)
    desk.end("a", now=0.1)
    assert desk.claimed() == [("b", False)]


def test_the_best_of_one_batch_gets_the_slot() -> None:
    desk = Desk(slots=1)
    desk.holdings.offered([], 0.0)
    offers: list[WorkOffered] = []
    for job_id, lane in (("low", Priority.LOW), ("critical", Priority.CRITICAL)):
        spec = replace(to_spec("known"), job_id=job_id, priority=lane)
        offers.append(WorkOffered(job_id=job_id, attempt=1, offer=1, offered_at_ms=0, due_at_ms=0, spec=spec))
    desk.holdings.offered(offers, 0.0)
    assert desk.claimed() == [("critical", True)]


def test_offers_of_one_lane_are_taken_in_their_order_whatever_the_priorities_of_their_jobs() -> None:
    # given
    desk = Desk(slots=1)
    desk.offer("running")
    priorities = (Priority.LOW, Priority.CRITICAL, Priority.HIGH)
    offers = [
        WorkOffered(
            job_id=priority.name,
            attempt=1,
            offer=1,
            offered_at_ms=0,
            due_at_ms=0,
            spec=replace(to_spec("known"), job_id=priority.name, priority=priority),
        )
        for priority in priorities
    ]

    # when
    desk.holdings.offered(offers, 0.0, lanes=[Priority.MEDIUM] * 3)
    desk.sent.clear()
    for job_id in ("running", "LOW", "CRITICAL"):
        desk.confirm(job_id)
        desk.end(job_id)

    # then
    claimed = [record.job_id for record in desk.sent if isinstance(record, AttemptClaimed)]
    assert claimed == ["LOW", "CRITICAL", "HIGH"]


def test_a_held_offer_is_declined_after_its_time() -> None:
    desk = Desk(slots=1, hold_ms=300)
    desk.offer("a", "b", now=1.0)
    desk.holdings.tick(1.29)
    assert desk.take(OfferDeclined) == []
    desk.holdings.tick(1.31)
    assert [(d.job_id, d.reason) for d in desk.take(OfferDeclined)] == [("b", "NO_SLOTS")]


def test_an_offer_that_is_held_already_is_not_held_twice() -> None:
    desk = Desk(slots=1)
    desk.offer("a", "b", "b", "a")
    assert desk.holdings.held == 1


def test_a_later_attempt_of_what_still_runs_here_is_left_to_others() -> None:
    desk = Desk()
    desk.offer("a")
    desk.confirm("a")
    desk.take(AttemptClaimed)
    spec = replace(to_spec("known"), job_id="a")
    later = WorkOffered(job_id="a", attempt=2, offer=1, offered_at_ms=0, due_at_ms=0, spec=spec)
    desk.holdings.offered([later], 0.0)
    assert desk.claimed() == []


def test_a_refusal_of_what_runs_changes_nothing() -> None:
    desk = Desk()
    desk.offer("a")
    desk.confirm("a")
    desk.holdings.refused("a", 1, 0.0)
    assert "a" in desk.holdings.attempts
    desk.end("a")
    assert len(desk.take(AttemptSucceeded)) == 1


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


def test_a_cancel_of_what_has_not_begun_is_told_and_never_begins() -> None:
    desk = Desk()
    desk.offer("a")
    desk.holdings.cancelled("a", 1, "CANCEL_REQUESTED", 0.0)
    assert [r.started_at_ms for r in desk.take(AttemptCancelled)] == [None]
    desk.confirm("a")
    assert desk.executor.running == 0
    assert desk.holdings.busy == 0


def test_a_cancel_of_another_attempt_is_ignored() -> None:
    desk = Desk()
    desk.offer("a")
    desk.confirm("a")
    desk.holdings.cancelled("a", 2, "CANCEL_REQUESTED", 0.0)
    desk.holdings.cancelled("b", 1, "CANCEL_REQUESTED", 0.0)
    assert desk.executor.stopped == {}


def test_a_drain_declines_and_claims_nothing_more() -> None:
    desk = Desk(slots=1)
    desk.offer("a", "b")
    desk.confirm("a")
    desk.holdings.drain()
    desk.offer("c")
    assert [d.reason for d in desk.take(OfferDeclined)] == ["DRAINING", "DRAINING"]
    desk.take(AttemptClaimed)
    desk.end("a")
    assert desk.claimed() == []


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["offer", "confirm", "refuse", "end", "cancel", "lose", "tick", "wait"]),
        st.sampled_from("abcdefgh"),
    ),
    max_size=80,
)


def step(desk: Desk, what: str, job_id: str, now: float) -> None:
    """One fact that may reach a worker at any moment."""
    match what:
        case "offer":
            desk.offer(job_id, now=now)
        case "confirm":
            desk.confirm(job_id, now=now)
        case "refuse":
            desk.holdings.refused(job_id, 1, now)
        case "end" if job_id in desk.executor.begun:
            desk.end(job_id, now=now)
        case "cancel":
            desk.holdings.cancelled(job_id, 1, "CANCEL_REQUESTED", now)
        case "lose":
            desk.holdings.cancelled(job_id, 1, "LEASE_LOST", now)
        case "tick":
            desk.holdings.tick(now)


def settle(desk: Desk, now: float) -> None:
    """Everything that was begun ends, every claim is answered, and nobody offers anything more."""
    desk.holdings.drain()
    for job_id in list(desk.holdings.awaiting):
        desk.holdings.refused(job_id, 1, now)
    for job_id in list(desk.executor.begun):
        desk.end(job_id, now=now)


@settings(deadline=None)  # a busy machine is no failure
@given(_STEPS, st.integers(min_value=1, max_value=4))
def test_whatever_happens_slots_are_never_exceeded_and_never_leak(steps: list[tuple[str, str]], slots: int) -> None:
    desk = Desk(slots=slots)
    now = 0.0
    for what, job_id in steps:
        now += 1.7 if what == "wait" else 0.0
        step(desk, what, job_id, now)
        assert 0 <= desk.holdings.free <= slots
        with_slot = sum(attempt.has_slot for attempt in desk.holdings.attempts.values())
        assert desk.holdings.busy == desk.executor.running + with_slot
    settle(desk, now)
    assert desk.holdings.free == slots
    assert desk.holdings.attempts == {}


def test_a_clock_that_is_set_on_either_side_does_not_make_every_offer_look_stale_for_ever() -> None:
    desk = Desk(slots=1)
    desk.offer("before", now=0.0)
    desk.holdings.clock_ahead_ms = desk.holdings._reporter.now_ms()  # the scheduler's clock says 0, as its offers do
    desk.confirm("before", now=0.0)
    desk.end("before", now=0.1)
    desk.take(AttemptClaimed)

    desk.holdings.clock_ahead_ms -= 3_600_000  # as if one of the clocks had been set by an hour since
    desk.offer("stale-it-seems", now=1.0)
    at_once = desk.claimed()
    desk.offer("renewed", now=CLOCK_KNOWN_S + 0.1)

    assert (at_once, desk.claimed()) == ([], [("renewed", True)])
