"""A schedule fires what is planned, once."""

from itertools import pairwise

from mainspring.processors.core import Now, Rules
from mainspring.schemas import bounds
from mainspring.schemas.codes import CompletionCode
from mainspring.schemas.common import JobStatus
from mainspring.schemas.events import JobSubmitted
from mainspring.schemas.job import JobSpec
from mainspring.schemas.schedule import CronRule, Overlap, ScheduleStatus, ScheduleTiming
from mainspring.schemas.schedule_events import (
    InstanceEnded,
    OccurrenceFired,
    ScheduleCompleted,
    ScheduleCreated,
)
from tests.core.schedule.site import HOUR, ID, MINUTE, Site, definition, every, minute
from tests.core.spec import NOON


def test_a_schedule_is_created_once_and_waits_for_its_first_occurrence() -> None:
    site = Site().create(command_id="create")

    created = site.event(ScheduleCreated)
    assert (created.revision, created.command_id, created.actor) == (1, "create", "ada")
    assert site.state().plan.fire_at_ms == NOON + MINUTE
    assert site.core.wake_at() is not None
    assert site.create(command_id="create").last == []
    site.assert_row_is_fold()


def test_an_occurrence_becomes_a_job_of_its_own_id_that_is_due_at_once() -> None:
    site = Site().create().later(MINUTE)

    fired = site.event(OccurrenceFired)
    assert (fired.job_id, fired.nominal_ms, fired.origin, fired.version) == (minute(1), NOON + MINUTE, "PLANNED", 1)
    assert fired.tzdata
    (submitted,) = site.job_events
    assert isinstance(submitted, JobSubmitted)
    assert (submitted.job_id, submitted.spec.schedule_id, submitted.spec.run_at_ms) == (minute(1), ID, NOON + MINUTE)
    assert submitted.due_at_ms == NOON + MINUTE
    assert [each.job_id for each in site.state().active] == [minute(1)]
    site.assert_row_is_fold()


def test_nothing_is_fired_before_its_time() -> None:
    assert Site().create().later(MINUTE - 1).fired() == []


def test_the_end_of_an_instance_comes_back_to_its_schedule() -> None:
    site = Site().create().later(MINUTE)

    site.succeed(minute(1))

    assert site.event(InstanceEnded).outcome == "COMPLETED"
    assert site.state().active == ()
    site.assert_row_is_fold()


def test_a_takeover_and_a_clock_that_is_set_back_fire_nothing_twice() -> None:
    site = Site().create(overlap=Overlap.ALLOW_ALL).each(MINUTE, 3)
    site.now = Now(NOON - MINUTE, site.now.mono_ms)

    site.taken_over().each(MINUTE, 4)

    assert site.fired() == [minute(1), minute(2), minute(3)]
    assert site.later(MINUTE).fired()[-1] == minute(4)
    site.assert_row_is_fold()


def test_occurrences_are_computed_from_the_anchor_and_never_accumulated() -> None:
    site = Site().create(overlap=Overlap.ALLOW_ALL)
    for _ in range(5):
        site.later(MINUTE + 700)

    assert site.fired() == [minute(number) for number in range(1, 6)]


def test_a_schedule_ends_after_its_last_run() -> None:
    site = Site().create(max_runs=2, overlap=Overlap.ALLOW_ALL).each(MINUTE, 5)

    assert site.fired() == [minute(1), minute(2)]
    (completed,) = (each for each in site.events if isinstance(each, ScheduleCompleted))
    assert completed.completion_code == CompletionCode.MAX_RUNS
    assert site.state().status is ScheduleStatus.COMPLETED
    site.assert_row_is_fold()


def test_a_schedule_ends_with_its_last_occurrence_before_its_end() -> None:
    site = Site().create(definition(every(end_ms=NOON + 2 * MINUTE), overlap=Overlap.ALLOW_ALL)).each(MINUTE, 4)

    assert site.fired() == [minute(1), minute(2)]
    assert [each.completion_code for each in site.events if isinstance(each, ScheduleCompleted)] == [CompletionCode.END]


def test_an_update_revives_a_schedule_that_has_ended() -> None:
    site = Site().create(definition(every(end_ms=NOON + MINUTE), overlap=Overlap.ALLOW_ALL)).each(MINUTE, 2)

    site.update(definition(overlap=Overlap.ALLOW_ALL)).each(MINUTE, 1)

    assert site.fired() == [minute(1), minute(3)]


def test_a_fire_waits_for_its_jitter_and_keeps_its_nominal_time() -> None:
    site = Site().create(definition(every(jitter_ms=50_000)))
    fire_at_ms = site.state().plan.fire_at_ms or 0
    assert NOON + MINUTE < fire_at_ms < NOON + MINUTE + 50_000

    assert site.later(fire_at_ms - NOON - 1).fired() == []
    assert site.later(1).fired() == [minute(1)]
    assert site.event(OccurrenceFired).fire_at_ms == fire_at_ms


def test_a_cron_rule_fires_in_its_zone() -> None:
    timing = ScheduleTiming(rules=(CronRule(expression="30 13 * * *"),), timezone="Europe/Berlin")
    site = Site().create(definition(timing)).later(30 * MINUTE)

    assert site.fired() == [minute(30)]


def test_what_the_submit_is_refused_for_comes_back_and_frees_the_schedule() -> None:
    site = Site().create().later(MINUTE).delete()
    site.now = Now(NOON, site.now.mono_ms)

    site.create().later(MINUTE)

    assert site.event(InstanceEnded).outcome == "REFUSED"
    assert site.event(InstanceEnded).detail == "DUPLICATE_JOB"
    assert site.state().active == ()
    assert site.state().failed == 0, "the job of that time is there, and tells how it went"


def test_an_instance_of_a_deleted_schedule_means_nothing_to_its_successor() -> None:
    site = Site().create().later(MINUTE).delete()
    site.create().later(MINUTE)
    assert site.fired() == [minute(1), minute(2)]

    site.succeed(minute(1))

    assert site.last == []
    assert [each.job_id for each in site.state().active] == [minute(2)]


def test_an_instance_whose_worker_dies_without_a_word_frees_its_schedule() -> None:
    site = Site().create(definition(job=definition().job)).later(MINUTE).start(minute(1))
    for _ in range(5):
        site.now = Now(site.now.wall_ms + 11_000, site.now.mono_ms + 11_000)
        site.last = []
        site.core.expire_leases(site.now, site.now)
        site._settle()
        if site.status(minute(1)) is JobStatus.FAILED:
            break
        site.start(minute(1))

    assert site.event(InstanceEnded).detail == "LOST"
    assert site.state().active == ()


def test_ten_thousand_schedules_of_one_instant_are_fired_in_bounded_turns() -> None:
    site = Site()
    for number in range(1_000):
        site.create(definition(schedule_id=f"s{number}"))
    site.later(MINUTE)
    first = len(site.last)

    site.until_idle()

    assert 0 < first <= 4_000 // Rules().partitions, "a share of one batch"
    assert len(set(site.fired())) == 1_000


def test_fires_with_large_payloads_are_spread_over_turns_so_that_no_transaction_grows_with_them() -> None:
    large = JobSpec(job_id="", name="work", payload=bytes(bounds.PAYLOAD_MAX_BYTES))
    site = Site()
    for number in range(100):
        site.create(definition(every(HOUR), f"s{number}", job=large, overlap=Overlap.ALLOW_ALL))
    sizes = []

    site.later(HOUR)
    while (wake := site.core.wake_at()) is not None and wake.wall_ms is not None and wake.wall_ms <= site.now.wall_ms:
        sizes.append(len(site.submits))
        site.tick()

    steps = [later - earlier for earlier, later in pairwise([0, *sizes, len(site.submits)])]
    assert max(steps) * bounds.PAYLOAD_MAX_BYTES <= 16 << 20, "about twice what one transaction reads"
    assert len(set(site.fired())) == 100


def test_a_backfill_with_large_payloads_is_spread_over_turns() -> None:
    large = JobSpec(job_id="", name="work", payload=bytes(bounds.PAYLOAD_MAX_BYTES))
    site = Site().create(job=large, overlap=Overlap.ALLOW_ALL).backfill(NOON - 50 * MINUTE, NOON - MINUTE)

    first = len(site.tick().submits)
    site.until_idle()

    assert 0 < first * bounds.PAYLOAD_MAX_BYTES <= 16 << 20
    assert len(site.fired()) == 50
