"""What users ask of schedules, and what is refused."""

from dataclasses import replace
from typing import Any

import pytest

from mainspring.processors.core import Now
from mainspring.schemas import bounds
from mainspring.schemas.codes import RejectCode
from mainspring.schemas.common import JobStatus
from mainspring.schemas.job import JobSpec
from mainspring.schemas.schedule import (
    CatchUp,
    CronRule,
    IntervalRule,
    Overlap,
    ScheduleSpec,
    ScheduleStatus,
    ScheduleTiming,
)
from mainspring.schemas.schedule_events import (
    BackfillAccepted,
    BackfillEnded,
    InstanceEnded,
    OccurrenceFired,
    ScheduleCommandRejected,
    ScheduleDeleted,
    SchedulePaused,
    ScheduleUpdated,
)
from tests.core.schedule.site import HOUR, ID, MINUTE, Site, definition, every, minute
from tests.core.spec import NOON

DAY = 24 * HOUR


def job(**fields: Any) -> JobSpec:
    return replace(JobSpec(job_id="", name="work"), **fields)


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        (definition(schedule_id="a@b"), RejectCode.INVALID_FIELD),
        (definition(schedule_id="x" * (bounds.SCHEDULE_ID_MAX_CHARS + 1)), RejectCode.INVALID_FIELD),
        (definition(schedule_id=""), RejectCode.INVALID_FIELD),
        (definition(job=job(job_id="own")), RejectCode.INVALID_FIELD),
        (definition(job=job(run_at_ms=NOON)), RejectCode.INVALID_FIELD),
        (definition(job=job(deadline_ms=NOON)), RejectCode.INVALID_FIELD),
        (definition(job=job(name="")), RejectCode.INVALID_FIELD),
        (definition(job=job(queue="elsewhere")), RejectCode.UNKNOWN_QUEUE),
        (definition(job=job(payload=bytes(bounds.PAYLOAD_MAX_BYTES + 1))), RejectCode.PAYLOAD_TOO_LARGE),
        (definition(max_runs=0), RejectCode.INVALID_FIELD),
        (definition(buffer_max=0), RejectCode.INVALID_FIELD),
        (definition(catch_up_window_ms=-1), RejectCode.INVALID_FIELD),
        (definition(note="x" * (bounds.SCHEDULE_NOTE_MAX_CHARS + 1)), RejectCode.INVALID_FIELD),
        (definition(ScheduleTiming(rules=())), RejectCode.INVALID_FIELD),
        (definition(ScheduleTiming(rules=(CronRule(expression="0 0 30 2 *"),))), RejectCode.INVALID_FIELD),
        (definition(ScheduleTiming(rules=(CronRule(expression="* * * *"),))), RejectCode.INVALID_FIELD),
        (definition(ScheduleTiming(rules=(IntervalRule(every_ms=0),))), RejectCode.INVALID_FIELD),
        (definition(every(timezone="Mars/Olympus")), RejectCode.INVALID_FIELD),
        (definition(every(end_ms=NOON - 1)), RejectCode.INVALID_FIELD),
    ],
)
def test_a_definition_that_cannot_be_is_refused_and_leaves_nothing(spec: ScheduleSpec, code: RejectCode) -> None:
    site = Site().create(spec)

    assert site.refusal() == code
    assert not site.schedules.states
    assert not site.schedules.specs


def test_an_id_that_is_taken_is_refused() -> None:
    assert Site().create().create().refusal() == RejectCode.DUPLICATE_SCHEDULE


def test_commands_about_a_schedule_that_is_not_there_are_refused() -> None:
    site = Site()
    for ask in (site.pause, site.resume, site.trigger, site.delete, lambda: site.update(definition())):
        assert ask().refusal() == RejectCode.UNKNOWN_SCHEDULE


def test_the_next_time_follows_from_the_new_definition_and_what_runs_keeps_the_old_one() -> None:
    site = Site().create().later(MINUTE).start(minute(1))

    site.update(definition(every(HOUR), job=job(name="other")))

    updated = site.event(ScheduleUpdated)
    assert (updated.version, site.state().version) == (2, 2)
    assert site.state().plan.fire_at_ms == NOON + HOUR
    assert [each.version for each in site.state().active] == [1]
    assert site.rows.specs[minute(1)].name == "work"
    site.done(minute(1)).later(59 * MINUTE)
    assert site.event(OccurrenceFired).version == 2
    assert site.rows.specs[minute(60)].name == "other"
    site.assert_row_is_fold()


def test_an_update_plans_nothing_in_the_past() -> None:
    site = Site().create(definition(every(24 * HOUR))).later(12 * HOUR)

    site.update(definition()).later(0)

    assert site.fired() == []
    assert site.skipped() == []


def test_what_waited_when_the_definition_changed_has_an_outcome() -> None:
    site = Site().create().later(MINUTE).start(minute(1)).each(MINUTE, 2)

    site.update(definition(every(HOUR)))

    assert site.skipped() == [("OVERLAP", 2, 3, 2)]


def test_what_an_update_leaves_of_a_catch_up_overlapped_with_nothing_where_instances_may() -> None:
    policies: dict[str, Any] = {"overlap": Overlap.ALLOW_ALL, "catch_up": CatchUp.ALL, "catch_up_window_ms": 10 * HOUR}
    site = Site().create(**policies)
    site.now = Now(NOON + 5 * HOUR, site.now.mono_ms)

    site.update(definition(every(2 * MINUTE), **policies))

    assert len(site.fired()) == 100
    assert site.skipped() == [("MISSED", 101, 300, 200)]


def test_whether_an_update_ever_fires_is_told_by_the_beat_of_the_creation() -> None:
    weekly = ScheduleTiming(rules=(IntervalRule(every_ms=7 * DAY),))
    site = Site().create(definition(weekly)).later(4 * DAY)

    nothing = definition(replace(weekly, start_ms=NOON + 8 * DAY, end_ms=NOON + 13 * DAY))
    assert site.update(nothing).refusal() == RejectCode.INVALID_FIELD
    once = site.update(definition(replace(weekly, end_ms=NOON + 9 * DAY)))

    assert once.state().plan.nominal_ms == NOON + 7 * DAY


def test_an_update_that_expects_another_version_is_refused() -> None:
    site = Site().create().update(definition(note="new"), expected_version=1)

    assert site.update(definition(), expected_version=1).refusal() == RejectCode.VERSION_CONFLICT
    assert site.schedules.specs[ID].note == "new"


def test_a_paused_schedule_fires_nothing_and_makes_up_for_nothing() -> None:
    site = Site().create().pause("tests the backup")
    paused = site.event(SchedulePaused)
    assert (paused.note, paused.actor, site.state().paused_by) == ("tests the backup", "ada", "ada")
    assert site.pause().refusal() == RejectCode.ALREADY_PAUSED

    site.each(MINUTE, 5).resume().later(30_000)

    assert site.skipped() == [("PAUSED", 1, 5, 5)]
    assert site.fired() == []
    assert site.later(30_000).fired() == [minute(6)]
    assert site.resume().refusal() == RejectCode.NOT_PAUSED
    site.assert_row_is_fold()


def test_a_pause_that_comes_with_an_occurrence_leaves_it_fired() -> None:
    site = Site().create()
    site.now = site.now._replace(wall_ms=NOON + MINUTE)

    site.pause()

    assert site.fired() == [minute(1)]


def test_a_trigger_fires_now_whatever_the_plan_says_and_once_for_each_command() -> None:
    site = Site().create(max_runs=1).later(MINUTE).later(1_500)

    site.trigger(command_id="now").trigger(command_id="now")
    site.trigger(command_id="again")

    assert site.fired() == [
        minute(1),
        f"{ID}@2026-01-01T12:01:01.500Z",
        f"{ID}@2026-01-01T12:01:01.501Z",
    ]
    assert site.state().status is ScheduleStatus.COMPLETED
    assert (site.state().runs, site.state().fired) == (1, 3)
    site.assert_row_is_fold()


def test_a_trigger_runs_at_once_also_when_the_clock_was_set_back_behind_the_one_before() -> None:
    site = Site().create(definition(every(24 * HOUR), overlap=Overlap.ALLOW_ALL)).later(HOUR).trigger()
    (first,) = site.fired()
    site.succeed(first).later(-30 * MINUTE)

    site.trigger().tick()

    second = site.fired()[-1]
    assert second != first
    assert site.rows.states[second].due_at_ms <= site.now.wall_ms
    assert site.succeed(second).status(second) is JobStatus.COMPLETED


def test_a_trigger_never_takes_the_time_of_an_occurrence() -> None:
    site = Site().create()
    site.now = site.now._replace(wall_ms=NOON + MINUTE)

    site.trigger().later(0)

    assert f"{ID}@2026-01-01T12:01:00.001Z" in site.fired()


def test_a_backfill_fires_the_occurrences_of_a_range_one_after_the_other() -> None:
    site = Site().create().backfill(NOON - 3 * MINUTE, NOON - MINUTE)
    assert site.event(BackfillAccepted).count == 3

    jobs = []
    for _ in range(3):
        site.until_idle()
        jobs.append(site.fired()[-1])
        site.succeed(jobs[-1])
    site.until_idle()

    assert jobs == [f"{ID}@2026-01-01T11:{each}:00Z" for each in (57, 58, 59)]
    assert site.state().backfills == ()
    assert any(isinstance(each, BackfillEnded) for each in site.events)
    assert site.state().runs == 0
    site.assert_row_is_fold()


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.ALLOW_ALL])
def test_a_pause_holds_a_backfill_and_a_resume_lets_it_go_on(overlap: Overlap) -> None:
    site = Site().create(overlap=overlap).backfill(NOON - 150 * MINUTE, NOON - MINUTE).tick()
    fired = site.fired()

    site.pause()
    for job_id in fired:
        site.succeed(job_id)
    site.until_idle()

    assert site.fired() == fired
    assert site.state().plan.due_at_ms is None
    site.taken_over().until_idle()
    assert site.fired() == fired
    site.resume().until_idle()
    assert len(site.fired()) > len(fired)
    site.assert_row_is_fold()


def test_an_instance_of_a_backfill_that_fails_stops_it_where_the_schedule_pauses_on_failure() -> None:
    site = Site().create(pause_on_failure=True).backfill(NOON - 3 * MINUTE, NOON - MINUTE).until_idle()

    site.fail(site.fired()[0]).until_idle()

    assert site.state().status is ScheduleStatus.PAUSED
    assert len(site.fired()) == 1
    assert len(site.state().backfills) == 1


def test_a_backfill_whose_days_are_expensive_to_count_is_refused_where_it_has_too_many_of_them() -> None:
    year_ms = 366 * DAY
    crons = tuple(CronRule(expression=f"{at} 3 * * *") for at in range(15))
    rules: tuple[CronRule | IntervalRule, ...] = (IntervalRule(every_ms=MINUTE, anchor_ms=NOON), *crons)
    timing = ScheduleTiming(rules=rules, exclude=(CronRule(expression="* * 2-31 * *"),))
    site = Site().create(definition(timing))

    assert site.backfill(NOON - 2 * year_ms, NOON - MINUTE).refusal() == RejectCode.TOO_MANY

    (refused,) = (each for each in site.last if isinstance(each, ScheduleCommandRejected))
    assert "at most 470 can be counted" in refused.message
    assert site.backfill(NOON - year_ms, NOON - MINUTE).event(BackfillAccepted).count > 0


def test_a_backfill_of_a_paused_schedule_waits_for_the_resume() -> None:
    site = Site().create().pause().backfill(NOON - MINUTE, NOON - MINUTE)
    assert site.event(BackfillAccepted).count == 1

    site.until_idle()
    assert site.fired() == []

    assert len(site.resume().until_idle().fired()) == 1


def test_a_backfill_of_what_may_overlap_is_bounded_in_each_turn() -> None:
    site = Site().create(overlap=Overlap.ALLOW_ALL).backfill(NOON - 250 * MINUTE, NOON)
    site.tick()
    assert len(site.fired()) == 100

    site.until_idle()

    assert len(set(site.fired())) == 251


def test_a_backfill_leaves_out_what_was_fired_and_what_will_be() -> None:
    site = Site().create(overlap=Overlap.ALLOW_ALL).each(MINUTE, 3).pause().each(MINUTE, 2).resume().each(MINUTE, 2)
    before = site.fired()
    # The jobs are forgotten by the history limit: the schedule itself knows what it has fired.
    site.rows.states.clear()

    site.backfill(NOON - 2 * MINUTE, site.now.wall_ms).until_idle()

    assert before == [minute(number) for number in (1, 2, 3, 6, 7)]
    assert site.fired()[5:] == [f"{ID}@2026-01-01T11:{each}:00Z" for each in (58, 59)] + [
        minute(number) for number in (0, 4, 5)
    ]
    site.backfill(NOON - 2 * MINUTE, site.now.wall_ms).until_idle()
    assert len(site.fired()) == 10
    site.assert_row_is_fold()


def test_a_backfill_over_times_that_another_version_fired_is_refused_by_their_jobs_and_frees_the_schedule() -> None:
    site = Site().create().later(MINUTE).succeed(minute(1)).update(definition(note="another"))

    site.backfill(NOON, NOON + MINUTE).until_idle()
    site.succeed(minute(0)).until_idle()

    ended = [each for each in site.events if isinstance(each, InstanceEnded) and each.job_id == minute(1)]
    assert [each.outcome for each in ended] == ["COMPLETED", "REFUSED"]
    assert ended[1].detail == "DUPLICATE_JOB"
    assert site.state().active == ()
    assert len([each for each in site.submits if each.spec.job_id == minute(1)]) == 2
    site.later(MINUTE)
    assert site.fired()[-1] == minute(2)
    site.assert_row_is_fold()


def test_a_time_that_was_fired_before_is_no_failure_and_pauses_nothing() -> None:
    site = Site().create(pause_on_failure=True).later(MINUTE).succeed(minute(1))
    site.update(definition(pause_on_failure=True, note="another"))

    site.backfill(NOON + MINUTE, NOON + MINUTE).until_idle()

    refused = [each for each in site.events if isinstance(each, InstanceEnded) and each.outcome == "REFUSED"]
    assert [each.detail for each in refused] == ["DUPLICATE_JOB"]
    assert (site.state().status, site.state().failed) == (ScheduleStatus.ACTIVE, 0)
    site.assert_row_is_fold()


@pytest.mark.parametrize(
    ("from_ms", "until_ms", "code"),
    [
        (NOON, NOON + 10 * HOUR, RejectCode.INVALID_FIELD),
        (NOON, NOON - 1, RejectCode.INVALID_FIELD),
        (NOON - 1_000, NOON - 1, RejectCode.NOTHING_PLANNED),
        (NOON - (bounds.BACKFILL_MAX + 1) * MINUTE, NOON, RejectCode.TOO_MANY),
        (NOON - bounds.BACKFILL_SPAN_MAX_MS - 1, NOON, RejectCode.INVALID_FIELD),
        (NOON - bounds.BACKFILL_SPAN_MAX_MS, NOON, RejectCode.TOO_MANY),
    ],
)
def test_a_backfill_that_makes_no_sense_is_refused(from_ms: int, until_ms: int, code: RejectCode) -> None:
    assert Site().create().backfill(from_ms, until_ms).refusal() == code


def test_a_deleted_schedule_fires_no_more_and_its_id_is_free() -> None:
    site = Site().create().later(MINUTE).delete()
    assert site.event(ScheduleDeleted).actor == "ada"
    assert not site.schedules.states
    assert not site.schedules.specs

    site.later(MINUTE).create()

    assert site.fired() == [minute(1)]
    assert site.state().revision == 1


def test_a_repeated_command_changes_nothing() -> None:
    site = Site().create().pause(command_id="pause").resume()

    assert site.pause(command_id="pause").last == []


def test_a_trigger_that_is_sent_again_after_sixty_others_fires_nothing_again() -> None:
    site = Site().create(definition(every(24 * HOUR), overlap=Overlap.ALLOW_ALL)).trigger(command_id="first")
    for number in range(60):
        site.trigger(command_id=f"other-{number}")

    assert site.trigger(command_id="first").last == []
    assert len(site.fired()) == 61
    site.assert_row_is_fold()


def test_a_schedule_that_is_made_again_within_a_millisecond_triggers_another_job_than_its_predecessor() -> None:
    site = Site().create(definition(every(24 * HOUR))).later(MINUTE).trigger().delete()

    site.create(definition(every(24 * HOUR))).trigger()

    first, second = site.fired()
    assert first != second
    assert {first, second} <= site.rows.states.keys()
