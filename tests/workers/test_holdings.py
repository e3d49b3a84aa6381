"""Which offers are taken, held and declined, and what becomes of slots, as pure logic."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.jobs import to_spec
from mainspring.schemas.attempts import AttemptCancelled, AttemptClaimed, AttemptSucceeded, OfferDeclined
from mainspring.schemas.common import Priority
from mainspring.schemas.work import WorkOffered
from mainspring.workers.holdings import CLOCK_KNOWN_S
from tests.workers.desk import Desk


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
