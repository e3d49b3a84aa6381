"""One implementation for callers that block and callers that await.

An operation is a generator that yields what it waits for and is sent what came of it. `drive` runs one by blocking the
calling thread, `drive_async` by awaiting: nothing is written twice, and neither way needs a thread per call.
"""

import asyncio
from collections.abc import Generator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = ["Steps", "Wait", "drive", "drive_async", "fail", "fulfil", "wait"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wait:
    """A future that an operation waits for, at most `timeout_s` seconds (None: for ever)."""

    future: Future[Any]
    timeout_s: float | None


Steps = Generator[Wait, Any, T]


def wait(future: Future[T], timeout_s: float | None = None) -> Steps[T]:
    """The result of the future; raises `TimeoutError` when it does not come in time, after cancelling the future."""
    result: T = yield Wait(future, timeout_s)
    return result


class _Answer:
    """What came of the last wait. Emptied when given, so that an error keeps no frame (and no handle) alive."""

    __slots__ = ("error", "value")

    def __init__(self) -> None:
        self.value: object = None
        self.error: BaseException | None = None

    def give(self, steps: Steps[Any]) -> Wait:
        value, error = self.value, self.error
        self.value = self.error = None
        try:
            return steps.send(value) if error is None else steps.throw(error)
        finally:
            del value, error


def drive(steps: Steps[T]) -> T:
    """Run an operation in the calling thread."""
    answer = _Answer()
    while True:
        try:
            step = answer.give(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
        try:
            answer.value = step.future.result(step.timeout_s)
        except BaseException as raised:  # noqa: BLE001 - whatever it is, the operation decides
            step.future.cancel()
            answer.error = raised


async def drive_async(steps: Steps[T]) -> T:
    """Run an operation on the running event loop, which is never blocked."""
    answer = _Answer()
    while True:
        try:
            step = answer.give(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
        try:
            # `wrap_future` cancels the future with its task, so an abandoned wait leaves nothing behind.
            async with asyncio.timeout(step.timeout_s):
                answer.value = await asyncio.wrap_future(step.future)
        except BaseException as raised:  # noqa: BLE001 - whatever it is, the operation decides
            answer.error = raised


def fulfil(future: Future[T], value: T) -> None:
    """Give the future its value, unless its owner has stopped waiting."""
    with suppress(InvalidStateError):
        future.set_result(value)


def fail(future: Future[Any], error: BaseException) -> None:
    """Give the future its error, unless its owner has stopped waiting."""
    with suppress(InvalidStateError):
        future.set_exception(error)
