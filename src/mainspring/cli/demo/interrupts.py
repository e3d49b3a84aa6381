"""Ctrl-C once ends the demo in order, twice at once; either way nothing is left running."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from mainspring.cli.errors import ExitCode

__all__ = ["interruptible"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible(end_all: Callable[[], None]) -> Iterator[None]:
    """The first signal raises KeyboardInterrupt in the body; a second one calls `end_all` and ends this process.

    `end_all` is called in any case when the body is left. It must bear to be called at any moment, and again.
    """
    count = 0

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count == 1:
            raise KeyboardInterrupt
        end_all()
        os._exit(ExitCode.INTERRUPTED)

    previous = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        try:
            yield
        finally:
            end_all()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
