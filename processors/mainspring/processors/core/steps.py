"""Steps of the wall clock, seen against the monotonic one."""

from dataclasses import dataclass
from typing import Final

from mainspring.processors.core.instants import Now
from mainspring.schemas.bounds import INSTANT_MAX_MS

__all__ = ["STEP_MIN_MS", "ClockSetBack", "StepWatch", "set_back_unseen"]

STEP_MIN_MS: Final = 1_000
"""A clock that is slewed moves less than this between two looks, and clocks of machines differ by less; what is moved
by a step is moved by more than nobody would notice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockSetBack:
    """The wall clock went back. All instants are of the wall clock, epoch milliseconds."""

    by_ms: int
    before_ms: int
    """What it showed when it was last looked at; how long before the step that was, nobody knows."""
    after_ms: int
    """What it shows now."""
    steady_since_ms: int
    """What began at or after this instant began on a clock that was not behind the one of right before the step, so its
    end is nearer by the whole step."""


def set_back_unseen(now_ms: int) -> ClockSetBack:
    """The clock of a new owner may be behind that of the former one; nobody saw by how much."""
    return ClockSetBack(by_ms=0, before_ms=now_ms, after_ms=now_ms, steady_since_ms=INSTANT_MAX_MS)


class StepWatch:
    """Compares each present with the one before."""

    def __init__(self, now: Now) -> None:
        self._last = now
        self._steady_since_ms = now.wall_ms

    def see(self, now: Now) -> ClockSetBack | None:
        """Looks at the clocks; says so when the wall clock went back since the last look. A step ahead is taken in."""
        wall_ms = now.wall_ms
        last, self._last = self._last, now
        back_ms = last.wall_ms + now.mono_ms - last.mono_ms - wall_ms
        if -STEP_MIN_MS <= back_ms <= STEP_MIN_MS:
            return None
        if back_ms < 0:
            self._steady_since_ms = wall_ms
            return None
        since_ms = self._steady_since_ms
        # What began since has been moved with the clock.
        self._steady_since_ms -= back_ms
        return ClockSetBack(by_ms=back_ms, before_ms=last.wall_ms, after_ms=wall_ms, steady_since_ms=since_ms)
