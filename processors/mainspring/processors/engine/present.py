"""The present, as both clocks tell it at one instant."""

from typing import Final

from mainspring.processors.core import Now
from mainspring.processors.engine.ports import Clock

__all__ = ["present"]

_APART_MS: Final = 100
_TRIES: Final = 10


def present(clock: Clock) -> Now:
    """Reads both clocks, again where much time passed between them.

    A process that stands still in between would take the pause for a step of the wall clock.
    """
    now = Now(0, 0)
    for _ in range(_TRIES):
        before_ms = clock.mono_ms()
        now = Now(wall_ms=clock.wall_ms(), mono_ms=clock.mono_ms())
        if now.mono_ms - before_ms <= _APART_MS:
            break
    return now
