"""Python's garbage collector, told what it does not know: that nothing here makes cycles, and nearly everything stays.

Hundreds of thousands of rows and index entries live for long, and the collector would look at all of them again and
again to find nothing: a third of the scheduler's time. Reference counting frees what is let go of without it.
"""

import gc
from types import TracebackType
from typing import Self

from mainspring.processors.engine.ports import Clock

__all__ = ["QuietCollector"]

_EVERY_MS = 60_000


class QuietCollector:
    """Turns the automatic collection off while it is entered, for a process that belongs to the loop alone.

    `look` collects once a minute what has been made since the last time, and then takes all that is left out of the
    collector's sight, so that the cost depends on what is new and not on what is kept.
    """

    def __init__(self, clock: Clock, every_ms: int = _EVERY_MS) -> None:
        self._clock = clock
        self._every_ms = every_ms
        self._next_ms = clock.mono_ms() + every_ms
        self._was_on = False

    def __enter__(self) -> Self:
        self._was_on = gc.isenabled()
        gc.disable()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        gc.unfreeze()
        if self._was_on:
            gc.enable()

    def look(self) -> None:
        """Collects when it is time."""
        now_ms = self._clock.mono_ms()
        if now_ms >= self._next_ms:
            self._next_ms = now_ms + self._every_ms
            gc.collect()
            gc.freeze()
