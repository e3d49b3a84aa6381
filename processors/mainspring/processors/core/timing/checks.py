"""Whether a definition of time is within bounds, can be read, and ever fires."""

import re
from datetime import date
from typing import Final

from mainspring.processors.core.timing.bounds import (
    CALENDAR_DATES_MAX,
    CALENDAR_NAME_MAX_CHARS,
    CALENDARS_MAX,
    COMBINED_UNIT_MS,
    EXPRESSION_MAX_CHARS,
    INTERVAL_MAX_MS,
    INTERVAL_MIN_MS,
    JITTER_MAX_MS,
    RULES_MAX,
)
from mainspring.processors.core.timing.cron import compile_cron
from mainspring.processors.core.timing.errors import CronError
from mainspring.processors.core.timing.plan import plan_of
from mainspring.processors.core.timing.zones import UnknownZoneError, zone_named
from mainspring.schemas.limits import Problem, check_instant_ms, check_text, invalid
from mainspring.schemas.schedule import CronRule, FoldRule, GapRule, IntervalRule, NamedCalendar, ScheduleTiming

__all__ = ["check_timing"]

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Where exclusions are searched from that no start bounds: what they repeat, they repeat at any time.
_ANY_MS: Final = 946_684_800_000


def check_timing(
    timing: ScheduleTiming, field: str = "timing", created_ms: int | None = None, *, after_ms: int | None = None
) -> Problem | None:
    """Checks a definition of time: None where it is right, else its first problem, which names the field.

    `field` is what its own name is, for the message. With `created_ms` (epoch milliseconds UTC) it is also refused
    where nothing would ever fire after that; without, only where that follows from the definition alone. `after_ms`:
    the same after this instant instead, for a schedule that was created before it is given this definition.
    """
    return (
        _check_rules(timing.rules, f"{field}.rules", least=1)
        or _check_rules(timing.exclude, f"{field}.exclude", least=0)
        or _check_combined(timing, field)
        or _check_calendars(timing.calendars, f"{field}.calendars")
        or _check_zone(timing.timezone, f"{field}.timezone")
        or _check_range(timing, field)
        or _check_jitter(timing.jitter_ms, f"{field}.jitter_ms")
        or _check_choices(timing, field)
        or _check_fires(timing, field, created_ms, created_ms if after_ms is None else after_ms)
    )


def _check_rules(rules: object, field: str, *, least: int) -> Problem | None:
    if type(rules) is not tuple:
        return invalid(field, f"must be a tuple, not {type(rules).__name__}")
    if not least <= len(rules) <= RULES_MAX:
        return invalid(field, f"must have {least} to {RULES_MAX} rules, and has {len(rules)}")
    for at, rule in enumerate(rules):
        problem = _check_rule(rule, f"{field}[{at}]")
        if problem is not None:
            return problem
    return None


def _check_rule(rule: object, field: str) -> Problem | None:
    if isinstance(rule, IntervalRule):
        return _check_interval(rule, field)
    if isinstance(rule, CronRule):
        return _check_cron(rule, field)
    return invalid(field, f"must be a CronRule or an IntervalRule, not {type(rule).__name__}")


def _check_interval(rule: IntervalRule, field: str) -> Problem | None:
    return (
        _check_whole(rule.every_ms, f"{field}.every_ms", INTERVAL_MIN_MS, INTERVAL_MAX_MS)
        or _check_whole(rule.phase_ms, f"{field}.phase_ms", 0, rule.every_ms - 1)
        or (None if rule.anchor_ms is None else check_instant_ms(rule.anchor_ms, f"{field}.anchor_ms"))
    )


def _check_cron(rule: CronRule, field: str) -> Problem | None:
    seconds: object = rule.seconds
    if not isinstance(seconds, bool):
        return invalid(f"{field}.seconds", f"must be True or False, not {seconds!r}")
    field = f"{field}.expression"
    expression: object = rule.expression
    # Tabs part fields as blanks do.
    text = expression.replace("\t", " ") if isinstance(expression, str) else expression
    problem = check_text(text, field, EXPRESSION_MAX_CHARS)
    if problem is not None:
        return problem
    try:
        compile_cron(rule.expression, seconds=rule.seconds)
    except CronError as error:
        return invalid(field, str(error))
    return None


def _check_combined(timing: ScheduleTiming, field: str) -> Problem | None:
    """Where rules meet, intervals are whole seconds."""
    if len(timing.rules) == 1 and not timing.exclude and not timing.calendars:
        return None
    for name in ("rules", "exclude"):
        for at, rule in enumerate(getattr(timing, name)):
            if isinstance(rule, IntervalRule) and rule.every_ms % COMBINED_UNIT_MS:
                return invalid(
                    f"{field}.{name}[{at}].every_ms",
                    f"must be a multiple of {COMBINED_UNIT_MS} ms beside other rules, exclusions or calendars, "
                    f"and is {rule.every_ms}",
                )
    return None


def _check_calendars(calendars: object, field: str) -> Problem | None:
    if type(calendars) is not tuple:
        return invalid(field, f"must be a tuple, not {type(calendars).__name__}")
    if len(calendars) > CALENDARS_MAX:
        return invalid(field, f"must be at most {CALENDARS_MAX}, and are {len(calendars)}")
    for at, calendar in enumerate(calendars):
        problem = _check_calendar(calendar, f"{field}[{at}]")
        if problem is not None:
            return problem
    return None


def _check_calendar(calendar: object, field: str) -> Problem | None:
    if not isinstance(calendar, NamedCalendar):
        return invalid(field, f"must be a NamedCalendar, not {type(calendar).__name__}")
    problem = check_text(calendar.name, f"{field}.name", CALENDAR_NAME_MAX_CHARS)
    if problem is not None:
        return problem
    if type(calendar.dates) is not tuple or not 1 <= len(calendar.dates) <= CALENDAR_DATES_MAX:
        return invalid(f"{field}.dates", f"must be a tuple of 1 to {CALENDAR_DATES_MAX} dates")
    for at, text in enumerate(calendar.dates):
        if not _is_date(text):
            return invalid(f"{field}.dates[{at}]", f"must be a date such as 2027-12-25, not {text!r}")
    return None


def _is_date(text: object) -> bool:
    # `fromisoformat` alone takes week dates and digits without dashes, too.
    if not isinstance(text, str) or not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _check_zone(name: object, field: str) -> Problem | None:
    if not isinstance(name, str):
        return invalid(field, f"must be a string, not {type(name).__name__}")
    try:
        zone_named(name)
    except UnknownZoneError as error:
        return invalid(field, str(error))
    return None


def _check_range(timing: ScheduleTiming, field: str) -> Problem | None:
    start_ms, end_ms = timing.start_ms, timing.end_ms
    problem = (None if start_ms is None else check_instant_ms(start_ms, f"{field}.start_ms")) or (
        None if end_ms is None else check_instant_ms(end_ms, f"{field}.end_ms")
    )
    if problem is None and start_ms is not None and end_ms is not None and end_ms < start_ms:
        return invalid(f"{field}.end_ms", "must not be before start_ms")
    return problem


def _check_jitter(jitter_ms: object, field: str) -> Problem | None:
    return _check_whole(jitter_ms, field, 0, JITTER_MAX_MS)


def _check_choices(timing: ScheduleTiming, field: str) -> Problem | None:
    for name, kind in (("gap", GapRule), ("fold", FoldRule)):
        value = getattr(timing, name)
        if type(value) is not kind:
            return invalid(f"{field}.{name}", f"must be a {kind.__name__}, not {value!r}")
    return None


def _check_whole(value: object, field: str, least: int, most: int) -> Problem | None:
    if type(value) is not int:
        return invalid(field, f"must be a whole number of milliseconds, not {value!r}")
    if not least <= value <= most:
        return invalid(field, f"must be from {least} to {most} ms, and is {value}")
    return None


def _check_fires(timing: ScheduleTiming, field: str, created_ms: int | None, after_ms: int | None) -> Problem | None:
    """Whether anything is left to fire, as far as that can be known."""
    from_ms = after_ms if after_ms is not None else timing.start_ms
    if from_ms is None:
        if timing.end_ms is not None or not (timing.exclude or timing.calendars):
            return None
        from_ms = _ANY_MS
    needs_created = any(
        isinstance(rule, IntervalRule) and rule.anchor_ms is None for rule in (*timing.rules, *timing.exclude)
    )
    if created_ms is None and needs_created:
        return None
    behind_ms = from_ms if after_ms is not None else from_ms - 1
    if plan_of(timing, 0 if created_ms is None else created_ms).next_after(behind_ms) is not None:
        return None
    why = "" if after_ms is None else "after it is created, " if after_ms == created_ms else "from now on, "
    until = " before its end" if timing.end_ms is not None else ""
    return invalid(field, f"never fires: {why}{_taken(timing)}{until}; widen the rules or take exclusions away")


def _taken(timing: ScheduleTiming) -> str:
    """What became of all that the rules name."""
    if timing.exclude or timing.calendars:
        return "the exclusions leave nothing within what a search passes (see Bounds in docs/schedules.md)"
    if timing.end_ms is None:
        return f"the clock of {timing.timezone} leaves out every time that they name, for decades (gap and fold)"
    return "nothing is left"
