"""Virtual time: it stands still until a test moves it."""

from datetime import datetime, timedelta
from typing import Final

from mainspring.jobs.durations import parse_duration
from mainspring.processors.core import Now
from mainspring.schemas.epoch import EPOCH, to_epoch_ms

__all__ = ["Duration", "VirtualClock", "microseconds"]

Duration = str | float | timedelta
"""`"2h"`, `"1h30m"`, `"250ms"`; seconds as a number; or a timedelta."""

_US: Final = timedelta(microseconds=1)
_MONO_START_MS: Final = 1


def microseconds(duration: Duration) -> int:
    """A duration as whole microseconds. Raises ValueError for one that is negative or no duration."""
    if isinstance(duration, str):
        duration = parse_duration(duration)
    elif not isinstance(duration, timedelta):
        duration = timedelta(seconds=duration)
    if duration < timedelta(0):
        raise ValueError(f"time does not go back: {duration!r} is negative")
    return duration // _US


class VirtualClock:
    """Wall clock and monotonic clock in one; `now_us` are epoch microseconds, UTC."""

    def __init__(self, start: datetime) -> None:
        if start.utcoffset() is None:
            raise ValueError(f"start must have a time zone, and {start.isoformat()} is naive; say which one")
        # Whole milliseconds, so that both clocks of the scheduler tick at the same moments.
        self.start_us = to_epoch_ms(start) * 1000
        self.now_us = self.start_us

    @property
    def wall_ms(self) -> int:
        """Epoch milliseconds."""
        return self.now_us // 1000

    @property
    def seconds(self) -> float:
        """Monotonic seconds since the start."""
        return (self.now_us - self.start_us) / 1_000_000

    @property
    def now(self) -> Now:
        """Both clocks as the core takes them."""
        return Now(self.now_us // 1000, (self.now_us - self.start_us) // 1000 + _MONO_START_MS)

    @property
    def instant(self) -> datetime:
        """The present as an aware datetime in UTC."""
        return EPOCH + timedelta(microseconds=self.now_us)

    def at_wall_ms(self, wall_ms: int) -> int:
        """Epoch microseconds of a wall-clock time."""
        return wall_ms * 1000

    def at_mono_ms(self, mono_ms: int) -> int:
        """Epoch microseconds of a monotonic time."""
        return (mono_ms - _MONO_START_MS) * 1000 + self.start_us

    def at_seconds(self, seconds: float) -> int:
        """Epoch microseconds of a time of `seconds`, rounded up and never before the next microsecond."""
        exact = seconds * 1_000_000
        return max(self.now_us + 1, self.start_us + -int(-exact // 1))

    def move_to(self, at_us: int) -> None:
        """Moves to a later moment; an earlier one changes nothing."""
        self.now_us = max(self.now_us, at_us)
