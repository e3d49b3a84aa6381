"""Schedules in the view are the fold of their events, whatever befell them and however it was read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mainspring.processors.core.timing import tzdata_version
from mainspring.processors.projector.database import open_writer, parse_url, single_writer
from mainspring.processors.projector.definition import definition_data, definition_of, timing_data, timing_of
from mainspring.processors.projector.store import ViewStore
from mainspring.processors.projector.view import View
from mainspring.schemas import (
    BackfillSchedule,
    CatchUp,
    DeleteSchedule,
    Overlap,
    PauseSchedule,
    ResumeSchedule,
    ScheduleSpec,
    ScheduleStatus,
    TriggerSchedule,
    UpdateSchedule,
)
from tests.log.schedule_log import MINUTE, ScheduleLog, definition
from tests.projector.conftest import Cluster
from tests.projector.schedule_life import a_life, many, states
from tests.support.memory_view import project, project_in_pieces
from tests.support.postgres import PostgresServer
from tests.support.strategies import records
from tests.support.synthetic_log import START_MS
from tests.support.view_rows import dump, execute


@pytest.mark.broker
def test_schedules_are_the_same_in_both_databases_however_they_were_batched_and_rebuilt(
    cluster: Cluster, tmp_path: Path, postgres: PostgresServer
) -> None:
    # given lives of schedules, one of which has a successor
    life = a_life().command(DeleteSchedule).create().later(MINUTE)
    for raw in life.log.records[life.topology.events.name, 0]:
        if raw is not None:
            cluster.sink.append(cluster.topology.events, 0, raw.key, raw.value, raw.timestamp_ms)
    sqlite, postgresql = f"sqlite:///{tmp_path / 'view.db'}", postgres.new_database()

    # when one view follows them event by event, one in a large batch, and one is rebuilt
    cluster.project(sqlite, batch=1)
    first = dump(sqlite)
    cluster.project(postgresql)
    cluster.project(sqlite, rebuild=True)

    # then they are identical, row by row
    assert (len(first["schedules"]), len(first["occurrences"]), len(first["schedule_changes"])) == (1, 6, 7)
    assert dump(sqlite) == first
    assert dump(postgresql) == first


def test_an_instance_that_ends_in_a_later_batch_ends_the_same_entry(view_url: str, tmp_path: Path) -> None:
    log = a_life()
    pieces = f"sqlite:///{tmp_path / 'pieces.db'}"

    project(log.log, log.codec, view_url)
    project_in_pieces(log.log, log.codec, pieces, 1_000)

    assert dump(pieces) == dump(view_url)


def test_next_times_of_other_time_zone_data_are_computed_anew_when_a_projector_starts(view_url: str) -> None:
    log = many()
    project(log.log, log.codec, view_url)
    before = dump(view_url)
    execute(view_url, "UPDATE schedules SET tzdata = '1999z', next_fire_ms = 5")

    writer = open_writer(parse_url(view_url))
    with single_writer(writer) as connection:
        assert ViewStore(connection).renew_plans(tzdata_version()) == 7
        assert ViewStore(connection).renew_plans(tzdata_version()) == 0
    writer.dispose()

    assert dump(view_url) == before


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
    project_in_pieces(log.log, log.codec, pieces, cut)

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
