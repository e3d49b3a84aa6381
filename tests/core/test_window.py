"""The dispatch window: learns from answers, counts from rows, never stands still."""

from dataclasses import replace

import pytest

from mainspring.processors.core import QueueRules, Rules
from mainspring.schemas.codes import DeclineReason
from mainspring.schemas.common import Priority
from tests.core.spec import Partition

RULES = Rules(window_start=4, window_max=16)


def with_jobs(number: int, rules: Rules = RULES) -> Partition:
    partition = Partition(rules)
    for each in range(number):
        partition.submit(f"job-{each}")
    return partition


def window(partition: Partition) -> int:
    return partition.core.stats()["default"].window


def offered(partition: Partition) -> list[str]:
    return [offer.record.job_id for offer in partition.last.offers]


def test_no_more_is_offered_than_the_window_allows() -> None:
    partition = with_jobs(10).dispatch()
    assert len(offered(partition)) == 4
    assert offered(partition.dispatch()) == []
    stats = partition.core.stats()["default"]
    assert (stats.ready, stats.offered, stats.running) == (6, 4, 0)


def test_runs_count_like_offers() -> None:
    partition = with_jobs(10).dispatch().claim("job-0", free_slot=False).claim("job-1", free_slot=False)
    assert offered(partition.dispatch()) == []


def test_claims_that_found_a_free_slot_grow_a_window_that_holds_jobs_back() -> None:
    partition = with_jobs(40).dispatch()
    for job_id in offered(partition):
        partition.claim(job_id)
    assert window(partition) == 12
    assert len(offered(partition.dispatch())) == 8, "twice as many as before, though the first four still run"


def test_after_a_decline_each_claim_makes_room_for_itself_and_no_more() -> None:
    partition = with_jobs(40).dispatch().decline("job-0").dispatch()
    assert window(partition) == 2
    for job_id in ("job-1", "job-2", "job-3"):
        partition.claim(job_id)
    assert window(partition) == 5


LARGE = Rules(window_start=8, window_max=64, window_calm=4, grow_within_ms=400)


@pytest.mark.parametrize(
    ("rules", "answered_ms", "size"),
    [
        pytest.param(LARGE, 400, 24, id="in time"),
        pytest.param(LARGE, 401, 8, id="late: offers lie in front of the workers"),
        pytest.param(replace(LARGE, window_calm=8), 401, 10, id="late, but small until it has grown"),
    ],
)
def test_late_claims_grow_only_a_small_window(rules: Rules, answered_ms: int, size: int) -> None:
    partition = with_jobs(100, rules).dispatch()
    first = offered(partition)
    partition.later(answered_ms)
    for job_id in first:
        partition.claim(job_id)
    assert window(partition) == size


@pytest.mark.parametrize(
    ("answered_ms", "offers"),
    [
        pytest.param(400, 2, id="in time: each end is followed"),
        pytest.param(401, 0, id="late: the queue of offers becomes shorter first"),
    ],
)
def test_while_claims_are_late_ends_are_not_followed(answered_ms: int, offers: int) -> None:
    # Given a window of 8 that was halved while 6 are out,
    partition = with_jobs(100, replace(LARGE, window_calm=2)).dispatch()
    first = offered(partition)
    partition.decline(first[0]).decline(first[1]).later(answered_ms)

    # when claims come that found free slots, and two attempts end,
    partition.claim(first[2]).claim(first[3])
    partition.succeed(first[2]).succeed(first[3])

    # then it depends on how long the claims took whether other jobs follow.
    assert len(offered(partition.dispatch())) == offers


@pytest.mark.parametrize(
    ("rules", "size"),
    [
        pytest.param(replace(LARGE, window_calm=2), 4, id="halved once for all of them"),
        pytest.param(replace(LARGE, window_calm=6), 6, id="no further than to where it is calm"),
        pytest.param(replace(LARGE, window_calm=8), 8, id="a small one stays"),
    ],
)
def test_offers_that_must_be_renewed_halve_a_large_window(rules: Rules, size: int) -> None:
    partition = with_jobs(100, rules).dispatch()
    partition.later(rules.renew_min_ms).tick()
    assert len(offered(partition)) == 8, "all eight are offered once more"
    assert window(partition) == size


def test_claims_that_waited_for_a_slot_do_not() -> None:
    partition = with_jobs(10).dispatch()
    for job_id in offered(partition):
        partition.claim(job_id, free_slot=False)
    assert window(partition) == 4


def test_a_window_that_holds_nothing_back_does_not_grow() -> None:
    partition = with_jobs(3).dispatch()
    for job_id in offered(partition):
        partition.claim(job_id)
    assert window(partition) == 4


def test_a_repeated_or_refused_claim_does_not_grow_the_window() -> None:
    partition = with_jobs(10).dispatch().claim("job-0").claim("job-0").claim("job-0", worker="w2")
    assert window(partition) == 6


def test_the_window_has_an_end() -> None:
    partition = with_jobs(100)
    for _ in range(5):
        for job_id in offered(partition.dispatch()):
            partition.claim(job_id)
    assert window(partition) == 16
    assert partition.core.stats()["default"].running == 16


def test_a_burst_of_declines_halves_the_window_once() -> None:
    partition = with_jobs(10).dispatch()
    for job_id in offered(partition):
        partition.decline(job_id)
    assert window(partition) == 2
    for job_id in offered(partition.later(300).dispatch()):
        partition.decline(job_id)
    assert window(partition) == 1


def test_the_window_never_closes() -> None:
    partition = with_jobs(10)
    for _ in range(10):
        partition.later(300).dispatch()
        for job_id in offered(partition):
            partition.decline(job_id)
    assert window(partition) == 1
    assert len(offered(partition.dispatch())) == 1


@pytest.mark.parametrize("reason", [DeclineReason.DRAINING, DeclineReason.UNKNOWN_NAME])
def test_other_declines_say_nothing_about_room(reason: DeclineReason) -> None:
    partition = with_jobs(10).dispatch().decline("job-0", reason=reason)
    assert window(partition) == 4


def full_of_long_jobs() -> Partition:
    """Four run, and the window has shrunk below them."""
    partition = with_jobs(20).dispatch()
    for job_id in offered(partition):
        partition.claim(job_id, free_slot=False)
    for _ in range(3):
        partition.later(1000).dispatch()
        for job_id in offered(partition):
            partition.decline(job_id)
    assert window(partition) == 1
    return partition


def test_an_attempt_that_ended_lets_one_job_follow_however_small_the_window() -> None:
    partition = full_of_long_jobs().succeed("job-0").succeed("job-1").dispatch()
    assert len(offered(partition)) == 2
    assert offered(partition.dispatch()) == []


def test_one_job_probes_a_full_window_once_a_second() -> None:
    partition = full_of_long_jobs()
    wake = partition.core.wake_at()
    assert wake is not None
    assert wake.mono_ms == partition.now.mono_ms + 1000
    assert offered(partition.later(999).dispatch()) == []
    assert len(offered(partition.later(1).dispatch())) == 1
    assert offered(partition.later(999).dispatch()) == []


def test_a_free_slot_resumes_from_what_runs() -> None:
    partition = full_of_long_jobs().later(1000).dispatch()
    (job_id,) = offered(partition)
    partition.claim(job_id)
    assert window(partition) == 7
    assert len(offered(partition.dispatch())) == 2


def test_what_is_in_flight_is_counted_from_the_rows_by_a_new_owner() -> None:
    partition = with_jobs(10).dispatch().claim("job-0").taken_over()
    stats = partition.core.stats()["default"]
    assert (stats.offered, stats.running, stats.window) == (3, 1, 4)
    assert offered(partition.dispatch()) == ["job-4"], "a new owner probes, and no more"
    assert offered(partition.dispatch()) == []


def test_room_bounds_a_dispatch_and_queues_share_it() -> None:
    rules = Rules(queues={"a": QueueRules(), "b": QueueRules()}, window_start=100)
    partition = Partition(rules)
    for number in range(10):
        partition.submit(f"a{number}", queue="a").submit(f"b{number}", queue="b")
    queues = [offer.queue for offer in partition.dispatch(room=6).last.offers]
    assert (queues.count("a"), queues.count("b")) == (3, 3)
    first, second = (partition.dispatch(room=1).last.offers[0].queue for _ in range(2))
    assert first != second
    wake = partition.core.wake_at()
    assert wake is not None
    assert wake.mono_ms == partition.now.mono_ms, "what had no room is due now"


def test_a_full_queue_does_not_hold_back_another() -> None:
    rules = Rules(queues={"a": QueueRules(), "b": QueueRules()}, window_start=20)
    partition = Partition(rules)
    for number in range(1000):
        partition.submit(f"a{number}", queue="a")
    for number in range(100):
        partition.submit(f"b{number}", queue="b", priority=Priority.LOW)
    queues = [offer.queue for offer in partition.dispatch(room=32).last.offers]
    assert (queues.count("a"), queues.count("b")) == (16, 16)
    queues += [offer.queue for offer in partition.dispatch(room=32).last.offers]
    assert (queues.count("a"), queues.count("b")) == (20, 20)
