"""A compiled cron expression: which local days it matches, at which seconds of them, and where it fires next."""

from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from typing import Final

from mainspring.processors.core.timing.errors import CronError
from mainspring.processors.core.timing.fields import Field, split_expression
from mainspring.processors.core.timing.monthdays import MonthDays
from mainspring.processors.core.timing.zones import DAY_S

__all__ = ["Cron", "compile_cron"]

# The calendar repeats after this, weekdays included: what has not matched in it never will.
_CYCLE_MONTHS: Final = 400 * 12
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_LAST_MONTH: Final = 9999 * 12
_MONTHS_KEPT: Final = 64


class Cron:
    """An expression, compiled: pure calendar arithmetic in local time, without any zone.

    Days are counted from 1970-01-01; `local_s` are seconds since then by the local clock.
    """

    def __init__(self, fields: tuple[Field, ...]) -> None:
        _, minute, hour, day, _, weekday = fields
        expanded = _expand(fields)
        self.fields = fields
        self.seconds, self.minutes, self.hours = expanded[0], expanded[1], expanded[2]
        self.months = expanded[4]
        self.days = MonthDays(day=day, weekday=weekday, days=expanded[3], weekdays=expanded[5])
        self.follows_real_time = minute.is_starred or hour.is_starred
        self._first_s = self._next_second(0)
        self._months: dict[int, int] = {}

    def matches_day(self, day: int) -> bool:
        """Whether a local day matches."""
        when = date.fromordinal(day + _EPOCH_ORDINAL)
        return bool(self._days(when.year * 12 + when.month - 1) >> when.day & 1)

    def matches(self, local_s: int) -> bool:
        """Whether a local second matches."""
        day, second = divmod(local_s, DAY_S)
        hour, rest = divmod(second, 3_600)
        return bool(
            self.hours >> hour & 1
            and self.minutes >> rest // 60 & 1
            and self.seconds >> rest % 60 & 1
            and self.matches_day(day)
        )

    def next_local(self, local_s: int) -> int | None:
        """The first matching local second that is not earlier; None where none will ever come."""
        day, second = divmod(local_s, DAY_S)
        if self.matches_day(day):
            found = self._next_second(second)
            if found is not None:
                return day * DAY_S + found
        next_day = self.next_day(day + 1)
        if next_day is None or self._first_s is None:
            return None
        return next_day * DAY_S + self._first_s

    def next_day(self, day: int) -> int | None:
        """The first matching day that is not earlier; None where none will ever come."""
        when = date.fromordinal(day + _EPOCH_ORDINAL)
        month = when.year * 12 + when.month - 1
        left = self._days(month) >> when.day << when.day
        for later in range(month, min(month + _CYCLE_MONTHS + 1, _LAST_MONTH)):
            if later > month:
                left = self._days(later)
            if left:
                first = (left & -left).bit_length() - 1
                return date(later // 12, later % 12 + 1, first).toordinal() - _EPOCH_ORDINAL
        return None

    def mask(self) -> int:
        """The seconds of a matching day, one bit for each."""
        return _day_mask(self.hours, self.minutes, self.seconds)

    def _days(self, month: int) -> int:
        """The matching days of a month (year · 12 + month − 1), as bits 1 to 31."""
        if not self.months >> month % 12 + 1 & 1:
            return 0
        days = self._months.get(month)
        if days is None:
            if len(self._months) >= _MONTHS_KEPT:
                self._months.clear()
            days = self._months[month] = self.days.of(month // 12, month % 12 + 1)
        return days

    def _next_second(self, second: int) -> int | None:
        """The first second of a matching day that is not earlier."""
        hour, rest = divmod(second, 3_600)
        minute, second = divmod(rest, 60)
        at = (hour, minute, second)
        fields = (self.hours, self.minutes, self.seconds)
        # The leading fields stay as they are as far as possible; the first that moves on resets those behind it.
        for kept in (3, 2, 1, 0):
            if any(not fields[each] >> at[each] & 1 for each in range(kept)):
                continue
            if kept == 3:  # noqa: PLR2004 - hour, minute and second all match
                return hour * 3_600 + minute * 60 + second
            moved = _lowest(fields[kept] >> at[kept] + 1 << at[kept] + 1)
            if moved is not None:
                found = (*at[:kept], moved, *(_lowest(each) or 0 for each in fields[kept + 1 :]))
                return found[0] * 3_600 + found[1] * 60 + found[2]
        return None


@lru_cache(maxsize=1024)
def compile_cron(expression: str, *, seconds: bool, whole_minutes: bool = False) -> Cron:
    """The compiled expression. Raises CronError, also for dates that no year has.

    `whole_minutes`: without seconds of its own it matches all seconds of its minutes, as an exclusion does.
    """
    fields = split_expression(expression, seconds=seconds)
    if whole_minutes and not seconds:
        fields = (split_expression("* * * * * *", seconds=True)[0], *fields[1:])
    cron = Cron(fields)
    if cron.next_day(0) is None:
        day, month, weekday = (fields[at].text for at in (3, 4, 5))
        also = "" if weekday in "*?" else f" on day of week {weekday}"
        raise CronError(f"never matches: no year has a day of month {day} in month {month}{also}")
    return cron


def _expand(fields: tuple[Field, ...]) -> tuple[int, ...]:
    """The values of each field as bits, from croniter's expansion."""
    from croniter import croniter

    second, *rest = fields
    text = " ".join(field.plain or "*" for field in (*rest, second))
    lists, _ = croniter.expand(text)
    masks = [_bits(field, values) for field, values in zip((*rest, second), lists, strict=True)]
    return (masks[-1], *masks[:-1])


def _bits(field: Field, values: Sequence[int | str]) -> int:
    if not field.plain:
        return 0
    kind = field.kind
    if "*" in values:
        return ((1 << kind.size) - 1) << kind.low
    return sum(1 << int(value) for value in values)


def _lowest(bits: int) -> int | None:
    return (bits & -bits).bit_length() - 1 if bits else None


@lru_cache(maxsize=512)
def _day_mask(hours: int, minutes: int, seconds: int) -> int:
    hour = sum(seconds << 60 * minute for minute in range(60) if minutes >> minute & 1)
    return sum(hour << 3_600 * at for at in range(24) if hours >> at & 1)
