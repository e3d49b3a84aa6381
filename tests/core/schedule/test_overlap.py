"""What becomes of an occurrence that is due while an instance of its schedule has not ended."""

from typing import Any

import pytest

from mainspring.schemas.common import CauseSource, JobStatus
from mainspring.schemas.events import JobCancelled, ReportRefused
from mainspring.schemas.schedule import CatchUp, Overlap
from mainspring.schemas.schedule_events import InstanceEnded, InstancesStopped
from tests.core.schedule.site import HOUR, MINUTE, Site, definition, every, minute
from tests.core.spec import NOON

WAITING = [Overlap.SKIP, Overlap.BUFFER_ONE, Overlap.BUFFER_ALL]


def running(overlap: Overlap, **policies: Any) -> Site:
    """The first instance runs since 12:01."""
    return Site().create(definition(overlap=overlap, **policies)).later(MINUTE).start(minute(1))


@pytest.mark.parametrize("overlap", WAITING)
def test_while_an_instance_runs_nothing_is_decided_and_no_timer_waits(overlap: Overlap) -> None:
    site = running(overlap)
    events = len(site.events)

    site.each(MINUTE, 30)

    assert len(site.events) == events
    assert site.state().plan.due_at_ms is None


def test_skip_leaves_out_what_fell_due_meanwhile_in_one_event_and_goes_on() -> None:
    site = running(Overlap.SKIP).each(MINUTE, 3)
    site.later(1_000).done(minute(1)).until_idle()
    assert site.skipped() == [("OVERLAP", 2, 4, 3)]

    site.later(59_000)

    assert site.fired() == [minute(1), minute(5)]
    site.assert_row_is_fold()


def test_skip_counts_what_fell_due_after_the_end_as_missed_and_not_as_overlap() -> None:
    """The scheduler was away while the instance ended: what came after that was in nobody's way."""
    site = running(Overlap.SKIP, catch_up=CatchUp.ALL).later(1_000)
    site.held = []
    site.done(minute(1))
    held, site.held = site.held, None
    site.now = site.now._replace(wall_ms=NOON + 4 * MINUTE)
    for _, record in held:
        site.apply(record, CauseSource.FOLLOWUPS)
    site.until_idle()

    assert site.skipped() == []
    assert site.fired() == [minute(1), minute(2)]


def test_buffer_one_starts_the_first_that_waited_and_skips_the_others() -> None:
    site = running(Overlap.BUFFER_ONE).each(MINUTE, 3).later(1_000).done(minute(1)).until_idle()

    assert site.fired() == [minute(1), minute(2)]
    assert site.skipped() == [("OVERLAP", 3, 4, 2)]
    site.later(59_000).succeed(minute(2)).until_idle()
    assert site.fired() == [minute(1), minute(2), minute(5)]
    site.assert_row_is_fold()


def test_buffer_all_starts_all_that_waited_in_order_one_after_the_other() -> None:
    site = running(Overlap.BUFFER_ALL).each(MINUTE, 3).done(minute(1)).until_idle()
    for number in (2, 3, 4):
        assert site.fired()[-1] == minute(number)
        site.succeed(minute(number)).until_idle()

    assert site.fired() == [minute(number) for number in range(1, 5)]
    assert site.skipped() == []


def test_buffer_all_keeps_what_waited_for_longer_than_the_catch_up_window() -> None:
    site = running(Overlap.BUFFER_ALL, catch_up_window_ms=0).each(HOUR, 1).done(minute(1)).until_idle()

    assert site.fired() == [minute(1), minute(2)]
    assert site.skipped() == []


def test_buffer_all_skips_the_oldest_beyond_its_bound() -> None:
    site = running(Overlap.BUFFER_ALL, buffer_max=2).each(MINUTE, 5).done(minute(1)).until_idle()

    assert site.skipped() == [("OVERLAP", 2, 4, 3)]
    assert site.fired() == [minute(1), minute(5)]


def test_buffer_all_skips_a_year_of_seconds_beyond_its_bound_in_a_few_events() -> None:
    site = Site().create(definition(every(1_000), overlap=Overlap.BUFFER_ALL)).later(1_000)
    first = site.fired()[0]
    site.start(first).later(365 * 24 * HOUR)
    events = len(site.events)

    site.done(first).until_idle()

    assert site.state().skipped == 365 * 24 * 3_600 - 1_000
    assert len(site.events) - events < 10
    assert len(site.fired()) == 2
    site.assert_row_is_fold()


def test_cancel_other_asks_the_instance_to_stop_and_starts_the_newest_once_it_has() -> None:
    site = running(Overlap.CANCEL_OTHER).later(MINUTE)
    stopped = site.event(InstancesStopped)
    assert (stopped.how, stopped.job_ids) == ("CANCELLED", (minute(1),))
    assert site.rows.states[minute(1)].cancel is not None
    site.later(MINUTE)
    assert site.last == [], "it is asked once"

    site.later(1_000).done(minute(1)).until_idle()

    assert site.fired() == [minute(1), minute(3)]
    assert site.skipped() == [("OVERLAP", 2, 2, 1)]
    site.assert_row_is_fold()


def test_cancel_other_ends_an_instance_that_has_not_started_at_once() -> None:
    site = Site().create(definition(overlap=Overlap.CANCEL_OTHER)).later(MINUTE).later(MINUTE).until_idle()

    assert site.status(minute(1)) is JobStatus.CANCELLED
    assert site.fired() == [minute(1), minute(2)]


def test_replace_other_starts_at_once_and_the_late_report_of_the_other_is_refused() -> None:
    site = running(Overlap.REPLACE_OTHER).later(MINUTE)
    stopped = site.event(InstancesStopped)
    assert (stopped.how, stopped.job_ids) == ("REPLACED", (minute(1),))
    assert site.fired() == [minute(1), minute(2)]
    cancelled = next(each for each in site.job_events if isinstance(each, JobCancelled))
    assert (cancelled.job_id, cancelled.cancel_code) == (minute(1), "REPLACED")
    assert site.event(InstanceEnded).job_id == minute(1)
    assert [each.job_id for each in site.state().active] == [minute(2)]

    site.done(minute(1))

    assert isinstance(site.job_events[-1], ReportRefused)
    site.assert_row_is_fold()


def test_allow_all_starts_whatever_runs() -> None:
    site = running(Overlap.ALLOW_ALL).each(MINUTE, 3)

    assert [each.job_id for each in site.state().active] == [minute(number) for number in range(1, 5)]


def test_a_schedule_pauses_when_an_instance_has_failed_for_good() -> None:
    site = Site().create(definition(pause_on_failure=True)).later(MINUTE).fail(minute(1))
    assert site.state().pause_code == "INSTANCE_FAILED"

    site.each(MINUTE, 3)

    assert site.fired() == [minute(1)]
    site.resume().later(MINUTE)
    assert site.skipped() == [("PAUSED", 2, 4, 3)]
    assert site.fired() == [minute(1), minute(5)]
    site.assert_row_is_fold()


def test_a_schedule_that_shall_not_pause_goes_on_after_a_failure() -> None:
    site = Site().create().later(MINUTE).fail(minute(1)).later(MINUTE)

    assert site.fired() == [minute(1), minute(2)]
    assert site.state().failed == 1
