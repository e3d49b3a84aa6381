"""Calls that can be left behind when the client library never comes back from them."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["TimedCalls"]

R = TypeVar("R")

_Call = tuple["Future[Any]", Callable[[], Any]]


class TimedCalls:
    """Makes calls in one thread of its own, one at a time."""

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        # A daemon, because a call that hangs must not keep the process from ending.
        threading.Thread(target=_serve, args=(self._calls,), name=name, daemon=True).start()

    def run(self, call: Callable[[], R], timeout_s: float) -> R:
        """What the call returns or raises; TimeoutError when it does neither in time. It may still do either later."""
        future: Future[R] = Future()
        self._calls.put((future, call))
        return future.result(timeout_s)

    def close(self) -> None:
        """Ends the thread once the call that it is in, if any, has come back."""
        self._calls.put(None)


def _serve(calls: "queue.SimpleQueue[_Call | None]") -> None:
    while (item := calls.get()) is not None:
        future, call = item
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised where the call was asked for
            future.set_exception(error)
        del item, future, call
