"""Recurring schedules through the client, with the real scheduler and a real worker."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from mainspring.client import (
    AsyncClient,
    Client,
    ClientConfig,
    Cron,
    DuplicateScheduleError,
    Every,
    InvalidScheduleError,
    Overlap,
    ScheduleFilters,
    ScheduleInfo,
    ScheduleNotFoundError,
    ScheduleRejectedError,
    ScheduleStatus,
    VersionConflictError,
    ViewUnavailableError,
)
from mainspring.jobs import JobPriority
from mainspring.jobs.options import JobOptions
from mainspring.schemas import OccurrenceFired, OccurrencesSkipped, ScheduleDeleted, ScheduleUpdated
from mainspring.schemas.epoch import to_datetime
from mainspring.schemas.schedule_events import InstanceEnded, ScheduleCommandRejected
from tests.client.cluster import executed, gates, projecting, running_cluster, tick
from tests.support.waiting import eventually

pytestmark = pytest.mark.broker
LONG_S = 60.0
T = TypeVar("T")


@pytest.fixture(scope="module")
def config(kafka: str) -> Iterator[ClientConfig]:
    with running_cluster(kafka) as found:
        yield found


@pytest.fixture
def client(config: ClientConfig) -> Iterator[Client]:
    with Client(config=config) as made:
        yield made


def name() -> str:
    return f"s-{secrets.token_hex(6)}"


def until(ask: Callable[[], T | None]) -> T:
    """The answer, once there is one."""
    answers: list[T] = []

    def answered() -> bool:
        answer = ask()
        if answer:
            answers.append(answer)
        return bool(answer)

    eventually(answered)
    return answers[0]


def fired(client: Client, schedule_id: str) -> list[OccurrenceFired]:
    events = (entry.event for entry in client.schedules.history(schedule_id))
    return [event for event in events if isinstance(event, OccurrenceFired)]


def settled(client: Client, schedule_id: str, runs: int) -> ScheduleInfo:
    """The schedule once so many of its instances have been fired and none runs."""

    def seen() -> ScheduleInfo | None:
        info = client.schedules.get(schedule_id)
        return info if info.fired >= runs and not info.running and not info.backfills else None

    return until(seen)


def test_a_new_schedule_fires_by_its_plan(client: Client) -> None:
    # given
    schedule_id = name()

    # when
    info = client.schedules.create(
        schedule_id, Every("200ms"), tick.job(schedule_id), options=JobOptions(priority=JobPriority.HIGH), note="a test"
    )
    after = settled(client, schedule_id, 3)

    # then
    assert (info.version, info.status, info.definition.note) == (1, ScheduleStatus.ACTIVE, "a test")
    assert info.next_run == info.created_at + timedelta(milliseconds=200)
    assert after.last_outcome == "COMPLETED"
    events = fired(client, schedule_id)
    first_ms = round(info.created_at.timestamp() * 1000) + 200
    assert all((event.nominal_ms - first_ms) % 200 == 0 for event in events)
    job = client.get(events[0].job_id)
    assert (job.schedule_id, job.priority, job.result) == (schedule_id, JobPriority.HIGH, schedule_id)
    client.schedules.delete(schedule_id)


def test_a_paused_schedule_fires_nothing_until_it_is_resumed(client: Client) -> None:
    # given
    schedule_id = name()
    client.schedules.create(schedule_id, Every("100ms"), tick.job(schedule_id), overlap="allow-all")
    settled(client, schedule_id, 1)

    # when
    paused = client.schedules.pause(schedule_id, "the disk is full", reason="incident")
    info = settled(client, schedule_id, 1)

    # then
    assert (info.status, info.pause_note, info.paused_by) == (ScheduleStatus.PAUSED, "the disk is full", "ada@host")
    assert info.next_run is None
    with pytest.raises(ScheduleRejectedError) as refused:
        client.schedules.pause(schedule_id)
    assert (refused.value.code, refused.value.status) == ("ALREADY_PAUSED", ScheduleStatus.PAUSED)

    # when
    resumed = client.schedules.resume(schedule_id)
    settled(client, schedule_id, info.fired + 1)

    # then
    at_pause, at_resume = (round(each.decided_at.timestamp() * 1000) for each in (paused, resumed))
    assert [each.job_id for each in fired(client, schedule_id) if at_pause < each.nominal_ms <= at_resume] == []
    client.schedules.delete(schedule_id)


def test_an_instance_that_runs_while_its_schedule_changes_keeps_its_version(client: Client) -> None:
    # given
    schedule_id, old, new = name(), name(), name()
    gates[old] = threading.Event()
    client.schedules.create(schedule_id, Every("100ms"), tick.job(old))
    running = until(lambda: client.schedules.get(schedule_id).running)

    # when
    client.schedules.update(schedule_id, job=tick.job(new), when=Every("200ms"), reason="a new label")
    gates[old].set()
    result = client.handle(running[0]).result(LONG_S)
    until(lambda: any(each.version == 2 for each in fired(client, schedule_id)))

    # then
    assert result == old
    of_new = next(each for each in fired(client, schedule_id) if each.version == 2)
    assert client.handle(of_new.job_id).result(LONG_S) == new
    history = [entry.event for entry in client.schedules.history(schedule_id)]
    assert [event.version for event in history if isinstance(event, ScheduleUpdated)] == [2]
    assert any(isinstance(event, OccurrencesSkipped) and event.outcome == "OVERLAP" for event in history)
    client.schedules.delete(schedule_id)


def test_what_an_update_does_not_name_stays_as_it_was(client: Client) -> None:
    # given
    schedule_id = name()
    client.schedules.create(
        schedule_id, Cron("30 2 * * MON-FRI", tz="Europe/Berlin"), tick.job("x"), catch_up="none", note="nightly"
    )

    # when
    plan = client.schedules.plan_update(schedule_id, options=JobOptions(tenant="acme"), overlap=Overlap.BUFFER_ONE)
    untouched = client.schedules.get(schedule_id)
    client.schedules.update(schedule_id, options=JobOptions(tenant="acme"), overlap=Overlap.BUFFER_ONE)
    info = client.schedules.get(schedule_id)

    # then
    assert [(change.field, change.after) for change in plan.changes] == [
        ("job.tenant", "acme"),
        ("overlap", Overlap.BUFFER_ONE),
    ]
    assert untouched.version == 1
    assert (info.version, info.definition) == (2, plan.after)
    assert (info.definition.note, info.definition.catch_up.name) == ("nightly", "NONE")
    assert info.in_words() == "At 02:30, Monday to Friday, Europe/Berlin"
    client.schedules.delete(schedule_id)


def test_a_change_by_somebody_else_is_not_overwritten(client: Client) -> None:
    # given
    schedule_id = name()
    client.schedules.create(schedule_id, Every("1h"), tick.job("x"))
    client.schedules.update(schedule_id, note="theirs")

    # when
    with pytest.raises(VersionConflictError) as refused:
        client.schedules.update(schedule_id, note="mine", expected_version=1)

    # then
    assert refused.value.code == "VERSION_CONFLICT"
    assert client.schedules.get(schedule_id).definition.note == "theirs"
    client.schedules.delete(schedule_id)


def test_a_triggered_instance_runs_at_once_beside_the_plan(client: Client) -> None:
    # given
    schedule_id = name()
    client.schedules.create(schedule_id, Every("1h"), tick.job(schedule_id))

    # when
    handle = client.schedules.trigger(schedule_id, reason="by hand")

    # then
    assert handle.result(LONG_S) == schedule_id
    info = settled(client, schedule_id, 1)
    assert (info.fired, info.runs) == (1, 0)
    assert [event.origin for event in fired(client, schedule_id)] == ["TRIGGER"]
    client.schedules.delete(schedule_id)


def test_a_backfill_over_times_that_were_fired_runs_nothing_twice(client: Client) -> None:
    # given
    schedule_id = name()
    info = client.schedules.create(schedule_id, Every("100ms"), tick.job(schedule_id), overlap="allow-all", max_runs=5)
    settled(client, schedule_id, 5)
    planned = [event.job_id for event in fired(client, schedule_id)]
    since, to = info.created_at - timedelta(seconds=1), info.created_at + timedelta(milliseconds=500)

    # when
    accepted = client.schedules.backfill(schedule_id, since, to)
    settled(client, schedule_id, 5)

    # then
    ids = [event.job_id for event in fired(client, schedule_id)]
    times = [to_datetime(event.nominal_ms) for event in fired(client, schedule_id)]
    assert ids[: len(planned)] == planned
    assert sum(since <= at <= to for at in times) == accepted.count == 16
    assert {job_id: executed.get(job_id) for job_id in ids} == dict.fromkeys(ids, 1)
    assert len(ids) == len(set(ids))
    client.schedules.delete(schedule_id)


def test_a_deleted_schedule_is_not_there_and_its_id_is_free_again(client: Client) -> None:
    # given
    schedule_id = name()
    client.schedules.create(schedule_id, Every("1h"), tick.job("x"))

    # when
    client.schedules.delete(schedule_id, reason="no longer needed")

    # then
    for ask in (client.schedules.get, client.schedules.pause, client.schedules.delete, client.schedules.trigger):
        with pytest.raises(ScheduleNotFoundError):
            ask(schedule_id)
    events = [entry.event for entry in client.schedules.history(schedule_id)]
    assert [event.reason for event in events if isinstance(event, ScheduleDeleted)] == ["no longer needed"]
    assert sum(isinstance(event, ScheduleCommandRejected) for event in events) == 3
    assert client.schedules.create(schedule_id, Every("1h"), tick.job("x")).version == 1
    client.schedules.delete(schedule_id)


def test_an_id_that_is_taken_is_refused(client: Client) -> None:
    # given
    schedule_id = name()
    client.schedules.create(schedule_id, Every("1h"), tick.job("x"))

    # when
    with pytest.raises(DuplicateScheduleError) as refused:
        client.schedules.create(schedule_id, Every("2h"), tick.job("x"))

    # then
    assert refused.value.schedule_id == schedule_id
    client.schedules.delete(schedule_id)


def test_a_job_and_a_schedule_may_have_the_same_id(client: Client) -> None:
    # given
    both = name()
    client.schedules.create(both, Every("100ms"), tick.job("fired"))

    # when
    handle = client.submit(tick.job("submitted"), job_id=both)

    # then
    assert handle.result(LONG_S) == "submitted"
    settled(client, both, 2)
    assert client.get(both).result == "submitted"
    assert {type(entry.event).__name__ for entry in client.history(both)} == {
        "JobSubmitted",
        "JobStarted",
        "JobCompleted",
    }
    client.schedules.delete(both)


def test_what_cannot_be_meant_is_refused_before_anything_is_sent(client: Client) -> None:
    # given
    since = datetime(2026, 1, 2, tzinfo=UTC)

    # when / then
    for wrong, field in (
        (lambda: client.schedules.create("a@b", Every("1h"), "x"), "schedule_id"),
        (lambda: client.schedules.create("a", Every("5ms"), "x"), "timing.rules[0].every_ms"),
        (lambda: client.schedules.create("a", Cron("0 0 30 2 *"), "x"), "timing.rules[0].expression"),
        (lambda: client.schedules.create("a", Every("1h"), "x", overlap="sometimes"), "overlap"),
        (lambda: client.schedules.create("a", Every("1h"), "x", overlapp="skip"), "overlapp"),  # type: ignore[call-arg]  # a misspelt policy
        (lambda: client.schedules.backfill("a", since, since - timedelta(days=1)), "until_ms"),
    ):
        with pytest.raises(InvalidScheduleError) as refused:
            wrong()
        assert refused.value.field == field
    with pytest.raises(ScheduleNotFoundError):
        client.schedules.get("a")
    assert client.schedules.history("a") == []


def test_the_view_and_the_log_tell_the_same_of_a_schedule(config: ClientConfig, tmp_path: Path) -> None:
    # given
    one, two = name(), name()
    viewed = replace(config, view_url=f"sqlite:///{tmp_path / 'view.db'}")
    with projecting(viewed), Client(config=config) as by_log, Client(config=viewed) as by_view:
        eventually((tmp_path / "view.db").exists)
        by_view.schedules.create(one, Every("1h"), tick.job("x"), options=JobOptions(tenant=one), note="first")
        by_view.schedules.create(two, Cron("30 2 * * *", tz="Europe/Berlin"), tick.job("x"))
        by_view.schedules.trigger(one).result(LONG_S)
        settled(by_log, one, 1)

        # when
        by_view.schedules.pause(one, "for now")

        # then
        assert by_view.schedules.get(one) == by_log.schedules.get(one)
        assert by_view.schedules.get(two) == by_log.schedules.get(two)
        of_tenant = by_view.schedules.list(ScheduleFilters(tenant=one, status=[ScheduleStatus.PAUSED]))
        assert [each.schedule_id for each in of_tenant.schedules] == [one]
        first = by_view.schedules.list(limit=1, order="newest")
        second = by_view.schedules.list(limit=1, order="newest", cursor=first.next_cursor)
        assert [page.schedules[0].schedule_id for page in (first, second)] == [two, one]
        with pytest.raises(ViewUnavailableError):
            by_log.schedules.list()
        by_view.schedules.delete(one)
        by_view.schedules.delete(two)
        with pytest.raises(ScheduleNotFoundError):
            by_view.schedules.get(one)


async def test_callers_that_await_have_the_same(config: ClientConfig) -> None:
    # given
    schedule_id = name()
    async with AsyncClient(config=config) as client:
        # when
        created = await client.schedules.create(schedule_id, Every("1h"), tick.job(schedule_id))
        result = await (await client.schedules.trigger(schedule_id)).result(LONG_S)
        await client.schedules.pause(schedule_id, "for now")
        paused = await client.schedules.get(schedule_id)
        await client.schedules.resume(schedule_id)
        await client.schedules.update(schedule_id, note="changed")
        changed = await client.schedules.get(schedule_id)
        accepted = await client.schedules.backfill(
            schedule_id, created.created_at - timedelta(hours=1, minutes=30), created.created_at
        )
        plan = await client.schedules.plan_update(schedule_id, note="again")
        await client.schedules.delete(schedule_id)
        history = await client.schedules.history(schedule_id)

    # then
    assert (result, paused.pause_note, changed.definition.note, accepted.count) == (
        schedule_id,
        "for now",
        "changed",
        2,
    )
    assert [change.field for change in plan.changes] == ["note"]
    assert isinstance(history[-1].event, ScheduleDeleted | InstanceEnded)
