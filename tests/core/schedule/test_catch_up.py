"""What becomes of occurrences that nobody was there to fire."""

from typing import Any

import pytest

from mainspring.schemas.schedule import CatchUp, IntervalRule, Overlap, ScheduleTiming
from tests.core.schedule.site import HOUR, MINUTE, Site, definition, every, minute
from tests.core.spec import NOON

DAY = 24 * HOUR


def away(outage_ms: int, **policies: Any) -> Site:
    """No scheduler was there from noon on."""
    policies.setdefault("overlap", Overlap.ALLOW_ALL)
    return Site().create(definition(**policies)).later(outage_ms)


def test_latest_fires_the_newest_and_coalesces_the_others() -> None:
    site = away(10 * MINUTE)

    assert site.fired() == [minute(10)]
    assert site.skipped() == [("COALESCED", 1, 9, 9)]
    site.assert_row_is_fold()


def test_all_fires_each_oldest_first() -> None:
    site = away(10 * MINUTE, catch_up=CatchUp.ALL)

    assert site.fired() == [minute(number) for number in range(1, 11)]
    assert site.skipped() == []


def test_none_fires_only_what_is_on_time() -> None:
    site = away(10 * MINUTE + 9_000, catch_up=CatchUp.NONE)
    assert site.fired() == [minute(10)]
    assert site.skipped() == [("MISSED", 1, 9, 9)]

    site = away(10 * MINUTE + 11_000, catch_up=CatchUp.NONE)
    assert site.fired() == []
    assert site.skipped() == [("MISSED", 1, 10, 10)]


@pytest.mark.parametrize(("catch_up", "fired"), [(CatchUp.LATEST, [10]), (CatchUp.ALL, [8, 9, 10])])
def test_what_is_older_than_the_window_is_missed(catch_up: CatchUp, fired: list[int]) -> None:
    site = away(10 * MINUTE + 30_000, catch_up=catch_up, catch_up_window_ms=3 * MINUTE)

    assert site.fired() == [minute(number) for number in fired]
    assert site.skipped()[0] == ("MISSED", 1, 7, 7)


def test_a_year_without_a_scheduler_costs_a_schedule_of_every_second_three_events() -> None:
    site = away(365 * DAY, timing=every(1_000))

    assert len(site.last) == 3
    assert [each[3] for each in site.skipped()] == [365 * 86_400 - 3_601, 3_600]
    assert site.state().skipped == 365 * 86_400 - 1
    assert len(site.fired()) == 1


def test_all_is_bounded_in_each_turn_and_ends() -> None:
    site = away(HOUR, timing=every(1_000), catch_up=CatchUp.ALL)
    assert len(site.fired()) == 100

    site.until_idle()

    assert len(set(site.fired())) == len(site.fired()) == 3_600
    site.assert_row_is_fold()


def test_schedules_that_catch_up_take_turns_with_those_that_are_on_time() -> None:
    site = Site()
    for number in range(300):
        site.create(
            definition(every(1_000), schedule_id=f"behind{number}", catch_up=CatchUp.ALL, overlap=Overlap.ALLOW_ALL)
        )
    site.create(definition(every(HOUR), schedule_id="on-time"))

    site.later(HOUR).tick()

    assert "on-time@2026-01-01T13:00:00Z" in site.fired()


def test_all_stops_at_the_last_run() -> None:
    assert away(HOUR, catch_up=CatchUp.ALL, max_runs=3).fired() == [minute(number) for number in (1, 2, 3)]


def test_all_keeps_the_others_waiting_where_instances_must_not_overlap() -> None:
    site = away(3 * MINUTE, catch_up=CatchUp.ALL, overlap=Overlap.BUFFER_ALL)
    assert site.fired() == [minute(1)]

    for number in (1, 2, 3):
        site.succeed(minute(number)).until_idle()

    assert site.fired() == [minute(1), minute(2), minute(3)]


def test_a_clock_that_jumps_a_day_ahead_and_back_fires_nothing_twice() -> None:
    site = away(DAY, timing=every(HOUR))
    assert len(site.fired()) == 1

    site.later(-DAY).tick().each(HOUR, 24)
    assert len(site.fired()) == 1 + 23, "the one that was fired ahead of its time stays fired"
    assert len(set(site.fired())) == len(site.fired())

    assert len(site.later(HOUR).fired()) == 25
    site.assert_row_is_fold()


def test_several_rules_at_the_same_instant_are_one_occurrence() -> None:
    rules = tuple(IntervalRule(every_ms=each * MINUTE, anchor_ms=NOON) for each in (2, 3))
    site = Site().create(definition(ScheduleTiming(rules=rules), overlap=Overlap.ALLOW_ALL)).each(MINUTE, 6)

    assert site.fired() == [minute(number) for number in (2, 3, 4, 6)]
