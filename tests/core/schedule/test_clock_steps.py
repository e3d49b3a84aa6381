"""The wall clock is set ahead and back under schedules: no time is fired twice, and none is silent for long."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.schemas.bounds import FIRED_RUNS_MAX
from mainspring.schemas.commands import SubmitJob
from mainspring.schemas.common import CauseSource, JobStatus
from mainspring.schemas.job import JobSpec
from mainspring.schemas.schedule import CatchUp, CronRule, IntervalRule, Overlap, ScheduleStatus, ScheduleTiming
from mainspring.schemas.schedule_events import OccurrenceFired, ScheduleRewound
from tests.core.schedule.site import HOUR, ID, MINUTE, Site, definition, every, minute
from tests.core.spec import NOON

DAY = 24 * HOUR


def site(**policies: Any) -> Site:
    """Once a minute, from noon on."""
    policies.setdefault("overlap", Overlap.ALLOW_ALL)
    return Site().create(definition(**policies))


def rewinds(site: Site) -> list[tuple[int, int]]:
    """From where to where, in minutes after noon."""
    return [
        ((each.from_ms - NOON) // MINUTE, (each.to_ms - NOON) // MINUTE)
        for each in site.events
        if isinstance(each, ScheduleRewound)
    ]


def assert_nothing_was_fired_twice(site: Site) -> None:
    assert len(site.fired()) == len(set(site.fired()))
    assert {each.spec.job_id for each in site.submits} == set(site.rows.states), "each was accepted by its partition"
    site.assert_row_is_fold()


def test_a_clock_that_starts_in_1970_and_is_then_set_fires_once_and_counts_what_was_missed_by_division() -> None:
    """Case T01."""
    here = Site()
    here.set_clock(-here.now.wall_ms).create(definition(every(5_000), overlap=Overlap.ALLOW_ALL))

    here.set_clock(1_363_651_200_000).tick()

    assert [each.nominal_ms for each in here.events if isinstance(each, OccurrenceFired)] == [1_363_651_200_000]
    assert here.state().skipped == 272_730_240 - 1
    assert here.state().plan.nominal_ms == 1_363_651_205_000


def test_a_clock_that_was_ahead_and_is_set_back_silences_no_schedule() -> None:
    """Case T02: 15:00 → 17:00, a slot runs, back to 15:01; the next is that of 15:02."""
    here = Site()
    here.set_clock(3 * HOUR).create(
        definition(ScheduleTiming(rules=(CronRule(expression="* * * * *"),)), overlap=Overlap.ALLOW_ALL)
    )
    here.set_clock(2 * HOUR).tick()
    assert here.fired() == [minute(300)]

    here.later(MINUTE).set_clock(-2 * HOUR).tick()
    assert here.state().plan.nominal_ms == NOON + 182 * MINUTE

    here.later(MINUTE)
    assert here.fired()[-1] == minute(182)
    here.each(MINUTE, 2 * 60)
    assert here.fired() == [minute(300), minute(301), *(minute(number) for number in range(182, 300)), minute(302)]
    assert_nothing_was_fired_twice(here)


def test_what_was_skipped_by_a_clock_that_was_ahead_is_open_again_and_what_was_fired_stays_fired() -> None:
    here = site().later(2 * HOUR).set_clock(-2 * HOUR).tick()
    assert (here.fired(), here.skipped()) == ([minute(120)], [("MISSED", 1, 59, 59), ("COALESCED", 60, 119, 60)])
    assert rewinds(here) == [(120, 0)]

    here.each(MINUTE, 121)

    assert here.fired() == [minute(120), *(minute(number) for number in range(1, 120)), minute(121)]
    assert_nothing_was_fired_twice(here)


def test_what_is_skipped_once_more_passes_over_what_was_fired_ahead_of_its_time() -> None:
    here = site().later(10 * MINUTE).set_clock(-10 * MINUTE).tick()

    here.later(20 * MINUTE)

    assert here.fired() == [minute(10), minute(20)]
    assert here.skipped() == [("COALESCED", 1, 9, 9), ("COALESCED", 1, 19, 18)]
    assert_nothing_was_fired_twice(here)


@pytest.mark.parametrize("overlap", list(Overlap))
def test_a_schedule_of_every_policy_goes_on_within_a_minute(overlap: Overlap) -> None:
    here = site(overlap=overlap).later(2 * HOUR)
    here.succeed(minute(120)).set_clock(-2 * HOUR).tick()

    here.later(MINUTE)

    assert here.fired()[-1] == minute(1)
    assert here.status(minute(1)) is JobStatus.PENDING
    assert_nothing_was_fired_twice(here)


def test_an_instance_that_keeps_the_next_ones_back_lets_its_schedule_go_on_from_the_present_when_it_ends() -> None:
    here = site(overlap=Overlap.SKIP).later(2 * HOUR).start(minute(120)).set_clock(-2 * HOUR).later(MINUTE)
    assert here.fired() == [minute(120)]

    here.done(minute(120))

    assert rewinds(here) == [(120, 1)]
    assert here.later(MINUTE).fired()[-1] == minute(2)
    assert_nothing_was_fired_twice(here)


def test_the_end_of_an_instance_on_a_clock_that_is_ahead_counts_from_when_it_was_heard_of() -> None:
    here = site(overlap=Overlap.SKIP).later(MINUTE)
    here.held = []
    here.set_clock(2 * HOUR).succeed(minute(1))
    ((_, told),) = here.held
    here.held = None

    here.set_clock(-2 * HOUR).apply(told, CauseSource.FOLLOWUPS).later(MINUTE)

    assert here.fired() == [minute(1), minute(2)]
    assert here.skipped() == []


def test_an_instance_that_a_clock_which_was_ahead_fired_runs_at_once_and_not_when_its_time_comes() -> None:
    here = site(overlap=Overlap.SKIP)
    here.held = []
    here.later(2 * HOUR).set_clock(-2 * HOUR)
    ((_, submit),) = here.held
    here.held = None
    assert isinstance(submit, SubmitJob)

    here.apply(submit, CauseSource.FOLLOWUPS)

    assert here.rows.states[minute(120)].due_at_ms == NOON
    assert here.succeed(minute(120)).state().active == ()


def test_a_new_owner_whose_clock_is_behind_goes_on_from_its_own_present() -> None:
    here = site().later(2 * HOUR)

    here.set_clock(-2 * HOUR).taken_over().tick().later(MINUTE)

    assert rewinds(here) == [(120, 0)]
    assert here.fired() == [minute(120), minute(1)]
    assert_nothing_was_fired_twice(here)


def test_clocks_that_differ_by_seconds_rewind_nothing() -> None:
    here = site().later(MINUTE + 9_000).set_clock(-9_000).taken_over().tick().later(MINUTE)

    assert rewinds(here) == []
    assert here.fired() == [minute(1), minute(2)]


def test_a_definition_that_was_changed_while_the_clock_was_ahead_goes_on_and_leaves_out_what_the_former_one_fired() -> (
    None
):
    here = site().each(MINUTE, 3).set_clock(HOUR).tick()
    assert here.fired()[-1] == minute(63)
    here.update(definition(every(3 * MINUTE), overlap=Overlap.ALLOW_ALL))

    here.set_clock(-HOUR).tick().each(MINUTE, 63)

    assert here.fired()[4:] == [minute(number) for number in (*range(6, 63, 3), 66)]
    assert_nothing_was_fired_twice(here)


def test_a_paused_schedule_goes_on_from_the_present_when_it_is_resumed() -> None:
    here = site().later(2 * HOUR).pause().set_clock(-2 * HOUR).tick()
    assert rewinds(here) == []

    here.resume().later(MINUTE)

    assert here.fired() == [minute(120), minute(1)]
    assert_nothing_was_fired_twice(here)


def test_a_trigger_runs_at_once_although_an_earlier_one_has_a_later_name() -> None:
    here = site().set_clock(2 * HOUR + 1).trigger().set_clock(-2 * HOUR).trigger()

    first, second = (each for each in here.submits if "PLANNED" not in each.reason)
    assert first.spec.job_id != second.spec.job_id
    assert here.rows.states[second.spec.job_id].due_at_ms == here.now.wall_ms
    assert here.succeed(second.spec.job_id).status(second.spec.job_id) is JobStatus.COMPLETED


def test_the_cursor_goes_no_further_back_than_what_is_remembered() -> None:
    here = site(overlap=Overlap.SKIP)
    for number in range(FIRED_RUNS_MAX + 10):
        here.later(2 * MINUTE).succeed(minute(2 * number + 2)).until_idle()
    forgotten_ms = here.state().forgotten_ms
    assert forgotten_ms == NOON + 20 * MINUTE

    here.set_clock(NOON - here.now.wall_ms).tick()

    assert here.state().cursor_ms == forgotten_ms
    assert here.tick().last == [], "and it is not tried again"
    here.each(MINUTE, 21).until_idle()
    assert here.fired()[-1] == minute(21)
    assert_nothing_was_fired_twice(here)


def test_schedules_that_have_come_to_their_end_stay_there() -> None:
    here = site(timing=every(end_ms=NOON + HOUR)).later(2 * HOUR).set_clock(-2 * HOUR).tick().later(MINUTE)

    assert here.state().status is ScheduleStatus.COMPLETED
    assert rewinds(here) == []


def test_ten_thousand_schedules_are_looked_at_in_slices() -> None:
    here = Site()
    for number in range(600):
        here.create(definition(schedule_id=f"s{number}", overlap=Overlap.ALLOW_ALL))
    here.later(2 * HOUR).until_idle()

    here.set_clock(-2 * HOUR).tick()
    assert 0 < len(here.last) < 600

    here.until_idle()
    assert sum(isinstance(each, ScheduleRewound) for each in here.events) == 600
    here.later(MINUTE).until_idle()
    assert {f"s{number}@2026-01-01T12:01:00Z" for number in range(600)} <= set(here.fired())


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_jump_over_a_change_of_the_clocks_loses_and_doubles_no_day(hours: int) -> None:
    """The clock is wrong by hours around a spring gap in Berlin (2026-03-29, 01:00 UTC), and is then set right."""
    timing = ScheduleTiming(rules=(CronRule(expression="30 2 * * *"),), timezone="Europe/Berlin")
    here = Site()
    here.set_clock(1_774_656_000_000 - NOON)
    here.create(definition(timing, overlap=Overlap.ALLOW_ALL, catch_up_window_ms=DAY))

    here.set_clock(hours * HOUR).each(HOUR, 24).set_clock(-hours * HOUR).tick().each(HOUR, 48)

    days = [each.removeprefix(f"{ID}@") for each in here.fired()]
    assert days == ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
    assert_nothing_was_fired_twice(here)


def test_a_jump_over_the_hour_that_comes_twice_fires_each_real_quarter_once() -> None:
    timing = ScheduleTiming(rules=(CronRule(expression="*/15 * * * *"),), timezone="Europe/Berlin")
    here = Site()
    start_ms = 1_792_886_400_000
    here.set_clock(start_ms - NOON).create(definition(timing, overlap=Overlap.ALLOW_ALL, catch_up=CatchUp.ALL))

    here.set_clock(2 * HOUR).until_idle().set_clock(-2 * HOUR).until_idle()
    for _ in range(16):
        here.later(15 * MINUTE).until_idle()

    times = sorted(each.nominal_ms for each in here.events if isinstance(each, OccurrenceFired))
    assert times == [start_ms + number * 15 * MINUTE for number in range(1, 17)]


STEP = st.tuples(st.sampled_from(["later", "set"]), st.integers(-300, 300))


@settings(deadline=None)  # a busy machine is no failure
@given(
    steps=st.lists(STEP, max_size=10),
    every_s=st.sampled_from([60, 90, 420]),
    catch_up=st.sampled_from(list(CatchUp)),
    is_taken_over=st.booleans(),
)
def test_wherever_the_clock_is_set_nothing_is_fired_twice_and_nothing_is_silent(
    steps: list[tuple[str, int]], every_s: int, catch_up: CatchUp, *, is_taken_over: bool
) -> None:
    rules = (IntervalRule(every_ms=every_s * 1_000, anchor_ms=NOON),)
    spec = definition(ScheduleTiming(rules=rules), overlap=Overlap.ALLOW_ALL, catch_up=catch_up)
    here = Site().create(spec)
    for what, minutes in steps:
        if what == "set":
            here.set_clock(minutes * MINUTE)
        else:
            here.later(abs(minutes) * MINUTE)
        if is_taken_over:
            here.taken_over()
        here.until_idle()

    before_ms = here.now.wall_ms
    for _ in range(60):
        here.later(MINUTE // 2).until_idle()

    assert_nothing_was_fired_twice(here)
    first = -(-(before_ms + 1 - NOON) // (every_s * 1_000))
    last = (here.now.wall_ms - NOON) // (every_s * 1_000)
    wanted = {NOON + number * every_s * 1_000 for number in range(first, last + 1)}
    assert wanted <= {each.nominal_ms for each in here.events if isinstance(each, OccurrenceFired)}


def test_a_job_of_a_user_is_not_taken_for_a_fired_one() -> None:
    here = Site().apply(
        SubmitJob(
            command_id="c",
            actor="ada",
            requested_at_ms=NOON,
            spec=JobSpec(job_id="later", name="work", run_at_ms=NOON + HOUR),
        )
    )

    assert here.rows.states["later"].due_at_ms == NOON + HOUR
