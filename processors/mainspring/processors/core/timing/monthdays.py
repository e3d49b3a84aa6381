"""Which days of a month the two day fields of a cron expression match."""

import calendar
from dataclasses import dataclass

from mainspring.processors.core.timing.fields import Field

__all__ = ["MonthDays", "days_in"]

_SATURDAY, _SUNDAY = 6, 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthDays:
    """The day fields: where both are restricted, either may match.

    A field that begins with a star (`*`, `*/2`, or `?`) is not restricted: then both must match.
    """

    day: Field
    weekday: Field
    days: int
    """Plain days of the month, bits 1 to 31."""
    weekdays: int
    """Plain weekdays, bits 0 (Sunday) to 6."""

    def of(self, year: int, month: int) -> int:
        """The matching days of a month as bits 1 to 31."""
        length = days_in(year, month)
        first = calendar.weekday(year, month, 1) + 1
        by_day = self._by_day(length, first)
        by_weekday = self._by_weekday(length, first)
        if self.day.is_starred or self.weekday.is_starred:
            return by_day & by_weekday
        return by_day | by_weekday

    def _by_day(self, length: int, first: int) -> int:
        bits = self.days & ((2 << length) - 1)
        for before in self.day.last:
            if before < length:
                bits |= 1 << length - before
        for day in self.day.nearest:
            if day <= length:
                bits |= 1 << (_last_workday(length, first) if day == 0 else _nearest_workday(day, length, first))
        return bits

    def _by_weekday(self, length: int, first: int) -> int:
        bits = 0
        for day in range(1, length + 1):
            if self.weekdays >> (first + day - 1) % 7 & 1:
                bits |= 1 << day
        for weekday in self.weekday.last:
            bits |= 1 << length - (first + length - 1 - weekday) % 7
        for weekday, nth in self.weekday.nth:
            day = 1 + (weekday - first) % 7 + 7 * (nth - 1)
            if day <= length:
                bits |= 1 << day
        return bits


def days_in(year: int, month: int) -> int:
    """How many days a month has."""
    return calendar.monthrange(year, month)[1]


def _last_workday(length: int, first: int) -> int:
    weekday = (first + length - 1) % 7
    return length - {_SATURDAY: 1, _SUNDAY: 2}.get(weekday, 0)


def _nearest_workday(day: int, length: int, first: int) -> int:
    """Friday for a Saturday and Monday for a Sunday, unless that is in another month."""
    weekday = (first + day - 1) % 7
    if weekday == _SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == _SUNDAY:
        return day + 1 if day < length else day - 2
    return day
