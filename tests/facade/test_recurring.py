"""Jobs at a fixed interval, embedded and connected."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.client import Client, ClientConfig, DuplicateScheduleError, Every, InvalidScheduleError
from mainspring.jobs import App, AsyncJob, JobPriority
from mainspring.scheduler import JobScheduler, NotStartedError, RecurringSchedule, SchedulerStoppedError
from mainspring.schemas import Codec, JobStatus
from mainspring.settings import Settings
from mainspring.topics import Connection, Topology
from tests.facade.listening import Seen, running_scheduler

app = App("recurring-tests")
MS = timedelta(milliseconds=1)
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
INTERVAL_S = 0.1


@app.job
async def beat() -> str:
    """Quick."""
    return "beat"


gate = threading.Event()


@app.job
def linger() -> None:
    """Holds a thread until the test lets go."""
    assert gate.wait(60)


@dataclass
class Chime(AsyncJob):
    """A job class that no App knows."""

    sound: str

    async def run(self) -> str:
        return self.sound


def scheduler_on(bootstrap: str, prefix: str, **options: Any) -> AbstractAsyncContextManager[tuple[JobScheduler, Seen]]:
    return running_scheduler(app, bootstrap, prefix, gate, **options)


def client_of(kafka: str, prefix: str) -> Client:
    """Somebody else, on the topics of an embedded scheduler."""
    topology = Topology(prefix=prefix, partitions=4, work_partitions=1)
    return Client(
        config=ClientConfig(connection=Connection(kafka), topology=topology, codec=Codec.embedded(), actor="eve@host")
    )


@pytest.fixture(autouse=True)
def _closed() -> None:
    gate.clear()


@pytest.mark.broker
async def test_the_job_that_the_factory_made_once_runs_again_and_again(kafka: str, prefix: str) -> None:
    made: list[Chime] = []

    def factory() -> Chime:
        made.append(Chime("dong", priority=JobPriority.HIGH))
        return made[-1]

    async with scheduler_on(kafka, prefix) as (scheduler, heard):
        # when
        schedule_id = await scheduler.schedule_recurring(factory, INTERVAL_S)
        schedule = scheduler.recurring[schedule_id]
        first = schedule.next_run
        await heard.until(lambda: len(heard.jobs(schedule_id, JobStatus.COMPLETED)) >= 3)

        # then
        assert len(made) == 1
        job = await scheduler.get(heard.jobs(schedule_id, JobStatus.COMPLETED)[0])
        assert (job.result, job.priority, job.schedule_id) == ("dong", JobPriority.HIGH, schedule_id)
        assert (schedule.factory, schedule.interval, schedule.active) == (factory, 100 * MS, True)
        assert schedule.next_run > first
        assert not (schedule.next_run - first) % schedule.interval


@pytest.mark.broker
async def test_a_cancelled_schedule_fires_no_more(kafka: str, prefix: str) -> None:
    async with scheduler_on(kafka, prefix) as (scheduler, heard):
        # given
        schedule_id = await scheduler.schedule_recurring(beat.job, INTERVAL_S, schedule_id="pulse")
        schedule = scheduler.recurring[schedule_id]
        await heard.until(lambda: heard.jobs(schedule_id, JobStatus.COMPLETED))
        with pytest.raises(DuplicateScheduleError):
            await scheduler.schedule_recurring(beat.job, INTERVAL_S, schedule_id="pulse")

        # when
        cancelled = await scheduler.cancel_recurring(schedule_id)
        again = await scheduler.cancel_recurring(schedule_id)

        # then
        assert (schedule_id, cancelled, again) == ("pulse", True, False)
        assert not schedule.active
        assert dict(scheduler.recurring) == {}
        with client_of(kafka, prefix) as client:
            names = [type(each.event).__name__ for each in client.schedules.history(schedule_id)]
        assert "OccurrenceFired" not in names[names.index("ScheduleDeleted") :]


@pytest.mark.broker
async def test_no_run_starts_while_another_has_not_ended(kafka: str, prefix: str) -> None:
    async with scheduler_on(kafka, prefix) as (scheduler, heard):
        # given
        schedule_id = await scheduler.schedule_recurring(linger.job, INTERVAL_S)
        paced = await scheduler.schedule_recurring(beat.job, INTERVAL_S)

        # when
        await heard.until(lambda: heard.jobs(schedule_id, JobStatus.RUNNING))
        before = len(heard.jobs(paced, JobStatus.COMPLETED))
        await heard.until(lambda: len(heard.jobs(paced, JobStatus.COMPLETED)) >= before + 4)

        # then
        assert len([job for job in heard.last if job.startswith(f"{schedule_id}@")]) == 1


@pytest.mark.broker
async def test_runs_overlap_where_they_may(kafka: str, prefix: str) -> None:
    async with scheduler_on(kafka, prefix) as (scheduler, heard):
        # when
        schedule_id = await scheduler.schedule_recurring(linger.job, INTERVAL_S, allow_overlap=True)

        # then
        assert scheduler.recurring[schedule_id].allow_overlap
        await heard.until(lambda: len(heard.jobs(schedule_id, JobStatus.RUNNING)) >= 2)


@pytest.mark.broker
async def test_what_others_do_to_a_schedule_is_seen_here(kafka: str, prefix: str) -> None:
    async with scheduler_on(kafka, prefix) as (scheduler, heard):
        # given
        schedule_id = await scheduler.schedule_recurring(beat.job, 3600)
        schedule = scheduler.recurring[schedule_id]
        created = schedule.next_run - schedule.interval
        with client_of(kafka, prefix) as client:
            # when
            await asyncio.to_thread(client.schedules.update, schedule_id, when=Every("2h"), overlap="allow-all")
            await asyncio.to_thread(client.schedules.pause, schedule_id)
            handle = await asyncio.to_thread(client.schedules.trigger, schedule_id)
            await heard.until(lambda: heard.last.get(handle.job_id) is JobStatus.COMPLETED)

            # then
            assert (schedule.interval, schedule.allow_overlap, schedule.active) == (timedelta(hours=2), True, False)
            assert schedule.next_run == created + timedelta(hours=2)

            # when
            await asyncio.to_thread(client.schedules.resume, schedule_id)
            handle = await asyncio.to_thread(client.schedules.trigger, schedule_id)
            await heard.until(lambda: heard.last.get(handle.job_id) is JobStatus.COMPLETED)

            # then
            assert schedule.active


@pytest.mark.broker
async def test_a_connected_scheduler_has_the_same(kafka: str, prefix: str) -> None:
    settings = Settings.load(
        flags={
            "kafka.bootstrap": kafka,
            "topics.prefix": prefix,
            "topics.partitions": 4,
            "topics.work_partitions": 1,
        },
        environ={},
    )
    async with scheduler_on(kafka, prefix) as (_, heard), JobScheduler.connected(settings) as connected:
        # when
        schedule_id = await connected.schedule_recurring(beat.job, INTERVAL_S)
        await heard.until(lambda: len(heard.jobs(schedule_id, JobStatus.COMPLETED)) >= 2)

        # then
        assert await connected.cancel_recurring(schedule_id)


@pytest.mark.broker
async def test_what_cannot_recur_is_refused(kafka: str, prefix: str) -> None:
    scheduler = JobScheduler(app, bootstrap=kafka, prefix=prefix)
    with pytest.raises(NotStartedError):
        await scheduler.schedule_recurring(beat.job, 1)
    async with scheduler:
        with pytest.raises(InvalidScheduleError):
            await scheduler.schedule_recurring(beat.job, 0)
        assert not await scheduler.cancel_recurring("nobody")
    with pytest.raises(SchedulerStoppedError):
        await scheduler.cancel_recurring("nobody")


def planned(interval: timedelta) -> RecurringSchedule:
    return RecurringSchedule(schedule_id="s", factory=beat.job, interval=interval, next_run=NOON)


@given(interval_ms=st.integers(1, 10**9), now_ms=st.integers(-(10**9), 10**12))
def test_the_next_run_is_the_first_of_its_grid_behind_the_present(interval_ms: int, now_ms: int) -> None:
    # given
    schedule = planned(interval_ms * MS)
    now = NOON + now_ms * MS

    # when
    passed = schedule.advance(now)

    # then
    assert schedule.next_run == NOON + passed * schedule.interval
    assert schedule.next_run > now
    assert passed == 0 or schedule.next_run - schedule.interval <= now
    assert schedule.advance(now) == 0
