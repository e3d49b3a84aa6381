"""One operation, two ways to run it."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from mainspring.client.steps import Steps, drive, drive_async, wait


def add(first: Future[int], second: Future[int], timeout_s: float | None = None) -> Steps[int]:
    try:
        return (yield from wait(first, timeout_s)) + (yield from wait(second, timeout_s))
    except TimeoutError:
        return -1


def done(value: int) -> Future[int]:
    future: Future[int] = Future()
    future.set_result(value)
    return future


async def test_blocking_and_awaiting_come_to_the_same() -> None:
    with ThreadPoolExecutor() as pool:
        blocked = drive(add(pool.submit(lambda: 1), done(2)))
        awaited = await drive_async(add(pool.submit(lambda: 1), done(2)))
    assert blocked == awaited == 3


async def test_an_operation_may_handle_a_time_out_and_the_future_is_given_up() -> None:
    # given
    never: list[Future[int]] = [Future(), Future()]

    # when
    results = drive(add(done(1), never[0], 0.01)), await drive_async(add(done(1), never[1], 0.01))

    # then
    assert results == (-1, -1)
    assert all(future.cancelled() for future in never)


async def test_errors_arrive_where_the_operation_waits() -> None:
    # given
    broken: Future[int] = Future()
    broken.set_exception(KeyError("why"))

    # then
    with pytest.raises(KeyError, match="why"):
        drive(add(done(1), broken))
    with pytest.raises(KeyError, match="why"):
        await drive_async(add(done(1), broken))


async def test_a_cancelled_task_gives_up_its_future() -> None:
    # given
    never: Future[int] = Future()
    task = asyncio.create_task(drive_async(wait(never)))
    await asyncio.sleep(0)
    assert not task.done()

    # when
    task.cancel()

    # then
    with pytest.raises(asyncio.CancelledError):
        await task
    assert never.cancelled()
