"""Whatever happens in whatever order: one outcome for each planned time, one job for each fire, and a row that is the
fold of its events."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.processors.core.timing import Timing
from mainspring.schemas.codes import FireOrigin
from mainspring.schemas.common import JobStatus
from mainspring.schemas.schedule import CatchUp, Overlap, ScheduleSpec, ScheduleTiming
from mainspring.schemas.schedule_events import (
    InstancesStopped,
    OccurrenceFired,
    OccurrencesSkipped,
    ScheduleCompleted,
    ScheduleCreated,
    ScheduleResumed,
    ScheduleRewound,
    ScheduleUpdated,
)
from tests.core.schedule.site import ID, MINUTE, Site, definition, every
from tests.support.fired import Fired

STEPS = st.one_of(
    st.tuples(st.just("later"), st.sampled_from([0, 1_000, 59_000, MINUTE, 5 * MINUTE, 3_600_000])),
    st.tuples(st.just("back"), st.sampled_from([1_000, MINUTE, 600_000])),
    st.tuples(
        st.sampled_from(["finish", "fail", "pause", "resume", "trigger", "backfill", "takeover", "note"]), st.just(0)
    ),
    st.tuples(st.just("update"), st.sampled_from([MINUTE, 90_000, 7 * MINUTE])),
)


@st.composite
def definitions(draw: st.DrawFn) -> ScheduleSpec:
    return definition(
        every(draw(st.sampled_from([MINUTE, 90_000])), jitter_ms=draw(st.sampled_from([0, 20_000]))),
        overlap=draw(st.sampled_from(list(Overlap))),
        catch_up=draw(st.sampled_from(list(CatchUp))),
        catch_up_window_ms=draw(st.sampled_from([0, 5 * MINUTE, 3_600_000])),
        buffer_max=draw(st.sampled_from([1, 3])),
        max_runs=draw(st.sampled_from([None, 3])),
        pause_on_failure=draw(st.booleans()),
    )


@settings(deadline=None)  # a busy machine is no failure
@given(spec=definitions(), steps=st.lists(STEPS, max_size=14))
def test_every_planned_time_has_one_outcome_whatever_happens(spec: ScheduleSpec, steps: list[tuple[str, int]]) -> None:
    site = Site().create(spec)
    for what, ms in steps:
        _step(site, spec, what, ms)
        site.until_idle()
        site.assert_row_is_fold()
        assert site.state().revision == len([each for each in site.events if each.revision and _changes(each)])

    _assert_ledger(site)
    jobs = [each.spec.job_id for each in site.submits]
    accepted = {job_id for job_id in jobs if job_id in site.rows.states}
    assert set(jobs) == accepted
    assert max(Counter(_planned(site)).values(), default=1) == 1
    of_version = Counter((each.version, each.job_id) for each in site.events if isinstance(each, OccurrenceFired))
    assert max(of_version.values(), default=1) == 1, "no backfill fires again what was fired"


def _changes(event: object) -> bool:
    return type(event).__name__ != "ScheduleCommandRejected"


def _planned(site: Site) -> list[str]:
    return [
        each.job_id for each in site.events if isinstance(each, OccurrenceFired) and each.origin == FireOrigin.PLANNED
    ]


def _step(site: Site, spec: ScheduleSpec, what: str, ms: int) -> None:
    now_ms = site.now.wall_ms
    steps: dict[str, Callable[[], object]] = {
        "later": lambda: site.later(ms),
        "back": lambda: site.later(-ms),
        "finish": lambda: _end_one(site, site.succeed),
        "fail": lambda: _end_one(site, site.fail),
        "pause": site.pause,
        "resume": site.resume,
        "trigger": site.trigger,
        "backfill": lambda: site.backfill(now_ms - 200_000, now_ms),
        "takeover": site.taken_over,
        "note": lambda: site.update(replace(site.schedules.specs[ID], note=f"after {len(site.events)}")),
        "update": lambda: site.update(definition(every(ms), overlap=spec.overlap, catch_up=spec.catch_up)),
    }
    steps[what]()


def _end_one(site: Site, end: Callable[[str], object]) -> None:
    """Runs the oldest instance that is due to its end, where there is one."""
    for each in site.state().active:
        state = site.rows.states[each.job_id]
        if not state.status.is_terminal and state.due_at_ms <= site.now.wall_ms:
            end(each.job_id)
            return


def _open_times(fired: Fired, timing: Timing, after_ms: int, until_ms: int) -> tuple[list[int], list[int]]:
    """What is planned in (after, until] and surely open, and with it what may be."""
    planned = timing.between(after_ms, until_ms, 10_000).occurrences if after_ms < until_ms else ()
    return fired.open(each.nominal_ms for each in planned)


def _assert_ledger(site: Site) -> None:
    """By brute force: walks the plan of each version and ticks off what the ledger says."""
    timing: Timing | None = None
    spec_timing: ScheduleTiming | None = None
    cursor_ms = created_ms = 0
    is_over = False
    fired = Fired()
    for event in site.events:
        if isinstance(event, ScheduleCreated):
            created_ms = cursor_ms = event.decided_at_ms
            spec_timing = event.spec.timing
            timing = Timing(event.spec.timing, ID, created_ms)
        assert timing is not None
        if isinstance(event, OccurrenceFired):
            if event.origin == FireOrigin.PLANNED:
                surely, maybe = _open_times(fired, timing, cursor_ms, event.nominal_ms)
                assert set(surely) <= {event.nominal_ms} <= set(maybe)
                one = timing.next_after(event.nominal_ms - 1)
                assert one is not None
                assert (one.nominal_ms, one.fire_at_ms) == (event.nominal_ms, event.fire_at_ms)
                assert event.fire_at_ms <= event.decided_at_ms
                cursor_ms = event.nominal_ms
            if event.origin != FireOrigin.TRIGGER:
                fired.add(event.version, event.nominal_ms)
        elif isinstance(event, OccurrencesSkipped):
            surely, maybe = _open_times(fired, timing, cursor_ms, event.last_ms)
            assert len(surely) <= event.count <= len(maybe)
            assert {event.first_ms, event.last_ms} <= set(maybe)
            assert all(event.first_ms <= each <= event.last_ms for each in surely)
            cursor_ms = event.last_ms
        elif isinstance(event, ScheduleRewound):
            assert (event.from_ms, event.to_ms) == (cursor_ms, event.decided_at_ms)
            cursor_ms = event.to_ms
            fired.rewound(cursor_ms)
        elif isinstance(event, ScheduleResumed) or (isinstance(event, ScheduleUpdated) and event.plans_anew):
            assert is_over or not _open_times(fired, timing, cursor_ms, event.decided_at_ms)[0], "without an outcome"
            cursor_ms = max(cursor_ms, event.decided_at_ms)
        if isinstance(event, ScheduleUpdated):
            assert event.plans_anew or event.spec.timing == spec_timing
            spec_timing = event.spec.timing
            timing = Timing(event.spec.timing, ID, created_ms)
            fired.version = event.version
        is_over = isinstance(event, ScheduleCompleted) or (is_over and not isinstance(event, ScheduleUpdated))


@pytest.mark.parametrize("overlap", [each for each in Overlap if each is not Overlap.ALLOW_ALL])
@settings(deadline=None)  # a busy machine is no failure
@given(steps=st.lists(st.sampled_from(["later", "finish", "fail"]), min_size=5, max_size=25))
def test_planned_instances_never_overlap_where_they_must_not(overlap: Overlap, steps: list[str]) -> None:
    site = Site().create(definition(overlap=overlap, catch_up=CatchUp.ALL))
    for what in steps:
        _step(site, definition(overlap=overlap), what, MINUTE if what == "later" else 0)
        site.until_idle()
        unfinished = [each for each in site.rows.states.values() if not each.status.is_terminal]
        assert len(unfinished) <= 1

    stopped = {job for each in site.events if isinstance(each, InstancesStopped) for job in each.job_ids}
    for job_id in stopped & set(_planned(site)[:-1]):
        assert site.rows.states[job_id].status in (JobStatus.CANCELLED, JobStatus.COMPLETED, JobStatus.FAILED)
