"""When a schedule fires, as users say it: `Every("15m")`, `Cron("30 2 * * MON-FRI", tz="Europe/Berlin")`, `When(…)`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, TypeAlias

from mainspring.client.schedules.values import duration_ms, instant_ms, named, refuse
from mainspring.schemas.schedule import CronRule, FoldRule, GapRule, IntervalRule, NamedCalendar, ScheduleTiming

__all__ = ["Cron", "Dates", "Every", "Rule", "Timing", "When", "to_timing"]

Dates: TypeAlias = Sequence[date | str]
"""Local days, as dates or as `2027-12-25`."""


@dataclass(frozen=True, slots=True)
class Every:
    """Fires at anchor + phase + n · interval.

    Args:
        interval: `15m`, `1h30m`, seconds, or a timedelta.
        anchor: the instant it counts from; the creation of the schedule by default.
        phase: shifts it, by less than the interval.
    """

    interval: str | float | timedelta
    anchor: datetime | None = field(default=None, kw_only=True)
    phase: str | float | timedelta = field(default=0, kw_only=True)


@dataclass(frozen=True, slots=True)
class Cron:
    """Fires where an expression matches the local time of a zone.

    Args:
        expression: five fields, or a form like `@daily`; docs/schedules.md has the whole language.
        tz: an IANA zone, which all rules of a schedule share; UTC by default.
        seconds: the expression has six fields, seconds first.
    """

    expression: str
    tz: str | None = None
    seconds: bool = field(default=False, kw_only=True)


Rule: TypeAlias = Every | Cron


@dataclass(frozen=True, slots=True)
class When:
    """Several rules together, what is excluded, and the terms that hold for all of them.

    Args:
        rules: one, or several: it fires where any of them does.
        exclude: rules that take away: a `Cron` what is in a local minute that it matches, an `Every` what coincides.
        calendars: by name, local days on which nothing fires.
        tz: the IANA zone of the expressions, where they do not name it.
        start: nothing before this instant.
        end: nothing after this instant.
        jitter: each is fired up to this later, always by the same delay.
        gap: a local time that the clock jumps over: `end_of_gap` or `skip`.
        fold: a local time that comes twice: `first`, `second` or `both`.
    """

    rules: Rule | Sequence[Rule]
    exclude: Rule | Sequence[Rule] = field(default=(), kw_only=True)
    calendars: Mapping[str, Dates] = field(default_factory=dict, kw_only=True)
    tz: str | None = field(default=None, kw_only=True)
    start: datetime | None = field(default=None, kw_only=True)
    end: datetime | None = field(default=None, kw_only=True)
    jitter: str | float | timedelta = field(default=0, kw_only=True)
    gap: GapRule | str = field(default=GapRule.END_OF_GAP, kw_only=True)
    fold: FoldRule | str = field(default=FoldRule.FIRST, kw_only=True)


Timing: TypeAlias = Rule | Sequence[Rule] | When | ScheduleTiming
"""Whatever says when a schedule fires; a `ScheduleTiming` is taken as it is."""


def to_timing(when: Timing) -> ScheduleTiming:
    """The same as it is on the wire; what the rules mean is not checked here. Raises `InvalidScheduleError`."""
    if isinstance(when, ScheduleTiming):
        return when
    terms = when if isinstance(when, When) else When(when)
    rules, exclude = _several("rules", terms.rules), _several("exclude", terms.exclude)
    return ScheduleTiming(
        rules=tuple(_rule(f"rules[{at}]", rule) for at, rule in enumerate(rules)),
        exclude=tuple(_rule(f"exclude[{at}]", rule) for at, rule in enumerate(exclude)),
        calendars=tuple(
            NamedCalendar(name=name, dates=tuple(_day(f"calendars[{name!r}]", day) for day in days))
            for name, days in terms.calendars.items()
        ),
        timezone=_zone(terms.tz, (*rules, *exclude)),
        start_ms=None if terms.start is None else instant_ms("start", terms.start),
        end_ms=None if terms.end is None else instant_ms("end", terms.end),
        jitter_ms=duration_ms("jitter", terms.jitter),
        gap=named(GapRule, "gap", terms.gap),
        fold=named(FoldRule, "fold", terms.fold),
    )


def _several(name: str, rules: Any) -> tuple[Rule, ...]:
    if isinstance(rules, Every | Cron):
        return (rules,)
    if isinstance(rules, str) or not isinstance(rules, Sequence):
        raise refuse(name, f"must be Every(…), Cron(…), or several of them, not {rules!r}")
    return tuple(rules)


def _rule(name: str, rule: object) -> CronRule | IntervalRule:
    if isinstance(rule, Cron):
        return CronRule(expression=rule.expression, seconds=rule.seconds)
    if isinstance(rule, Every):
        return IntervalRule(
            every_ms=duration_ms(f"{name}.interval", rule.interval),
            anchor_ms=None if rule.anchor is None else instant_ms(f"{name}.anchor", rule.anchor),
            phase_ms=duration_ms(f"{name}.phase", rule.phase),
        )
    raise refuse(name, f"must be Every(…) or Cron(…), not {rule!r}")


def _zone(common: str | None, rules: tuple[Rule, ...]) -> str:
    zones = {rule.tz for rule in rules if isinstance(rule, Cron) and rule.tz is not None}
    if common is not None:
        zones.add(common)
    if len(zones) > 1:
        raise refuse("tz", f"must be the same for all rules of a schedule, not {', '.join(sorted(zones))}")
    return zones.pop() if zones else "UTC"


def _day(name: str, day: date | str) -> str:
    if isinstance(day, datetime) or not isinstance(day, date | str):
        raise refuse(name, f"must be dates, or texts like 2027-12-25, not {day!r}")
    return day if isinstance(day, str) else day.isoformat()
