"""What a schedule's exclusions and calendars take away."""

from datetime import date
from typing import Final

from mainspring.processors.core.timing.blocks import Block, ones
from mainspring.processors.core.timing.cron import Cron, compile_cron
from mainspring.processors.core.timing.firing import IntervalFiring
from mainspring.processors.core.timing.intervals import Interval
from mainspring.processors.core.timing.zones import DAY_S, Zone
from mainspring.schemas.schedule import CronRule, ScheduleTiming

__all__ = ["Exclusions"]

_MS: Final = 1_000
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_WHOLE_DAY: Final = ones(0, DAY_S)
_KEYS_KEPT: Final = 1_024


class Exclusions:
    """The instants that are taken away.

    By an expression, those in a minute of local time that it matches (a second, where it has seconds of its own); by an
    interval, those that coincide with one of its own; by a calendar, those on a local date.
    """

    def __init__(self, timing: ScheduleTiming, created_ms: int, zone: Zone) -> None:
        self._zone = zone
        self._crons: list[Cron] = []
        self._intervals: list[Interval] = []
        for rule in timing.exclude:
            if isinstance(rule, CronRule):
                self._crons.append(compile_cron(rule.expression, seconds=rule.seconds, whole_minutes=True))
            else:
                self._intervals.append(Interval.of(rule, created_ms))
        self._grids = [IntervalFiring(interval) for interval in self._intervals]
        self._days = frozenset(
            date.fromisoformat(text).toordinal() - _EPOCH_ORDINAL
            for calendar in timing.calendars
            for text in calendar.dates
        )
        self._whole_days: dict[tuple[bool, ...], bool] = {}
        self.is_empty = not (self._crons or self._intervals or self._days)
        self.has_intervals = bool(self._intervals)

    def takes(self, instant_ms: int) -> bool:
        """Whether an instant is excluded."""
        if self.is_empty:
            return False
        second = instant_ms // _MS
        local_s = second + self._zone.segment_at(second).offset_s
        return (
            local_s // DAY_S in self._days
            or any(instant_ms in interval for interval in self._intervals)
            or any(cron.matches(local_s) for cron in self._crons)
        )

    def day_key(self, day: int) -> tuple[bool, ...]:
        """What a whole day's exclusions depend on, intervals aside: equal keys, equal exclusions."""
        return (day in self._days, *(cron.matches_day(day) for cron in self._crons))

    def takes_day(self, day: int) -> bool:
        """Whether a whole local day is excluded, whatever the clock does on it."""
        if day in self._days:
            return True
        if not self._crons:
            return False
        key = self.day_key(day)
        is_whole = self._whole_days.get(key)
        if is_whole is None:
            if len(self._whole_days) >= _KEYS_KEPT:
                self._whole_days.clear()
            is_whole = self._whole_days[key] = self._taken(day) == _WHOLE_DAY
        return is_whole

    def _taken(self, day: int) -> int:
        """The seconds that the expressions take away."""
        taken = 0
        for cron in self._crons:
            if cron.matches_day(day):
                taken |= cron.mask()
        return taken

    def left(self, block: Block, masks: dict[int, int]) -> dict[int, int]:
        """What is left of a block's instants, which are bits by their milliseconds beyond the second."""
        if self.is_empty:
            return masks
        if block.day in self._days:
            return {}
        taken = self._taken(block.day)
        masks = {fraction: mask & ~taken for fraction, mask in masks.items()}
        for grid in self._grids:
            for fraction, mask in grid.masks(block).items():
                if fraction in masks:
                    masks[fraction] &= ~mask
        return masks
