"""The asyncio client is the same client, and never blocks the loop."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from mainspring.client import (
    AsyncClient,
    AsyncJobHandle,
    Client,
    ClientConfig,
    CommandRejectedError,
    JobFailedError,
    JobHandle,
    NotDeliveredError,
    Submission,
)
from mainspring.schemas import Codec, JobStatus
from mainspring.topics import Connection, Topology
from tests.client.fake_scheduler import FakeScheduler

LONG_S = 30.0


@pytest_asyncio.fixture
async def aclient(config: ClientConfig) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(config=config) as made:
        yield made


@pytest.mark.parametrize(("blocking", "awaiting"), [(Client, AsyncClient), (JobHandle, AsyncJobHandle)])
def test_both_kinds_have_the_same_methods_with_the_same_parameters(blocking: type, awaiting: type) -> None:
    def methods(kind: type) -> dict[str, list[tuple[str, object]]]:
        public = {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}
        return {
            name: [(p.name, p.default) for p in inspect.signature(method).parameters.values()]
            for name, method in public.items()
            if callable(method)
        }

    assert methods(blocking) == methods(awaiting)


@pytest.mark.broker
async def test_results_and_errors_come_as_for_the_blocking_client(
    aclient: AsyncClient, scheduler: FakeScheduler
) -> None:
    # when
    ok, fail, refuse = [await aclient.submit(name, {"n": 1}) for name in ("ok", "fail", "refuse")]

    # then
    assert await ok.result(LONG_S) == {"n": 1}
    assert await ok.status() is JobStatus.COMPLETED
    with pytest.raises(JobFailedError):
        await fail.result(LONG_S)
    with pytest.raises(CommandRejectedError):
        await refuse.accepted(LONG_S)


@pytest.mark.broker
async def test_commands_and_questions_work_as_for_the_blocking_client(
    aclient: AsyncClient, scheduler: FakeScheduler
) -> None:
    # given
    handle = await aclient.submit("wait", delay=100)

    # then
    assert await handle.reschedule(delay=50) is not None
    assert (await aclient.get(handle.job_id)).status is JobStatus.PENDING
    assert await handle.cancel("stop")
    assert [type(entry.event).__name__ for entry in await aclient.history(handle.job_id)] == [
        "JobSubmitted",
        "JobRescheduled",
        "JobCancelled",
    ]
    assert await (await handle.retry()).result(LONG_S) == {}


@pytest.mark.broker
@pytest.mark.timeout(300)
async def test_ten_thousand_waits_at_once_end_each_with_its_own_result(
    aclient: AsyncClient, scheduler: FakeScheduler
) -> None:
    # when
    handles = await aclient.submit_many(Submission("ok", {"n": n}) for n in range(10_000))
    results = await asyncio.gather(*(handle.result(LONG_S * 3) for handle in handles))

    # then
    assert results == [{"n": n} for n in range(10_000)]


async def test_the_loop_turns_while_a_submit_is_under_way() -> None:
    # given: a broker that does not exist, so that a submit takes as long as it may
    config = ClientConfig(
        connection=Connection("127.0.0.1:1"), topology=Topology(), codec=Codec.embedded(), actor="a", delivery_s=2.0
    )
    longest = 0.0

    async def watch_the_loop() -> None:
        nonlocal longest
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now

    watcher = asyncio.create_task(watch_the_loop())

    # when
    async with AsyncClient(config=config) as client:
        began = time.perf_counter()
        with pytest.raises(NotDeliveredError):
            await client.submit("ok")
        took = time.perf_counter() - began
    watcher.cancel()

    # then
    assert took > 2.0
    assert longest < 1.0


@pytest.mark.broker
async def test_a_cancelled_wait_leaves_the_job_and_the_others_alone(
    aclient: AsyncClient, scheduler: FakeScheduler
) -> None:
    # given
    handle = await aclient.submit("hang")
    await handle.accepted(LONG_S)
    abandoned, kept = (asyncio.create_task(handle.result(LONG_S)) for _ in range(2))
    await asyncio.sleep(0)

    # when
    abandoned.cancel()
    await asyncio.wait([abandoned])
    scheduler.finish(handle.job_id, 7)

    # then
    assert abandoned.cancelled()
    assert await kept == 7
