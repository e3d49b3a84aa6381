"""What has fallen due and has no outcome yet, when a definition is changed or a schedule is paused."""

from dataclasses import replace
from typing import Any

import pytest

from mainspring.processors.core import Now
from mainspring.schemas.common import JobStatus
from mainspring.schemas.schedule import CatchUp, Overlap, ScheduleStatus
from mainspring.schemas.schedule_events import ScheduleUpdated
from tests.core.schedule.site import HOUR, ID, MINUTE, Site, definition, every, minute
from tests.core.spec import NOON


def noted(site: Site) -> Site:
    """Somebody writes another note, and changes nothing else."""
    return site.update(replace(site.schedules.specs[ID], note="another"))


def test_an_update_that_keeps_the_timing_keeps_the_occurrence_that_an_instance_was_cancelled_for() -> None:
    site = Site().create(overlap=Overlap.CANCEL_OTHER).later(MINUTE).start(minute(1)).later(MINUTE)
    assert site.state().active[0].cancelled

    noted(site).done(minute(1)).until_idle()

    assert site.skipped() == []
    assert site.fired() == [minute(1), minute(2)]
    site.assert_row_is_fold()


def test_an_update_that_keeps_the_timing_keeps_what_waits_in_the_buffer() -> None:
    site = Site().create(overlap=Overlap.BUFFER_ALL).later(MINUTE).start(minute(1)).each(MINUTE, 2)

    noted(site).done(minute(1)).until_idle()
    site.succeed(minute(2)).until_idle()

    assert site.skipped() == []
    assert site.fired() == [minute(1), minute(2), minute(3)]


def test_an_update_that_keeps_the_timing_keeps_an_occurrence_whose_jitter_is_not_over() -> None:
    site = Site().create(definition(every(HOUR, jitter_ms=HOUR)))
    planned = site.state().plan
    assert planned.nominal_ms is not None
    assert planned.fire_at_ms is not None
    delay_ms = planned.fire_at_ms - planned.nominal_ms
    assert delay_ms > 1
    site.later(HOUR + delay_ms // 2)

    noted(site)

    assert site.state().plan.fire_at_ms == planned.fire_at_ms
    site.later(delay_ms)
    assert (site.fired(), site.skipped()) == ([minute(60)], [])


def test_an_update_that_keeps_the_timing_goes_on_with_a_catch_up() -> None:
    policies: dict[str, Any] = {"overlap": Overlap.ALLOW_ALL, "catch_up": CatchUp.ALL, "catch_up_window_ms": 10 * HOUR}
    site = Site().create(**policies)
    site.now = Now(NOON + 5 * HOUR, site.now.mono_ms)

    noted(site).until_idle()

    assert site.fired() == [minute(number) for number in range(1, 301)]
    assert site.skipped() == []
    site.assert_row_is_fold()


def test_whether_planning_begins_anew_is_told_by_the_update() -> None:
    site = Site().create(max_runs=1).later(MINUTE)
    assert site.state().status is ScheduleStatus.COMPLETED
    site.succeed(minute(1)).later(5 * MINUTE)

    revived = site.update(definition(max_runs=3)).event(ScheduleUpdated)
    same = site.update(definition(max_runs=4)).event(ScheduleUpdated)
    other = site.update(definition(every(2 * MINUTE))).event(ScheduleUpdated)

    assert (revived.plans_anew, same.plans_anew, other.plans_anew) == (True, False, True)
    assert site.later(2 * MINUTE).fired() == [minute(1), minute(8)]
    assert site.skipped() == []


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.BUFFER_ALL])
def test_what_overlapped_before_a_pause_was_not_skipped_for_the_pause(overlap: Overlap) -> None:
    site = Site().create(overlap=overlap).later(MINUTE).start(minute(1)).each(MINUTE, 2)

    site.pause().each(MINUTE, 3).resume()

    assert site.skipped() == [("OVERLAP", 2, 3, 2), ("PAUSED", 4, 6, 3)]
    site.assert_row_is_fold()


def test_what_overlapped_with_an_instance_that_fails_was_not_skipped_for_the_pause_that_follows() -> None:
    site = Site().create(pause_on_failure=True).later(MINUTE).each(MINUTE, 2).fail(minute(1))
    assert site.state().status is ScheduleStatus.PAUSED

    site.each(MINUTE, 2).resume()

    assert site.status(minute(1)) is JobStatus.FAILED
    assert site.skipped() == [("OVERLAP", 2, 3, 2), ("PAUSED", 4, 5, 2)]
    site.assert_row_is_fold()


@pytest.mark.parametrize(
    ("overlap", "skipped", "status"),
    [
        (Overlap.SKIP, [("OVERLAP", 1, 1, 1)], JobStatus.COMPLETED),
        (Overlap.BUFFER_ALL, [], JobStatus.COMPLETED),
        (Overlap.CANCEL_OTHER, [], JobStatus.CANCELLED),
        (Overlap.REPLACE_OTHER, [], JobStatus.CANCELLED),
    ],
)
def test_an_instance_of_a_backfill_overlaps_with_what_is_planned_as_any_other(
    overlap: Overlap, skipped: list[tuple[str, int, int, int]], status: JobStatus
) -> None:
    site = Site().create(overlap=overlap).backfill(NOON - 2 * MINUTE, NOON - MINUTE).tick()
    first = site.fired()[0]

    site.later(MINUTE)
    if not site.status(first).is_terminal:
        site.succeed(first)
    site.until_idle()

    assert site.status(first) is status
    assert site.skipped() == skipped
    assert (minute(1) in site.fired()) is not bool(skipped)
    site.assert_row_is_fold()
