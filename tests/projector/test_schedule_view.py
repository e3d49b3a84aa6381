"""Schedules in the view: their rows, their ledgers, pages, retention; on both databases, without Kafka."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from mainspring.processors.core.schedule.evolve import NO_PLAN
from mainspring.processors.core.timing import tzdata_version
from mainspring.processors.projector import Retention
from mainspring.processors.projector.database import open_writer, parse_url, single_writer
from mainspring.processors.projector.definition import definition_data, definition_of, timing_data, timing_of
from mainspring.processors.projector.placed import Placed
from mainspring.processors.projector.store import ViewStore
from mainspring.processors.projector.view import (
    OccurrenceFilter,
    OccurrenceRecord,
    ScheduleFilter,
    ScheduleOrder,
    ScheduleSummary,
    View,
)
from mainspring.schemas import (
    BackfillSchedule,
    CatchUp,
    CauseSource,
    CreateSchedule,
    CronRule,
    DeleteSchedule,
    JobSpec,
    OccurrenceFired,
    Overlap,
    PauseSchedule,
    ResumeSchedule,
    ScheduleCreated,
    ScheduleSpec,
    ScheduleState,
    ScheduleStatus,
    ScheduleTiming,
    TriggerSchedule,
    UpdateSchedule,
)
from tests.log.schedule_log import MINUTE, ScheduleLog, definition
from tests.projector.conftest import dump
from tests.support.memory_view import keep, placed_events, project, write
from tests.support.strategies import records
from tests.support.synthetic_log import START_MS


def a_life() -> ScheduleLog:
    """Fired, overlapped, triggered, changed, paused and resumed; the last instance runs."""
    log = ScheduleLog()
    log.create(overlap=Overlap.SKIP, note="once a minute").later(MINUTE)
    first = log.events(OccurrenceFired)[-1].job_id
    log.later(3 * MINUTE).run(first)
    log.command(TriggerSchedule, reason="by hand").later(1).run(log.events(OccurrenceFired)[-1].job_id)
    log.command(UpdateSchedule, spec=definition(every_ms=2 * MINUTE, overlap=Overlap.SKIP)).later(2 * MINUTE)
    log.command(PauseSchedule, note="the database moves").later(5 * MINUTE).command(ResumeSchedule)
    log.command(ResumeSchedule)
    return log


def states(log: ScheduleLog) -> dict[str, ScheduleState]:
    return {key: replace(state, plan=NO_PLAN) for key, state in log._schedules.states.items()}


def view_states(view: View) -> dict[str, ScheduleState]:
    with view.snapshot() as snapshot:
        return {state.schedule_id: state for state, _ in snapshot.schedules(0)}


def ledger(view: View, schedule_id: str = "report", **wanted: Any) -> list[OccurrenceRecord]:
    """The ledger, the oldest decision first."""
    return [*reversed(view.occurrences(schedule_id, OccurrenceFilter(**wanted), limit=500).occurrences)]


def test_a_schedule_has_its_definition_its_state_its_counts_and_its_next_time(view_url: str) -> None:
    log = a_life()
    project(log.log, log.codec, view_url)

    with View(view_url) as view:
        found = view.schedule("report")
        assert view_states(view) == states(log)
    assert found is not None
    state, plan = log._schedules.states["report"], log._schedules.states["report"].plan
    assert found.definition == definition(every_ms=2 * MINUTE, overlap=Overlap.SKIP)
    assert found.timing == found.definition.timing
    assert (found.version, found.status, found.job_name) == (2, ScheduleStatus.ACTIVE, "work")
    assert (found.next_nominal_ms, found.next_fire_ms) == (plan.nominal_ms, plan.fire_at_ms)
    assert (found.runs, found.fired, found.skipped, found.failed) == (2, 3, state.skipped, 0)
    assert (found.running, found.active) == (1, state.active)
    assert found.last_outcome == "COMPLETED"
    assert found.last_event_type == "ScheduleResumed"


def test_a_paused_schedule_tells_who_paused_it_and_plans_nothing(view_url: str) -> None:
    log = ScheduleLog().create().command(PauseSchedule, note="the database moves")
    project(log.log, log.codec, view_url)

    with View(view_url) as view:
        found = view.schedule("report")
        assert view.schedules(order=ScheduleOrder.NEXT).schedules == ()
    assert found is not None
    assert (found.status, found.pause_code, found.paused_by) == (ScheduleStatus.PAUSED, "REQUESTED", "ada")
    assert (found.pause_note, found.next_fire_ms) == ("the database moves", None)


def test_the_ledger_tells_what_was_fired_how_it_ended_and_what_was_skipped_and_why(view_url: str) -> None:
    log = a_life()
    project(log.log, log.codec, view_url)

    with View(view_url) as view:
        entries = ledger(view)
    told = [
        (each.outcome, (each.first_ms - START_MS) / MINUTE, each.count, each.origin, each.ended) for each in entries
    ]
    trigger = entries[2]
    assert told == [
        ("FIRED", 1, 1, "PLANNED", "COMPLETED"),
        ("OVERLAP", 2, 3, None, None),
        ("FIRED", (trigger.first_ms - START_MS) / MINUTE, 1, "TRIGGER", "COMPLETED"),
        ("FIRED", 6, 1, "PLANNED", None),
        ("PAUSED", 8, 2, None, None),
    ]
    assert [(each.last_ms - each.first_ms) / MINUTE for each in entries] == [0, 2, 0, 0, 2]
    assert (trigger.actor, trigger.reason, trigger.version) == ("ada", "by hand", 1)
    assert entries[3].version == 2
    assert entries[0].ended_at_ms == START_MS + 4 * MINUTE
    assert {each.tzdata for each in entries} == {tzdata_version()}
    assert [each.job_id for each in entries if each.job_id] == [each.job_id for each in log.events(OccurrenceFired)]


def test_an_instance_that_ends_in_a_later_batch_ends_the_same_entry(view_url: str, tmp_path: Path) -> None:
    log = a_life()
    pieces = f"sqlite:///{tmp_path / 'pieces.db'}"

    project(log.log, log.codec, view_url)
    project_in_pieces(log, pieces, 1_000)

    assert dump(pieces) == dump(view_url)


def test_the_ledger_is_found_by_outcome_by_end_and_by_time(view_url: str) -> None:
    log = a_life()
    project(log.log, log.codec, view_url)

    with View(view_url) as view:
        assert len(ledger(view, outcomes=("FIRED",))) == 3
        assert [each.outcome for each in ledger(view, outcomes=("OVERLAP", "PAUSED"))] == ["OVERLAP", "PAUSED"]
        assert len(ledger(view, ended=("COMPLETED",))) == 2
        assert ledger(view, ended=("FAILED",)) == []
        # A run of neighbours is found by any of them.
        middle = START_MS + 3 * MINUTE
        assert [each.outcome for each in ledger(view, since_ms=middle, until_ms=middle + 1)] == ["OVERLAP"]
        assert ledger(view, until_ms=START_MS) == []
        assert ledger(view, "stranger") == []


def test_what_was_asked_of_a_schedule_is_kept_in_order_with_each_definition_and_each_refusal(view_url: str) -> None:
    log = a_life()
    project(log.log, log.codec, view_url)

    with View(view_url) as view:
        changes = view.schedule_changes("report").changes
    assert [each.type for each in changes] == [
        "ScheduleCommandRejected",
        "ScheduleResumed",
        "SchedulePaused",
        "ScheduleUpdated",
        "ScheduleCreated",
    ]
    assert changes[0].data["reject_code"] == "NOT_PAUSED"
    assert changes[2].data["note"] == "the database moves"
    assert changes[3].data["spec"]["timing"]["rules"][0]["every_ms"] == 2 * MINUTE
    assert changes[4].data["spec"]["note"] == "once a minute"
    assert {each.cause_source for each in changes} == {CauseSource.COMMANDS}


def test_a_deleted_schedule_is_gone_and_its_ledger_stays_and_goes_on_with_its_successor(view_url: str) -> None:
    log = a_life().command(DeleteSchedule).create().later(MINUTE)
    project(log.log, log.codec, view_url)

    with View(view_url) as view:
        found, entries = view.schedule("report"), ledger(view)
        assert view_states(view) == states(log)
    assert found is not None
    assert (found.revision, found.fired) == (2, 1)
    assert {each.incarnation for each in entries[:-1]} != {found.incarnation}
    assert (entries[-1].incarnation, entries[-1].revision) == (found.incarnation, 2)

    log.command(DeleteSchedule)
    project(log.log, log.codec, view_url)
    with View(view_url) as view:
        assert view.schedule("report") is None
        assert view.schedules().schedules == ()
        assert len(ledger(view)) == len(entries)
        assert view.schedule_changes("report").changes[0].type == "ScheduleDeleted"


def many() -> ScheduleLog:
    """Schedules in all statuses, of several queues, tenants and jobs."""
    log = ScheduleLog()
    for number in range(7):
        job = JobSpec(job_id="", name=f"work-{number % 2}", tenant="acme" if number == 3 else "")
        spec = replace(definition(f"s{number}", every_ms=(9 - number) * MINUTE), job=job, note=f"no_{number}")
        log.now_ms += number % 3
        log.command(CreateSchedule, spec=spec)
    log.command(PauseSchedule, schedule_id="s2")
    return log


def test_each_filter_of_schedules_finds_what_it_says(view_url: str) -> None:
    log = many()
    project(log.log, log.codec, view_url)

    with View(view_url) as view:

        def ids(**wanted: Any) -> list[str]:
            return [each.schedule_id for each in view.schedules(ScheduleFilter(**wanted)).schedules]

        assert ids() == [f"s{number}" for number in range(7)]
        assert ids(status=(ScheduleStatus.PAUSED,)) == ["s2"]
        assert len(ids(status=(ScheduleStatus.PAUSED, ScheduleStatus.ACTIVE))) == 7
        assert ids(job_name="work-1") == ["s1", "s3", "s5"]
        assert ids(tenant="acme") == ["s3"]
        assert ids(queue="default", tenant="acme") == ["s3"]
        assert ids(queue="other") == []
        assert ids(text="O_4") == ["s4"]
        assert ids(text="\x00") == []


@pytest.mark.parametrize("order", ScheduleOrder)
@pytest.mark.parametrize("limit", [1, 3, 500])
def test_pages_of_schedules_are_the_list_in_order_without_a_gap_or_a_repeat(
    view_url: str, order: ScheduleOrder, limit: int
) -> None:
    log = many()
    project(log.log, log.codec, view_url)

    found: list[ScheduleSummary] = []
    with View(view_url) as view:
        cursor = None
        while True:
            page = view.schedules(order=order, limit=limit, cursor=cursor)
            found.extend(page.schedules)
            cursor = page.next_cursor
            if cursor is None:
                break
            other = next(each for each in ScheduleOrder if each is not order)
            with pytest.raises(ValueError, match="is no cursor"):
                view.schedules(order=other, cursor=cursor)
    keys: dict[ScheduleOrder, Any] = {
        ScheduleOrder.ID: lambda each: each.schedule_id,
        ScheduleOrder.NEXT: lambda each: each.next_fire_ms,
        ScheduleOrder.NEWEST: lambda each: -each.created_at_ms,
    }
    assert len({each.schedule_id for each in found}) == len(found) == (6 if order is ScheduleOrder.NEXT else 7)
    assert found == sorted(found, key=keys[order])


@pytest.mark.parametrize("limit", [1, 2, 500])
def test_pages_of_a_ledger_and_of_changes_together_are_all_of_it(view_url: str, limit: int) -> None:
    log = a_life().command(DeleteSchedule).create().later(MINUTE)
    project(log.log, log.codec, view_url)

    with View(view_url) as view:
        entries: list[Any] = []
        changes: list[Any] = []
        page = view.occurrences("report", limit=limit)
        entries += page.occurrences
        while page.next_cursor is not None:
            page = view.occurrences("report", limit=limit, cursor=page.next_cursor)
            entries += page.occurrences
        other = view.schedule_changes("report", limit=limit)
        changes += other.changes
        while other.next_cursor is not None:
            other = view.schedule_changes("report", limit=limit, cursor=other.next_cursor)
            changes += other.changes
        assert entries == [*view.occurrences("report", limit=500).occurrences]
        assert changes == [*view.schedule_changes("report", limit=500).changes]
        with pytest.raises(ValueError, match="is no cursor"):
            view.occurrences("report", cursor="nonsense")
        with pytest.raises(ValueError, match="1 to 500"):
            view.schedule_changes("report", limit=0)
    assert (len(entries), len(changes)) == (6, 7)


def test_settled_entries_that_are_too_many_leave_the_ledger_the_oldest_first(view_url: str) -> None:
    log = a_life()
    project(log.log, log.codec, view_url)
    with View(view_url) as view:
        before = ledger(view)

    keep(view_url, Retention(max_count=2), log.now_ms)

    with View(view_url) as view:
        # The running instance is not settled; of the four others the last two stay.
        assert ledger(view) == before[2:]
        assert view.schedule("report") is not None


def test_settled_entries_and_changes_that_are_too_old_leave_but_for_the_definitions_of_what_exists(
    view_url: str,
) -> None:
    log = a_life()
    project(log.log, log.codec, view_url)

    keep(view_url, Retention(max_age_ms=MINUTE), log.now_ms + 1)
    with View(view_url) as view:
        assert [each.outcome for each in ledger(view)] == ["FIRED", "PAUSED"]
        assert [each.type for each in view.schedule_changes("report").changes] == [
            *("ScheduleCommandRejected", "ScheduleResumed", "ScheduleUpdated", "ScheduleCreated")
        ]

    log.command(DeleteSchedule)
    project(log.log, log.codec, view_url)
    keep(view_url, Retention(max_age_ms=0), log.now_ms + 1)
    with View(view_url) as view:
        # Nobody will tell how the last instance ended, so it is not waited for.
        assert ledger(view) == []
        assert view.schedule_changes("report").changes == ()


def test_an_event_that_does_not_follow_is_told_and_the_rest_goes_on(view_url: str) -> None:
    log = ScheduleLog().create(overlap=Overlap.ALLOW_ALL).later(MINUTE).later(MINUTE)
    log.drop(OccurrenceFired, 0)
    project(log.log, log.codec, view_url)

    with View(view_url) as view:
        (told,) = view.unreadable()
        assert (told.reason, told.key) == ("INAPPLICABLE", b"report")
        assert "revision 3 where 2 is next" in told.detail
        found = view.schedule("report")
        assert found is not None
        assert (found.revision, ledger(view)) == (1, [])
        # The jobs of that partition are there.
        assert view.counts().total == 2


def test_next_times_of_other_time_zone_data_are_computed_anew_when_a_projector_starts(view_url: str) -> None:
    log = many()
    project(log.log, log.codec, view_url)
    before = dump(view_url)
    engine = create_engine(parse_url(view_url))
    with engine.begin() as connection:
        connection.execute(text("UPDATE schedules SET tzdata = '1999z', next_fire_ms = 5"))
    engine.dispose()

    writer = open_writer(parse_url(view_url))
    with single_writer(writer) as connection:
        assert ViewStore(connection).renew_plans(tzdata_version()) == 7
        assert ViewStore(connection).renew_plans(tzdata_version()) == 0
    writer.dispose()

    assert dump(view_url) == before


def test_rules_that_this_version_cannot_compute_leave_the_next_time_open(view_url: str) -> None:
    log = ScheduleLog().create()
    timing = ScheduleTiming(rules=(CronRule(expression="0 0 * * *"),), timezone="Mars/Olympus")
    log.edit(ScheduleCreated, spec=replace(definition(), timing=timing))
    project(log.log, log.codec, view_url)

    with View(view_url) as view:
        found = view.schedule("report")
    assert found is not None
    assert (found.timing.timezone, found.next_fire_ms) == ("Mars/Olympus", None)


@settings(max_examples=60, deadline=None)
@given(spec=records(ScheduleSpec))
def test_any_definition_comes_back_from_the_database_as_it_was(spec: ScheduleSpec) -> None:
    assert timing_of(timing_data(spec)) == spec.timing
    assert definition_of(timing_data(spec), definition_data(spec)) == spec
    assert "\x00" not in definition_data(spec) + timing_data(spec)


POLICIES = st.fixed_dictionaries(
    {
        "overlap": st.sampled_from(Overlap),
        "catch_up": st.sampled_from(CatchUp),
        "catch_up_window_ms": st.sampled_from([0, 2 * MINUTE, 3_600_000]),
        "max_runs": st.none() | st.integers(1, 4),
    }
)
STEPS = st.lists(
    st.sampled_from(["create", "later", "long", "run", "trigger", "update", "pause", "resume", "backfill", "delete"]),
    max_size=25,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, policies=POLICIES, cut=st.integers(0, 60))
def test_whatever_befell_schedules_the_view_is_the_fold_however_it_was_cut_into_batches(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], policies: dict[str, Any], cut: int
) -> None:
    # given any life of a schedule
    log = ScheduleLog().create(**policies)
    for step in steps:
        live(log, step, policies)
    folder = tmp_path_factory.mktemp("views")
    whole, pieces = f"sqlite:///{folder / 'whole.db'}", f"sqlite:///{folder / 'pieces.db'}"

    # when it is folded at once, and event by event up to a cut and then the rest
    project(log.log, log.codec, whole)
    project_in_pieces(log, pieces, cut)

    # then both views are the same, the rows are the fold, and the ledger has what they count
    assert dump(whole) == dump(pieces)
    with View(whole) as view, view.snapshot() as snapshot:
        assert {state.schedule_id: state for state, _ in snapshot.schedules(0)} == states(log)
        assert {state.schedule_id: spec for state, spec in snapshot.schedules(0)} == log._schedules.specs
        counts = {(each.schedule_id, each.incarnation): (each.fired, each.skipped) for each in snapshot.ledgers(0)}
        for state in log._schedules.states.values():
            found = counts.get((state.schedule_id, state.incarnation), (0, 0))
            assert found == (state.fired, state.skipped)
        for state in log._schedules.states.values():
            shown = view.schedule(state.schedule_id)
            assert shown is not None
            if state.status is ScheduleStatus.ACTIVE:
                assert (shown.next_nominal_ms, shown.next_fire_ms) == (state.plan.nominal_ms, state.plan.fire_at_ms)


def live(log: ScheduleLog, step: str, policies: dict[str, Any]) -> None:
    """One step; what the schedule cannot do at that moment is refused, and the refusal is an event, too."""
    past = {"from_ms": START_MS - 3 * MINUTE, "until_ms": START_MS}
    steps: dict[str, Callable[[], object]] = {
        "create": lambda: log.create(**policies),
        "later": lambda: log.later(MINUTE),
        "long": lambda: log.later(7 * MINUTE),
        "run": lambda: run_one(log),
        "trigger": lambda: log.command(TriggerSchedule),
        "update": lambda: log.command(UpdateSchedule, spec=definition(every_ms=2 * MINUTE, **policies)),
        "pause": lambda: log.command(PauseSchedule, note="for a while"),
        "resume": lambda: log.command(ResumeSchedule),
        "backfill": lambda: log.command(BackfillSchedule, **past),
        "delete": lambda: log.command(DeleteSchedule),
    }
    steps[step]()


def run_one(log: ScheduleLog) -> None:
    state = log._schedules.states.get("report")
    for instance in () if state is None else state.active[:1]:
        if not log._jobs[instance.job_id].status.is_terminal:
            log.run(instance.job_id)


def project_in_pieces(log: ScheduleLog, url: str, cut: int) -> None:
    engine = open_writer(parse_url(url))
    with single_writer(engine) as connection:
        store = ViewStore(connection)
        store.prepare(rebuild=False)
        events: list[Placed] = placed_events(log.log, log.codec, 0)
        for event in events[:cut]:
            write(store, log.log, 0, [event])
        if len(events) > cut:
            write(store, log.log, 0, events[cut:])
    engine.dispose()
