"""An event loop on virtual time: it runs what can run, and tells when its next timer is due instead of waiting.

What is real stays real: sockets are read, and calls in threads (`asyncio.to_thread`) are waited for while virtual time
stands still.
"""

import asyncio
import contextvars
import selectors
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

from mainspring.jobs.context import CURRENT, JobContext
from mainspring.testing.clock import VirtualClock

__all__ = ["VirtualLoop"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

SOCKET_PATIENCE_S: Final = 0.05
"""How long (real seconds) a silent socket is listened to before virtual time goes on."""
_OWN_SOCKETS: Final = 1
"""The loop's own: threads wake it through a pair of sockets, of which it reads one."""


class _IdleSelector(selectors.BaseSelector):
    """Never waits for a timer: where a loop would, it is told that the loop has nothing left to run."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.on_idle: Callable[[float | None], None] = lambda _timeout: None
        self.patience_s: Callable[[], float | None] = lambda: 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = self._real.select(0)
        if events or timeout == 0:
            return events
        patience_s = self.patience_s()
        if patience_s != 0:
            events = self._real.select(patience_s)
        if not events:
            self.on_idle(timeout)
        return events

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs the coroutines of jobs.

    `real_io_s`: how long to wait for real I/O whenever all of them wait; None: as long as calls in threads take, and a
    moment while sockets are open.
    """

    def __init__(self, clock: VirtualClock, real_io_s: float | None) -> None:
        self._virtual = clock
        self._real_io_s = real_io_s
        self.is_stirred = False
        self._in_threads = 0
        self._next_s: float | None = None
        self._frozen: set[JobContext] = set()
        self._withheld: list[tuple[Callable[..., Any], tuple[Any, ...], contextvars.Context | None]] = []
        self._counting = threading.Lock()
        self._idle = _IdleSelector()
        super().__init__(self._idle)
        # After months the nanosecond of a real clock is lost in a float: a timer that is due would stay a hair ahead.
        self._clock_resolution = 1e-6
        self._idle.on_idle = self._now_idle
        self._idle.patience_s = self._patience_s

    def time(self) -> float:
        return self._virtual.seconds

    @property
    def next_us(self) -> int | None:
        """When the next timer is due, epoch microseconds of virtual time."""
        return None if self._next_s is None else self._virtual.at_seconds(self._next_s)

    def pump(self) -> bool:
        """Runs all that can run now. Returns whether anything could."""
        due = self._next_s is not None and self._next_s <= self.time()
        if not (self.is_stirred or due or self._in_threads or len(self._idle.get_map()) > _OWN_SOCKETS):
            return False
        self._next_s = None
        ran = self.is_stirred or due
        self.is_stirred = False
        self.run_forever()
        return ran or self.is_stirred

    def freeze(self, context: JobContext) -> None:
        """The code of an attempt, and the tasks it has made, run no further."""
        self._frozen.add(context)

    def thaw(self) -> None:
        """What was frozen may run again."""
        self._frozen.clear()
        withheld, self._withheld = self._withheld, []
        for callback, args, context in withheld:
            self.call_soon(callback, *args, context=context)

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        owner = (CURRENT.get() if context is None else context.get(CURRENT)) if self._frozen else None
        if owner is not None and owner in self._frozen:
            self._withheld.append((callback, args, context))
            return asyncio.Handle(callback, args, self, context)
        self.is_stirred = True
        return super().call_soon(callback, *args, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        self.is_stirred = True
        return super().call_soon_threadsafe(callback, *args, context=context)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> "asyncio.Future[T]":
        future = super().run_in_executor(executor, func, *args)
        with self._counting:
            self._in_threads += 1
        future.add_done_callback(self._left_thread)
        return future

    def _left_thread(self, _future: "asyncio.Future[Any]") -> None:
        with self._counting:
            self._in_threads -= 1

    def _patience_s(self) -> float | None:
        if self._in_threads:
            return None
        if self._real_io_s is not None:
            return self._real_io_s
        return SOCKET_PATIENCE_S if len(self._idle.get_map()) > _OWN_SOCKETS else 0.0

    def _now_idle(self, timeout: float | None) -> None:
        self._next_s = None if timeout is None else self.time() + timeout
        self.stop()
