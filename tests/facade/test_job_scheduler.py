"""`JobScheduler` embedded in the test: the names of one scheduler, kept by the distributed one."""

from __future__ import annotations

import asyncio
import queue
import threading
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring.client import InvalidJobError, JobNotFoundError
from mainspring.jobs import App, AsyncJob, BlockingJob, JobPriority, RetryPolicy
from mainspring.processors.core.strategies import FIFOStrategy
from mainspring.scheduler import (
    JobScheduler,
    NotStartedError,
    SchedulerStoppedError,
    Transition,
)
from mainspring.schemas import JobStatus
from mainspring.settings import Settings
from tests.facade.listening import Seen, running_scheduler

pytestmark = pytest.mark.broker

app = App("facade-tests")
release = threading.Event()
begun: queue.Queue[str] = queue.Queue()
"""Handlers that have begun: a start is recorded before the worker hears of it."""
PENDING, RETRY_WAIT, RUNNING, COMPLETED, CANCELLED = (
    JobStatus.PENDING,
    JobStatus.RETRY_WAIT,
    JobStatus.RUNNING,
    JobStatus.COMPLETED,
    JobStatus.CANCELLED,
)


@app.job
async def add(a: int, b: int) -> int:
    """Quick."""
    return a + b


@app.job
async def forever() -> None:
    """Ends only when it is cancelled."""
    begun.put("forever")
    await asyncio.Event().wait()


@app.job
def held() -> str:
    """Holds a thread until the test lets go."""
    begun.put("held")
    assert release.wait(60)
    return "released"


@app.job
def fails() -> None:
    """Always."""
    raise ValueError("no good")


@dataclass
class Greet(AsyncJob):
    """A job class that no App knows."""

    who: str

    async def run(self) -> str:
        return f"hello {self.who}"


@dataclass
class Shout(BlockingJob):
    """The same, in a thread."""

    who: str

    def run_sync(self) -> str:
        return f"HELLO {self.who.upper()}"


def scheduler_on(bootstrap: str, prefix: str, **options: Any) -> AbstractAsyncContextManager[tuple[JobScheduler, Seen]]:
    return running_scheduler(app, bootstrap, prefix, release, **options)


@pytest.fixture(autouse=True)
def _hold() -> None:
    release.clear()
    while not begun.empty():
        begun.get_nowait()


async def test_jobs_of_every_kind_run_and_are_joined(kafka: str, prefix: str) -> None:
    async with scheduler_on(kafka, prefix) as (scheduler, _):
        # when
        ids = [
            await scheduler.submit(add.job(1, 2)),
            await scheduler.submit(Greet("ada")),
            await scheduler.submit(Shout("ada")),
            await scheduler.submit("add", args={"a": 3, "b": 4}),
            await scheduler.submit(fails.job()),
        ]
        await scheduler.join()

        # then
        jobs = [await scheduler.get(job_id) for job_id in ids]
        assert [job.result for job in jobs] == [3, "hello ada", "HELLO ADA", 7, None]
        assert [job.status for job in jobs] == [COMPLETED] * 4 + [JobStatus.FAILED]
        assert jobs[4].error is not None
        assert jobs[4].error.message == "no good"


async def test_a_job_has_the_fields_it_was_submitted_with(kafka: str, prefix: str) -> None:
    async with scheduler_on(kafka, prefix) as (scheduler, _):
        # given
        retry = RetryPolicy(max_retries=2, base_delay=0.5, max_delay=9, jitter=False)
        deadline = datetime(2100, 1, 1, tzinfo=UTC)

        # when
        job_id = await scheduler.submit(
            add.job(1, 2), 3600, job_id="mine", priority=JobPriority.HIGH, timeout=7.5, retry=retry, deadline=deadline
        )
        job = await scheduler.get(job_id)

        # then
        assert (job.job_id, job.name, job.priority, job.timeout) == ("mine", "add", JobPriority.HIGH, 7.5)
        assert (job.retry, job.deadline, job.status, job.attempts, job.result) == (retry, deadline, PENDING, 0, None)
        assert timedelta(minutes=59) < job.run_at - datetime.now(UTC) < timedelta(minutes=61)
        assert job.seq is not None


async def test_listeners_hear_of_every_edge_and_what_they_raise_changes_nothing(kafka: str, prefix: str) -> None:
    async with scheduler_on(kafka, prefix) as (scheduler, seen):
        # given
        heard: list[JobStatus] = []
        later: list[JobStatus] = []

        def breaks(transition: Transition) -> None:
            raise RuntimeError(transition.job_id)

        async def listens(transition: Transition) -> None:
            await asyncio.sleep(0)
            later.append(transition.status)

        scheduler.add_listener(breaks)
        scheduler.add_listener(lambda transition: heard.append(transition.status))
        scheduler.add_listener(listens)

        # when
        good = await scheduler.submit(add.job(1, 2))
        await scheduler.join()
        bad = await scheduler.submit(fails.job(), retry=RetryPolicy(max_retries=1, base_delay=0.01))
        await scheduler.join()

    # then
    assert seen.edges(good) == [(None, PENDING), (PENDING, RUNNING), (RUNNING, COMPLETED)]
    assert seen.edges(bad) == [
        (None, PENDING),
        (PENDING, RUNNING),
        (RUNNING, JobStatus.RETRY_WAIT),
        (JobStatus.RETRY_WAIT, RUNNING),
        (RUNNING, JobStatus.FAILED),
    ]
    assert heard == [status for _, status in (seen.edges(good) + seen.edges(bad))]
    assert later == heard


async def test_cancel_tells_whether_it_took_effect(kafka: str, prefix: str) -> None:
    async with scheduler_on(kafka, prefix) as (scheduler, seen):
        # given
        waiting = await scheduler.submit(add.job(1, 2), 3600)
        running = await scheduler.submit(forever.job())
        done = await scheduler.submit(add.job(1, 2))
        await seen.until_status(running, RUNNING)
        await seen.until_status(done, COMPLETED)

        # then
        assert await scheduler.cancel(waiting)
        assert await scheduler.cancel(running)
        assert not await scheduler.cancel(running), "safe to repeat"
        assert not await scheduler.cancel(done)
        assert not await scheduler.cancel("nobody")
        assert (await scheduler.get(running)).status is CANCELLED
        assert (await scheduler.get(done)).status is COMPLETED


async def test_any_thread_may_submit(kafka: str, prefix: str) -> None:
    async with scheduler_on(kafka, prefix) as (scheduler, _):
        # when
        ids = await asyncio.gather(*(asyncio.to_thread(scheduler.submit_threadsafe, add.job(n, 1)) for n in range(20)))
        await scheduler.join()

        # then
        assert [(await scheduler.get(job_id)).result for job_id in ids] == [n + 1 for n in range(20)]


async def test_no_more_than_max_concurrency_run_at_once(kafka: str, prefix: str) -> None:
    async with scheduler_on(kafka, prefix, max_concurrency=3, strategy=FIFOStrategy()) as (scheduler, seen):
        # given
        ids = [await scheduler.submit(held.job()) for _ in range(6)]

        def running() -> int:
            return sum(seen.edges(job_id)[-1:] == [(PENDING, RUNNING)] for job_id in ids)

        # when
        await seen.until(lambda: running() == 3)
        release.set()
        await scheduler.join()

        # then
        assert scheduler.peak_running == 3


async def test_what_is_refused_is_refused_by_name_and_not_joined(kafka: str, prefix: str) -> None:
    async with scheduler_on(kafka, prefix) as (scheduler, _):
        # given
        first = await scheduler.submit(add.job(1, 2), 3600, job_id="same")

        # when
        with pytest.raises(InvalidJobError) as caught:
            await scheduler.submit(add.job(1, 2), depends_on=(first,))
        await scheduler.submit(add.job(5, 5), job_id="same")
        await scheduler.cancel(first)
        await scheduler.join()

        # then
        assert caught.value.code == "NOT_SUPPORTED"
        assert (await scheduler.get("same")).status is CANCELLED
        with pytest.raises(JobNotFoundError):
            await scheduler.get("nobody")


async def test_finished_jobs_are_remembered_up_to_the_history_limit_and_read_from_the_log_beyond(
    kafka: str, prefix: str
) -> None:
    async with scheduler_on(kafka, prefix, history_limit=2) as (scheduler, _):
        # when
        ids = []
        for n in range(5):
            ids.append(await scheduler.submit(add.job(n, 0)))
            await scheduler.join()

        # then
        assert len(scheduler._memory) == 2
        assert [(await scheduler.get(job_id)).result for job_id in ids] == list(range(5))


async def test_stop_lets_running_work_finish_and_leaves_the_rest_to_the_next_instance(kafka: str, prefix: str) -> None:
    # given
    seen = Seen()
    first = JobScheduler(app, bootstrap=kafka, prefix=prefix, max_concurrency=1)
    first.add_listener(seen)
    await first.start()
    running = await first.submit(held.job(), job_id="running")
    await asyncio.to_thread(begun.get, timeout=30)
    queued = await first.submit(add.job(20, 22), job_id="queued")
    joining = asyncio.create_task(first.join())

    # when
    stopping = asyncio.create_task(first.stop())
    with pytest.raises(SchedulerStoppedError):
        await joining
    with pytest.raises(SchedulerStoppedError):
        await first.submit(add.job(1, 1))
    with pytest.raises(SchedulerStoppedError):
        first.submit_threadsafe(add.job(1, 1))
    release.set()
    await stopping

    # then
    assert seen.edges(running)[-1] == (RUNNING, COMPLETED)
    # A claim that is on its way when the drain begins is handed back: it waits again, and no handler was called.
    waits = seen.edges(queued)[-1][1]
    assert waits in (PENDING, RETRY_WAIT)
    assert (await first.get(running)).result == "released"
    async with scheduler_on(kafka, prefix) as (second, news):
        await news.until_status(queued, COMPLETED)
        assert (await second.get(queued)).result == 42
        assert news.edges(queued) == [(waits, RUNNING), (RUNNING, COMPLETED)]


async def test_stop_can_cancel_what_runs(kafka: str, prefix: str) -> None:
    # given
    seen = Seen()
    scheduler = JobScheduler(app, bootstrap=kafka, prefix=prefix)
    scheduler.add_listener(seen)
    await scheduler.start()
    ids = [await scheduler.submit(forever.job()) for _ in range(3)]
    for _ in ids:
        await asyncio.to_thread(begun.get, timeout=30)

    # when
    await asyncio.gather(scheduler.stop(cancel_running=True), scheduler.stop())

    # then
    assert [seen.edges(job_id)[-1] for job_id in ids] == [(RUNNING, CANCELLED)] * 3
    await scheduler.stop()
    with pytest.raises(SchedulerStoppedError):
        await scheduler.start()


async def test_a_connected_scheduler_uses_the_processors_of_others(kafka: str, prefix: str) -> None:
    async with scheduler_on(kafka, prefix) as (embedded, _):
        # given
        settings = Settings(
            kafka={"bootstrap": kafka}, topics={"prefix": prefix, "partitions": 4, "work_partitions": 1}
        )

        # when
        async with JobScheduler.connected(settings) as scheduler:
            job_id = await scheduler.submit("add", args={"a": 1, "b": 1})
            await scheduler.join()

            # then
            assert (await scheduler.get(job_id)).result == 2
            assert (await embedded.get(job_id)).result == 2
            assert scheduler.peak_running == 0


async def test_a_scheduler_that_was_not_started_says_so(prefix: str) -> None:
    # given
    scheduler = JobScheduler(app, bootstrap="127.0.0.1:1", prefix=prefix)

    # then
    with pytest.raises(NotStartedError):
        await scheduler.submit(add.job(1, 2))
    with pytest.raises(NotStartedError):
        await scheduler.get("a")
    await scheduler.stop()


async def test_a_kafka_of_its_own_keeps_the_log_in_a_data_dir(tmp_path: Path) -> None:
    # given
    async with JobScheduler(app, data_dir=tmp_path) as first:
        done = await first.submit(add.job(1, 2))
        await first.join()
        later = await first.submit(add.job(3, 4), 1.0)

    # when
    seen = Seen()
    second = JobScheduler(app, data_dir=tmp_path)
    second.add_listener(seen)
    async with second:
        await seen.until_status(later, COMPLETED)

        # then
        assert (await second.get(later)).result == 7
        assert (await second.get(done)).result == 3
