"""Blocking jobs on virtual time: each in a thread of its own, and only one piece of code runs at a time.

The thread that drives the test hands a baton to the job's thread and waits until it comes back: when the job ends, or
when it calls `time.sleep`, which here waits for virtual time. So the order in which jobs run is always the same.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, SupportsIndex

from mainspring.testing.clock import VirtualClock

__all__ = ["DEAF_MAX", "HandlerThread", "HandlerThreads", "Unwound", "virtual_sleep"]

DEAF_MAX: Final = 10
"""How often code that is taken out of its frames may go on as if nothing were."""


class Unwound(BaseException):  # no error: it takes the code of a dead worker out of its frames
    """Raised in code that was frozen, when the test is over."""


class HandlerThread:
    """One blocking call. `wake_us`: until when it sleeps, None where it has not begun or has ended."""

    def __init__(self, call: Callable[[], None], clock: VirtualClock, number: int) -> None:
        self._call = call
        self._clock = clock
        self._go = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._unwinding = False
        self._deaf = 0
        self.number = number
        self.wake_us: int | None = None
        self.ended = False
        self._thread = threading.Thread(target=self._serve, name=f"mainspring-job-{number}", daemon=True)
        self._thread.start()

    def resume(self) -> None:
        """Lets it run until it sleeps or ends."""
        self._go.release()
        self._back.acquire()

    def unwind(self) -> None:
        """Ends it wherever it stands; code that catches everything again and again is left behind, asleep for ever."""
        self._unwinding = True
        self.resume()
        if self.ended:
            self._thread.join()

    def sleep(self, seconds: float) -> None:
        """For the thread itself: waits for virtual time."""
        if not self._unwinding:
            self.wake_us = self._clock.now_us + max(0, -int(-seconds * 1_000_000 // 1))
            self.park()
            return
        self._deaf += 1
        if self._deaf > DEAF_MAX:
            self.park()
        raise Unwound

    def park(self) -> None:
        """For the thread itself: waits until it is resumed, if ever; raises `Unwound` when the test is over."""
        self._back.release()
        self._go.acquire()
        self.wake_us = None
        if self._unwinding:
            raise Unwound

    def _serve(self) -> None:
        self._go.acquire()
        _HERE.thread = self
        try:
            if not self._unwinding:
                self._call()
        except Unwound:
            pass
        finally:
            self.ended = True
            self._back.release()


class HandlerThreads:
    """All blocking calls of one kit."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._count = 0
        self._fresh: list[HandlerThread] = []
        self._asleep: list[HandlerThread] = []
        self._frozen: list[HandlerThread] = []

    @property
    def next_us(self) -> int | None:
        """When the first sleeper wakes, epoch microseconds of virtual time."""
        return min((thread.wake_us for thread in self._asleep if thread.wake_us is not None), default=None)

    @property
    def has_fresh(self) -> bool:
        """Whether a call waits to begin."""
        return bool(self._fresh)

    def start(self, call: Callable[[], None]) -> HandlerThread:
        """Prepares a call; `pump` begins it."""
        self._count += 1
        thread = HandlerThread(call, self._clock, self._count)
        self._fresh.append(thread)
        return thread

    def pump(self) -> bool:
        """Runs what is new and what has slept enough, one after the other. Returns whether there was any."""
        fresh, self._fresh = self._fresh, []
        now_us = self._clock.now_us
        due = sorted(
            (thread for thread in self._asleep if thread.wake_us is not None and thread.wake_us <= now_us),
            key=lambda thread: (thread.wake_us, thread.number),
        )
        for thread in (*due, *fresh):
            if thread in self._frozen:
                continue  # killed by one that ran before it
            if thread in self._asleep:
                self._asleep.remove(thread)
            thread.resume()
            if not thread.ended and thread not in self._frozen:
                self._asleep.append(thread)
        return bool(due or fresh)

    def freeze(self, thread: HandlerThread) -> None:
        """It runs no further."""
        for group in (self._fresh, self._asleep):
            if thread in group:
                group.remove(thread)
        if not thread.ended:
            self._frozen.append(thread)
            if _HERE.thread is thread:
                thread.park()

    def close(self) -> None:
        """Unwinds whatever has not ended."""
        for thread in (*self._fresh, *self._asleep, *self._frozen):
            thread.unwind()
        self._fresh, self._asleep, self._frozen = [], [], []


class _Here(threading.local):
    thread: HandlerThread | None = None


_HERE: Final = _Here()
_REAL_SLEEP: Final = time.sleep
_uses = 0
_using: Final = threading.Lock()


def _sleep(seconds: "float | SupportsIndex", /) -> None:
    thread = _HERE.thread
    if thread is None:
        _REAL_SLEEP(seconds)
        return
    length_s = seconds if isinstance(seconds, int | float) else seconds.__index__()
    if length_s < 0:
        raise ValueError("sleep length must be non-negative")
    thread.sleep(length_s)


@contextmanager
def virtual_sleep() -> Iterator[None]:
    """While this lasts `time.sleep` in the thread of a job waits for virtual time; elsewhere it is what it was."""
    global _uses  # noqa: PLW0603  # one function of one module of the process is replaced, however many kits there are
    with _using:
        _uses += 1
        if time.sleep is _REAL_SLEEP:  # a fake of the test's own stays
            time.sleep = _sleep
    try:
        yield
    finally:
        with _using:
            _uses -= 1
            if _uses == 0 and time.sleep is _sleep:
                time.sleep = _REAL_SLEEP
