"""A definition in words."""

from collections.abc import Sequence
from typing import Final

from mainspring.processors.core.timing.cron import Cron, compile_cron
from mainspring.processors.core.timing.daywords import day_words, month_words
from mainspring.processors.core.timing.lists import joined, listed, values_of
from mainspring.schemas.epoch import instant_text
from mainspring.schemas.schedule import CronRule, IntervalRule, ScheduleTiming

__all__ = ["describe", "duration_words"]

_UNITS: Final = (("week", 604_800_000), ("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000))
_HOUR_MINUTES, _DAY_HOURS = 60, 24
# More times of the day than these are told by their fields.
_TIMES_MAX: Final = 6


def describe(timing: ScheduleTiming) -> str:
    """The rules in words: `At 02:30, Monday to Friday, Europe/Berlin`."""
    first, *more = (_rule_words(rule) for rule in timing.rules)
    parts = ["; and ".join((first, *map(_lower, more)))]
    taken = [f"what is {_lower(_rule_words(rule))}" for rule in timing.exclude]
    taken += [f"the dates of {calendar.name}" for calendar in timing.calendars]
    if taken:
        parts.append(f"except {joined(taken)}")
    if taken or any(isinstance(rule, CronRule) for rule in timing.rules):
        parts.append(timing.timezone)
    if timing.start_ms is not None:
        parts.append(f"from {_instant(timing.start_ms)}")
    if timing.end_ms is not None:
        parts.append(f"until {_instant(timing.end_ms)}")
    if timing.jitter_ms:
        parts.append(f"each up to {duration_words(timing.jitter_ms)} later")
    return ", ".join(parts)


def _rule_words(rule: CronRule | IntervalRule) -> str:
    if isinstance(rule, IntervalRule):
        return _interval_words(rule)
    cron = compile_cron(rule.expression, seconds=rule.seconds)
    time = _time_words(cron)
    days = day_words(cron, is_daily=time.startswith("At ") and "every" not in time)
    return ", ".join(part for part in (time, days, month_words(cron)) if part)


def _interval_words(rule: IntervalRule) -> str:
    every = "Every " + _each(rule.every_ms)
    if rule.anchor_ms is None:
        return every + (f", {duration_words(rule.phase_ms)} after the beat of its creation" if rule.phase_ms else "")
    return f"{every} on the beat of {_instant(rule.anchor_ms + rule.phase_ms)}"


def _time_words(cron: Cron) -> str:
    seconds, minutes, hours = (values_of(bits) for bits in (cron.seconds, cron.minutes, cron.hours))
    if seconds == [0]:
        if len(minutes) * len(hours) <= _TIMES_MAX:
            return "At " + joined([f"{hour:02}:{minute:02}" for hour in hours for minute in minutes])
        return _minute_words(minutes, hours)
    if len(seconds) == len(minutes) == len(hours) == 1:
        return f"At {hours[0]:02}:{minutes[0]:02}:{seconds[0]:02}"
    step = _even_step(seconds, _HOUR_MINUTES)
    second = ("Every second" if step == 1 else f"Every {step} seconds") if step else _at_seconds(seconds)
    if len(minutes) == _HOUR_MINUTES and len(hours) == _DAY_HOURS:
        return second if step else f"{second} of every minute"
    return f"{second} of: {_lower(_minute_words(minutes, hours))}"


def _at_seconds(seconds: list[int]) -> str:
    return f"At second{'' if len(seconds) == 1 else 's'} {listed(seconds)}"


def _minute_words(minutes: list[int], hours: list[int]) -> str:
    step, hour_step = _even_step(minutes, _HOUR_MINUTES), _even_step(hours, _DAY_HOURS)
    if step:
        every = "Every minute" if step == 1 else f"Every {step} minutes"
        return every if hour_step == 1 else f"{every}{_hour_words(hours)}"
    minute = f"At minute{'' if len(minutes) == 1 else 's'} {listed(minutes)}"
    if hour_step and minutes == [0]:
        return "Every hour" if hour_step == 1 else f"Every {hour_step} hours from 00:00"
    if hour_step == 1:
        return f"{minute} of every hour"
    return f"{minute}{_hour_words(hours)}"


def _hour_words(hours: list[int]) -> str:
    if hours[-1] - hours[0] == len(hours) - 1:
        return f" from {hours[0]:02}:00 to {hours[-1]:02}:59"
    return f" of hours {listed(hours)}"


def _even_step(values: Sequence[int], size: int) -> int:
    """The step of values that go round the clock evenly; 0 where they do not, or where there is but one."""
    if values[0] != 0 or size % len(values) or len(values) == 1:
        return 0
    step = size // len(values)
    return step if list(values) == list(range(0, size, step)) else 0


def _each(every_ms: int) -> str:
    """`15 minutes`, `hour`, `1 hour 30 minutes`."""
    for unit, size_ms in _UNITS:
        if every_ms == size_ms:
            return unit
    return duration_words(every_ms)


def duration_words(duration_ms: int) -> str:
    """`1 hour 30 minutes`, `250 ms`."""
    parts = []
    for unit, size_ms in _UNITS[1:]:
        count, duration_ms = divmod(duration_ms, size_ms)
        if count:
            parts.append(f"{count} {unit}{'' if count == 1 else 's'}")
    if duration_ms or not parts:
        parts.append(f"{duration_ms} ms")
    return " ".join(parts)


def _instant(instant_ms: int) -> str:
    return instant_text(instant_ms, " ")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
