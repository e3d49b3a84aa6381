"""The days that a cron expression matches, in words."""

from typing import Final

from mainspring.processors.core.timing.cron import Cron
from mainspring.processors.core.timing.lists import joined, listed, ordinal, values_of

__all__ = ["day_words", "month_words"]

_MONTHS: Final = (
    *("", "January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ALL_DAYS: Final = 0xFFFFFFFE
_ALL_WEEKDAYS: Final = 0x7F
_ALL_MONTHS: Final = 0x1FFE
_WEEK, _RUN_MIN = 7, 3
_NTH: Final = ("", "first", "second", "third", "fourth", "fifth")


def day_words(cron: Cron, *, is_daily: bool) -> str:
    """`Monday to Friday`, `on day 1 of the month or Friday`; nothing for all days, unless each is to be named."""
    days = cron.days
    is_starred = days.day.is_starred or days.weekday.is_starred
    has_day, has_weekday = days.days != _ALL_DAYS, days.weekdays != _ALL_WEEKDAYS
    if is_starred:
        if has_day and has_weekday:
            return f"{_weekday_words(cron)} if {_month_day_words(cron)}"
        if has_weekday:
            return _weekday_words(cron)
        return _month_day_words(cron) if has_day else ("every day" if is_daily else "")
    if not (has_day and has_weekday):
        return "every day" if is_daily else ""
    return f"{_month_day_words(cron)} or {_weekday_words(cron)}"


def month_words(cron: Cron) -> str:
    """`in January and July`; nothing for all months."""
    return "" if cron.months == _ALL_MONTHS else f"in {listed(values_of(cron.months), _MONTHS)}"


def _month_day_words(cron: Cron) -> str:
    field, plain = cron.days.day, values_of(cron.days.days)
    words = []
    if plain:
        words.append(f"day{'' if len(plain) == 1 else 's'} {listed(plain)}")
    words += ["the last day" if not before else f"the {ordinal(before + 1)} last day" for before in field.last]
    words += [f"the workday nearest to day {day}" if day else "the last workday" for day in field.nearest]
    return f"on {joined(words)} of the month"


def _weekday_words(cron: Cron) -> str:
    field, plain = cron.days.weekday, values_of(cron.days.weekdays)
    words = []
    if plain:
        words.append(_listed_weekdays(plain))
    words += [f"the {_NTH[nth]} {_DAYS[weekday]} of the month" for weekday, nth in field.nth]
    words += [f"the last {_DAYS[weekday]} of the month" for weekday in field.last]
    return joined(words)


def _listed_weekdays(plain: list[int]) -> str:
    """Monday first, and a run over the turn of the week as one."""
    for first in plain:
        run = [(first + at) % _WEEK for at in range(len(plain))]
        if len(plain) >= _RUN_MIN and len(plain) < _WEEK and sorted(run) == plain:
            return f"{_DAYS[run[0]]} to {_DAYS[run[-1]]}"
    return listed(sorted(day or _WEEK for day in plain), _DAYS)
