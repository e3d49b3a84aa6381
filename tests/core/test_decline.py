"""OfferDeclined: back to the queue, or parked until somebody knows the name."""

import itertools

import pytest

from mainspring.processors.core import Rules
from mainspring.schemas.codes import CancelCode, DeclineReason
from mainspring.schemas.common import JobStatus
from mainspring.schemas.events import JobCancelled
from tests.core.spec import NOON, Partition

RULES = Rules(park_min_ms=1000, park_max_ms=30_000, unknown_name_after_ms=60_000)


def test_a_declined_job_is_offered_again_on_another_partition() -> None:
    partition = Partition().submit().dispatch()
    partition.core.placed("job", 3)
    (offer,) = partition.decline().dispatch().last.offers
    assert (offer.record.attempt, offer.record.offer, offer.avoid) == (1, 1, 3)


def test_a_job_that_started_has_nothing_to_avoid_any_more() -> None:
    partition = Partition().submit(max_retries=1, retry_base_delay_ms=0).dispatch()
    partition.core.placed("job", 3)
    (offer,) = partition.claim().fail().dispatch().last.offers
    assert offer.avoid is None


def test_a_decline_writes_no_event() -> None:
    assert Partition().submit().dispatch().decline().last.events == []


@pytest.mark.parametrize("attempt", [0, 2])
def test_a_decline_of_another_attempt_changes_nothing(attempt: int) -> None:
    partition = Partition().submit().dispatch()
    before = partition.state()
    assert partition.decline(attempt=attempt).state() is before


def test_a_decline_of_a_job_that_started_meanwhile_changes_nothing() -> None:
    partition = Partition().submit().start()
    before = partition.state()
    assert partition.decline(attempt=1).state() is before


def test_a_decline_of_an_unknown_job_changes_nothing() -> None:
    assert Partition().decline("nobody", attempt=1).rows.states == {}


def test_no_slots_halves_the_window_and_draining_does_not() -> None:
    full = Partition().submit().dispatch().decline()
    draining = Partition().submit().dispatch().decline(reason=DeclineReason.DRAINING)
    assert (full.core.stats()["default"].window, draining.core.stats()["default"].window) == (4, 8)


def test_a_job_whose_name_nobody_knows_is_parked_with_growing_pauses_and_cancelled_in_the_end() -> None:
    partition = Partition(RULES).submit()
    asked_at: list[int] = []
    while partition.status() is JobStatus.PENDING:
        partition.dispatch()
        if partition.last.offers:
            asked_at.append(partition.now.wall_ms - NOON)
            partition.decline(reason=DeclineReason.UNKNOWN_NAME)
        else:
            wake = partition.core.wake_at()
            assert wake is not None
            assert wake.wall_ms is not None
            partition.later(wake.wall_ms - partition.now.wall_ms)
    assert asked_at == [0, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000]
    event = partition.event(JobCancelled)
    assert (event.cancel_code, event.attempt, event.command_id) == (CancelCode.UNKNOWN_NAME, 0, None)


def test_a_worker_that_comes_to_know_the_name_waits_for_the_job_no_longer_than_five_seconds() -> None:
    partition = Partition(Rules()).submit()
    asked_at: list[int] = []
    while partition.now.wall_ms < NOON + 60_000:
        if partition.dispatch().last.offers:
            asked_at.append(partition.now.wall_ms)
            partition.decline(reason=DeclineReason.UNKNOWN_NAME)
        wake = partition.core.wake_at()
        assert wake is not None
        assert wake.wall_ms is not None
        partition.later(max(1, wake.wall_ms - partition.now.wall_ms))
    pauses = [later - earlier for earlier, later in itertools.pairwise(asked_at)]
    assert len(pauses) > 10
    assert max(pauses) == 5_000


def test_a_parked_job_is_not_in_flight_and_runs_once_a_worker_knows_its_name() -> None:
    partition = Partition(RULES).submit().dispatch().decline(reason=DeclineReason.UNKNOWN_NAME)
    assert partition.core.stats()["default"].offered == 0
    assert partition.dispatch().last.offers == []
    partition.later(1000).start().succeed()
    assert partition.status() is JobStatus.COMPLETED


def test_how_long_a_name_has_been_unknown_survives_a_decline_for_slots_and_a_takeover() -> None:
    partition = Partition(RULES).submit().dispatch().decline(reason=DeclineReason.UNKNOWN_NAME)
    partition.later(1000).dispatch().decline().taken_over().dispatch()
    assert partition.state().dispatch.parked_since_ms == NOON
    partition.later(60_000).decline(reason=DeclineReason.UNKNOWN_NAME)
    assert partition.event(JobCancelled).cancel_code == CancelCode.UNKNOWN_NAME
