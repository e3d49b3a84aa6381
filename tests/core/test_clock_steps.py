"""The wall clock of a partition is set, ahead and back, while jobs wait: what waits for an instant follows it, what
waits for a delay does not wait longer for it, and what waits for nothing does not wait."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.processors.core.explain import Ready
from mainspring.processors.core.job.evolve import NOT_OFFERED, fold
from mainspring.processors.core.steps import STEP_MIN_MS
from mainspring.schemas.codes import CancelCode, DeclineReason
from mainspring.schemas.common import JobStatus
from mainspring.schemas.events import JobCancelled, JobRescheduled, JobStarted
from tests.core.spec import NOON, Partition
from tests.support.index_store import DictStore

Make = Callable[[], Partition]


def with_a_table() -> Partition:
    """The indexes have room for one job in memory."""
    return Partition(index=DictStore(), window_jobs=1)


KINDS: tuple[Make, Make] = (Partition, with_a_table)

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


@pytest.fixture(params=KINDS, ids=["in memory", "with a table"])
def make(request: pytest.FixtureRequest) -> Make:
    """Partitions that keep their indexes in memory, and such that have a table for them."""
    kind: Make = request.param
    return kind


def has_offered(partition: Partition, job_id: str = "job") -> bool:
    """Whether the job is on offer by now."""
    return partition.dispatch().state(job_id).dispatch.offered_attempt > 0


def assert_row_is_fold(partition: Partition, job_id: str = "job") -> None:
    folded = fold([each for each in partition.events if each.job_id == job_id])
    assert replace(partition.state(job_id), dispatch=NOT_OFFERED) == folded


def test_a_job_to_be_run_at_once_is_due_also_when_the_clock_was_set_back_before_it_was_offered(make: Make) -> None:
    partition = make().submit().set_clock(-HOUR)
    assert partition.why_not() == Ready(queue="default", ahead=0, in_flight=0, window=8)

    assert partition.start().event(JobStarted).decided_at_ms == NOON - HOUR


def test_a_job_to_be_run_at_once_is_due_also_for_a_new_owner_whose_clock_is_behind(make: Make) -> None:
    partition = make().submit().set_clock(-HOUR).taken_over()

    assert partition.start().status() is JobStatus.RUNNING


def test_a_claim_counts_when_the_clock_was_set_back_after_the_offer_of_a_job_that_waited_for_no_instant(
    make: Make,
) -> None:
    partition = make().submit().dispatch().set_clock(-HOUR)

    assert partition.claim().status() is JobStatus.RUNNING


@pytest.mark.parametrize("verb", ["release", "stopped"])
def test_what_is_to_run_again_at_once_does_not_wait_for_a_clock_that_was_set_back(make: Make, verb: str) -> None:
    partition = make().submit().start()
    getattr(partition, verb)()

    partition.set_clock(-HOUR).taken_over()

    assert has_offered(partition)


def test_a_job_that_was_given_a_time_in_the_past_is_due_whatever_the_clock_then_says(make: Make) -> None:
    partition = make().submit(run_at_ms=NOON + DAY).reschedule(NOON - 1).set_clock(-HOUR)

    assert partition.start().status() is JobStatus.RUNNING


def test_a_delay_is_over_when_it_would_have_been_although_the_clock_was_set_back(make: Make) -> None:
    partition = make().submit(delay_ms=10 * MINUTE).later(4 * MINUTE).set_clock(-HOUR).tick()
    moved = partition.event(JobRescheduled)
    assert (moved.due_at_ms, moved.command_id, moved.actor) == (NOON + 10 * MINUTE - HOUR, None, None)

    assert not has_offered(partition.later(6 * MINUTE - 1))
    assert partition.later(1).start().event(JobStarted).due_at_ms == moved.due_at_ms
    assert_row_is_fold(partition)


def test_a_back_off_is_over_when_it_would_have_been_although_the_clock_was_set_back(make: Make) -> None:
    partition = make().submit(max_retries=1).start().fail(retry_delay_ms=10 * MINUTE)

    partition.later(4 * MINUTE).set_clock(-HOUR)

    assert not has_offered(partition.later(6 * MINUTE - 1))
    assert has_offered(partition.later(1))
    assert_row_is_fold(partition)


def test_a_delay_that_was_over_before_the_clock_was_set_back_stays_over(make: Make) -> None:
    partition = make().submit(delay_ms=MINUTE).later(MINUTE).dispatch().set_clock(-HOUR).tick()

    assert partition.claim().status() is JobStatus.RUNNING, "the offer was not withdrawn"
    assert_row_is_fold(partition)


def test_a_claim_that_comes_before_a_step_was_dealt_with_costs_its_job_an_offer_and_no_more(make: Make) -> None:
    partition = make().submit(delay_ms=MINUTE).later(MINUTE).dispatch().set_clock(-DAY)

    partition.claim()
    assert partition.status() is JobStatus.PENDING

    assert partition.start().status() is JobStatus.RUNNING
    assert_row_is_fold(partition)


def test_a_new_owner_whose_clock_is_behind_lets_a_delay_begin_again_once(make: Make) -> None:
    partition = make().submit(delay_ms=10 * MINUTE).later(4 * MINUTE).set_clock(-DAY).taken_over().tick()

    assert not has_offered(partition.later(10 * MINUTE - 1).taken_over())
    assert has_offered(partition.later(1))
    assert_row_is_fold(partition)


def test_an_instant_follows_the_clock_wherever_it_is_set(make: Make) -> None:
    partition = make().submit(run_at_ms=NOON + HOUR).later(30 * MINUTE).set_clock(-2 * HOUR)

    assert not has_offered(partition.later(2 * HOUR))
    assert partition.last.events == []
    assert has_offered(partition.set_clock(HOUR))


def test_a_clock_that_was_ahead_by_mistake_and_is_set_right_shortens_no_delay_that_began_before(make: Make) -> None:
    partition = make().submit(delay_ms=4 * HOUR).set_clock(2 * HOUR).tick().later(MINUTE).set_clock(-2 * HOUR)

    assert not has_offered(partition.later(4 * HOUR - MINUTE - 1))
    assert has_offered(partition.later(1))


def test_a_delay_that_began_on_a_clock_that_was_ahead_is_not_stretched_when_that_is_set_right(make: Make) -> None:
    partition = make().set_clock(2 * HOUR).tick().submit(delay_ms=HOUR).later(MINUTE).set_clock(-2 * HOUR)

    assert not has_offered(partition.later(HOUR - MINUTE - 1))
    assert has_offered(partition.later(1))


def test_a_step_ahead_makes_delays_and_instants_due_and_lets_start_deadlines_pass(make: Make) -> None:
    partition = make()
    partition.submit("delay", delay_ms=HOUR).submit("instant", run_at_ms=NOON + HOUR)
    partition.submit("deadline", run_at_ms=NOON + HOUR, start_deadline_ms=NOON + 2 * HOUR)

    partition.set_clock(DAY).dispatch()

    assert {each.job_id for each in partition.offers} == {"delay", "instant"}
    (expired,) = (each for each in partition.events if isinstance(each, JobCancelled))
    assert (expired.job_id, expired.cancel_code) == ("deadline", CancelCode.EXPIRED)


def test_a_pause_for_an_unknown_name_does_not_last_longer_for_a_clock_that_was_set_back(make: Make) -> None:
    partition = make().submit().dispatch().decline(reason=DeclineReason.UNKNOWN_NAME)
    assert not has_offered(partition.later(500))

    partition.set_clock(-DAY).tick()

    assert has_offered(partition)
    partition.decline(reason=DeclineReason.UNKNOWN_NAME).later(partition.rules.unknown_name_after_ms).dispatch()
    assert partition.decline(reason=DeclineReason.UNKNOWN_NAME).event(JobCancelled).cancel_code == "UNKNOWN_NAME"


def test_a_name_that_nobody_knows_ends_its_job_in_time_although_the_clock_was_set_back_during_an_offer(
    make: Make,
) -> None:
    partition = make().submit().dispatch().decline(reason=DeclineReason.UNKNOWN_NAME)
    assert has_offered(partition.later(partition.rules.park_max_ms))

    partition.set_clock(-DAY).tick().decline(reason=DeclineReason.UNKNOWN_NAME)

    partition.later(partition.rules.unknown_name_after_ms).dispatch()
    assert partition.decline(reason=DeclineReason.UNKNOWN_NAME).event(JobCancelled).cancel_code == "UNKNOWN_NAME"


def test_a_pause_ends_for_a_new_owner_whose_clock_is_behind(make: Make) -> None:
    partition = make().submit().dispatch().decline(reason=DeclineReason.UNKNOWN_NAME).set_clock(-DAY)

    assert has_offered(partition.taken_over().tick())


def test_a_small_step_moves_nothing_and_delays_by_itself(make: Make) -> None:
    partition = make().submit(delay_ms=MINUTE).set_clock(-900).tick()
    assert partition.last.events == []

    assert not has_offered(partition.later(MINUTE))
    assert has_offered(partition.later(900))


def test_a_crowd_that_waits_is_moved_in_slices_and_who_comes_meanwhile_is_left_alone(make: Make) -> None:
    partition = make()
    for number in range(400):
        partition.submit(f"crowd-{number}", delay_ms=HOUR)

    partition.set_clock(-DAY).submit("late", delay_ms=MINUTE).cancel("crowd-399").tick()

    assert 0 < len(partition.last.events) < 300
    wake = partition.core.wake_at()
    assert wake is not None
    assert wake.mono_ms is not None
    assert wake.mono_ms <= partition.now.mono_ms, "the rest is next"
    partition.tick().tick().tick()
    moved = {each.job_id for each in partition.events if isinstance(each, JobRescheduled)}
    assert moved == {f"crowd-{number}" for number in range(399)}
    assert {partition.state(job_id).due_at_ms for job_id in moved} == {NOON - DAY + HOUR}
    assert partition.state("late").due_at_ms == NOON - DAY + MINUTE
    assert partition.tick().last.events == []


def test_a_second_step_while_the_first_is_dealt_with_counts_for_all_that_wait(make: Make) -> None:
    partition = make()
    for number in range(400):
        partition.submit(f"crowd-{number}", delay_ms=HOUR)

    partition.set_clock(-DAY).tick().set_clock(-DAY)
    for _ in range(8):
        partition.tick()

    assert {state.due_at_ms for state in partition.rows.states.values()} == {NOON - 2 * DAY + HOUR}


STEP = st.tuples(
    st.sampled_from(["later", "back", "ahead"]), st.integers(2, 3_600).map(lambda seconds: seconds * 1_000)
)


@settings(deadline=None)  # a busy machine is no failure
@given(delay_s=st.integers(1, 7_200), steps=st.lists(STEP, max_size=8), make=st.sampled_from(KINDS))
def test_a_delay_lasts_no_longer_than_asked_and_is_cut_short_by_steps_ahead_only(
    delay_s: int, steps: list[tuple[str, int]], make: Make
) -> None:
    partition = make().submit(delay_ms=delay_s * 1_000)
    waited_ms = ahead_ms = 0
    for what, ms in steps:
        if what == "later":
            waited_ms += ms
            partition.later(ms)
        else:
            partition.set_clock(-ms if what == "back" else ms)
            ahead_ms += ms if what == "ahead" else 0
        partition.tick()
        if has_offered(partition):
            assert waited_ms + ahead_ms >= delay_s * 1_000
            break
        assert waited_ms < 2 * delay_s * 1_000 or ahead_ms
    else:
        left_ms = max(0, delay_s * 1_000 - waited_ms)
        if not ahead_ms:
            assert left_ms == 0 or not has_offered(partition.later(left_ms - 1))
            assert has_offered(partition.later(1))
        else:
            assert has_offered(partition.later(delay_s * 1_000 + left_ms + ahead_ms))
    assert_row_is_fold(partition)


@settings(deadline=None)  # a busy machine is no failure
@given(back_s=st.integers(2, 100_000), waited_s=st.integers(0, 3_599), make=st.sampled_from(KINDS))
def test_after_a_takeover_a_delay_lasts_once_more_at_most(back_s: int, waited_s: int, make: Make) -> None:
    partition = make().submit(delay_ms=HOUR).later(waited_s * 1_000)

    partition.set_clock(-back_s * 1_000).taken_over().tick()

    assert not has_offered(partition.later(HOUR - waited_s * 1_000 - 1)), "not before the delay is over"
    assert has_offered(partition.later(1 + waited_s * 1_000 + STEP_MIN_MS))
