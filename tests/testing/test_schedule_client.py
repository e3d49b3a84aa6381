"""Recurring schedules under the kit, as the client makes and steers them."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring.client import (
    Cron,
    DeclareOutcome,
    DuplicateScheduleError,
    Every,
    InvalidScheduleError,
    ScheduleNotFoundError,
    ScheduleRejectedError,
    ScheduleStatus,
    VersionConflictError,
    ViewUnavailableError,
    When,
)
from mainspring.jobs import App
from mainspring.schemas.schedule_events import OccurrenceFired, OccurrencesSkipped
from mainspring.testing import Mainspring, StandstillError, simulation
from mainspring.testing.kit import START

FEW_STEPS = 300
"""So few without news are a standstill here."""

app = App("schedule-client")
ran: list[str] = []


@app.job
async def report(name: str) -> str:
    ran.append(name)
    return name


@app.job
async def hangs() -> None:
    await asyncio.Event().wait()


@pytest.fixture
def mainspring_app() -> App:
    ran.clear()
    return app


def nominal(mainspring: Mainspring, schedule_id: str) -> list[datetime]:
    """When the instances of a schedule were planned."""
    history = (entry.event for entry in mainspring.schedules.history(schedule_id))
    fired = [event for event in history if isinstance(event, OccurrenceFired)]
    return [datetime.fromtimestamp(event.nominal_ms / 1000, UTC) for event in fired]


def test_a_daily_report_runs_on_each_day_across_the_change_of_the_clock(mainspring: Mainspring) -> None:
    # given
    mainspring.schedules.create("daily", Cron("30 2 * * *", tz="Europe/Berlin"), report.job("daily"))
    mainspring.advance_to(datetime(2030, 3, 30, 12, tzinfo=UTC))
    ran.clear()

    # when
    mainspring.advance("2d")

    # then
    assert ran == ["daily", "daily"]
    assert nominal(mainspring, "daily")[-2:] == [
        datetime(2030, 3, 31, 1, tzinfo=UTC),  # 02:30 was left out: at the end of the gap
        datetime(2030, 4, 1, 0, 30, tzinfo=UTC),
    ]


def test_what_is_done_to_a_schedule_is_decided_at_once(mainspring: Mainspring) -> None:
    # given
    info = mainspring.schedules.create("hourly", Every("1h"), report.job("old"), note="a test")
    assert (info.next_run, info.created_at) == (START + timedelta(hours=1), START)

    # when
    mainspring.advance("90m")
    mainspring.schedules.pause("hourly", "for now")
    mainspring.advance("5h")
    paused = mainspring.schedules.get("hourly")
    mainspring.schedules.resume("hourly")
    mainspring.schedules.update("hourly", job=report.job("new"))
    mainspring.advance("1h")

    # then
    assert (paused.status, paused.pause_note, paused.runs) == (ScheduleStatus.PAUSED, "for now", 1)
    assert ran == ["old", "new"]
    skipped = [
        each.event for each in mainspring.schedules.history("hourly") if isinstance(each.event, OccurrencesSkipped)
    ]
    assert [(event.outcome, event.count) for event in skipped] == [("PAUSED", 5)]
    assert mainspring.schedules.get("hourly").version == 2

    # when
    handle = mainspring.schedules.trigger("hourly")

    # then
    assert handle.result() == "new"
    handle.assert_completed()


def test_a_backfill_makes_up_for_the_past_and_fires_nothing_twice(mainspring: Mainspring) -> None:
    # given
    mainspring.schedules.create("hourly", Every("1h", anchor=START), report.job("x"))
    mainspring.advance("150m")

    # when
    accepted = mainspring.schedules.backfill("hourly", START - timedelta(hours=2), START + timedelta(hours=2))
    mainspring.advance("1m")

    # then
    assert accepted.count == 5
    assert sorted(nominal(mainspring, "hourly")) == [START + timedelta(hours=hours) for hours in range(-2, 3)]
    assert len(ran) == 5


def test_a_schedule_is_declared_again_and_again_and_only_what_differs_is_written(mainspring: Mainspring) -> None:
    # given
    schedules = mainspring.schedules
    first = schedules.declare("hourly", Every("1h"), report.job("x"), overlap="allow-all", note="why")
    mainspring.advance("90m")
    schedules.pause("hourly", "for now")
    written = len(schedules.history("hourly"))

    # when
    again = schedules.declare("hourly", Every("1h"), report.job("x"), overlap="allow-all", note="why")

    # then
    assert (first.outcome, first.version, first.changes) == (DeclareOutcome.CREATED, 1, ())
    assert (again.outcome, again.version, again.changes) == (DeclareOutcome.UNCHANGED, 1, ())
    assert len(schedules.history("hourly")) == written

    # when
    would = schedules.declare("hourly", Every("2h"), report.job("x"), note="why", dry_run=True)
    assert len(schedules.history("hourly")) == written
    done = schedules.declare("hourly", Every("2h"), report.job("x"), note="why")

    # then what was left out is as for a new one, and the pause stays
    assert would == done
    assert (done.outcome, done.version) == (DeclareOutcome.UPDATED, 2)
    assert [change.field for change in done.changes] == ["timing.rules", "overlap"]
    info = schedules.get("hourly")
    assert (info.status, info.version, info.pause_note) == (ScheduleStatus.PAUSED, 2, "for now")
    assert info.definition.overlap.name == "SKIP"


@pytest.mark.parametrize("theirs", ["the same", "another"])
def test_a_declaration_that_another_one_comes_before_looks_again(
    theirs: str, mainspring: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given
    schedules = mainspring.schedules
    folded, looks = type(schedules.core).folded, []

    def overtaken(core: Any, schedule_id: str, *args: Any, **named: Any) -> Any:
        """Somebody else is quicker, between the first look and what follows from it."""
        looks.append(schedule_id)
        if len(looks) > 1:
            return (yield from folded(core, schedule_id, *args, **named))
        schedules.create(schedule_id, Every("1h"), report.job("x"), note="" if theirs == "the same" else "theirs")
        raise ScheduleNotFoundError(schedule_id, "the log")

    monkeypatch.setattr(type(schedules.core), "folded", overtaken)

    # when
    done = schedules.declare("hourly", Every("1h"), report.job("x"))

    # then
    assert len(looks) == 2
    assert done.outcome == (DeclareOutcome.UNCHANGED if theirs == "the same" else DeclareOutcome.UPDATED)


def test_a_declaration_that_cannot_be_meant_is_refused_before_anything_is_sent(mainspring: Mainspring) -> None:
    with pytest.raises(InvalidScheduleError, match="never fires"):
        mainspring.schedules.declare(
            "hourly", When(Every("1h"), end=START - timedelta(days=1)), report.job("x"), dry_run=True
        )


def test_refusals_are_the_errors_of_the_client(mainspring: Mainspring) -> None:
    schedules = mainspring.schedules
    schedules.create("one", Every("1h"), report.job("x"))

    with pytest.raises(DuplicateScheduleError):
        schedules.create("one", Every("1h"), report.job("x"))
    with pytest.raises(ScheduleRejectedError):
        schedules.resume("one")
    with pytest.raises(VersionConflictError):
        schedules.update("one", note="x", expected_version=7)
    with pytest.raises(InvalidScheduleError):
        schedules.create("two", When(Every("1h"), end=START - timedelta(days=1)), report.job("x"))
    with pytest.raises(ViewUnavailableError):
        schedules.list()
    schedules.delete("one")
    for ask in (schedules.get, schedules.delete, schedules.pause, schedules.trigger):
        with pytest.raises(ScheduleNotFoundError):
            ask("one")


def test_the_handlers_of_what_is_scheduled_are_known_without_an_app() -> None:
    ran.clear()
    with Mainspring() as mainspring:
        mainspring.schedules.create("minutely", Every("1m"), report.job("seen"))
        mainspring.advance("3m")

    assert ran == ["seen", "seen", "seen"]


async def test_code_that_awaits_has_the_same(mainspring: Mainspring) -> None:
    schedules = mainspring.async_client.schedules
    await schedules.create("hourly", Every("1h"), report.job("x"))
    handle = await schedules.trigger("hourly")
    mainspring.advance("2h")
    await schedules.pause("hourly")

    assert (await schedules.get("hourly")).status is ScheduleStatus.PAUSED
    assert await handle.result() == "x"
    assert len(ran) == 3


def test_an_update_is_held_against_the_beat_of_the_creation(mainspring: Mainspring) -> None:
    # given
    mainspring.schedules.create("weekly", Every("7d"), report.job("weekly"))
    mainspring.advance("4d")

    # when
    mainspring.schedules.update("weekly", when=When(Every("7d"), end=START + timedelta(days=9)))

    # then
    assert mainspring.schedules.get("weekly").next_run == START + timedelta(days=7)
    with pytest.raises(InvalidScheduleError, match="never fires"):
        mainspring.schedules.update(
            "weekly", when=When(Every("7d"), start=START + timedelta(days=8), end=START + timedelta(days=13))
        )


def test_a_job_that_never_ends_is_told_of_although_a_schedule_goes_on_for_ever(
    mainspring: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation, "STEPS_MAX", FEW_STEPS)
    mainspring.schedules.create("minutely", Every("1m"), report.job("x"))
    stuck = mainspring.submit(hangs.job())

    with pytest.raises(StandstillError, match=f"the end of job '{stuck.job_id}'"):
        stuck.result()

    assert len(ran) > 10


def test_a_job_is_waited_for_until_its_time_however_often_schedules_fire_before(
    mainspring: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation, "STEPS_MAX", FEW_STEPS)
    mainspring.schedules.create("minutely", Every("1m"), report.job("x"))

    assert mainspring.submit(report.job("late"), delay=86_400).result() == "late"

    assert len(ran) > 4 * FEW_STEPS
