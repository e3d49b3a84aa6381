"""Schedules in the view: their rows, their ledgers, pages, retention; on both databases, without Kafka."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mainspring.processors.core.timing import tzdata_version
from mainspring.processors.projector import Retention
from mainspring.processors.projector.view import (
    OccurrenceFilter,
    OccurrenceRecord,
    ScheduleFilter,
    ScheduleOrder,
    ScheduleSummary,
    View,
)
from mainspring.schemas import (
    CauseSource,
    CronRule,
    DeleteSchedule,
    OccurrenceFired,
    Overlap,
    PauseSchedule,
    ScheduleCreated,
    ScheduleState,
    ScheduleStatus,
    ScheduleTiming,
)
from tests.log.schedule_log import MINUTE, ScheduleLog, definition
from tests.projector.schedule_life import a_life, many, states
from tests.support.memory_view import keep, project
from tests.support.synthetic_log import START_MS


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


def test_rules_that_this_version_cannot_compute_leave_the_next_time_open(view_url: str) -> None:
    log = ScheduleLog().create()
    timing = ScheduleTiming(rules=(CronRule(expression="0 0 * * *"),), timezone="Mars/Olympus")
    log.edit(ScheduleCreated, spec=replace(definition(), timing=timing))
    project(log.log, log.codec, view_url)

    with View(view_url) as view:
        found = view.schedule("report")
    assert found is not None
    assert (found.timing.timezone, found.next_fire_ms) == ("Mars/Olympus", None)
