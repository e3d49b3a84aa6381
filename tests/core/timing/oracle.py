"""What the rules of time are compared with: zones read another way, and a plain scan of every minute."""

import importlib.resources
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from zoneinfo import ZoneInfo

from mainspring.processors.core.timing import Timing, zone_names
from mainspring.schemas.epoch import instant_text
from mainspring.schemas.schedule import CronRule, FoldRule, GapRule, IntervalRule, ScheduleTiming

MINUTE = timedelta(minutes=1)
DAY_MS = 86_400_000
FIRST_MS, LAST_MS = 1_577_836_800_000, 1_924_992_000_000  # the years 2020 to 2030


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A zone moves its clock."""

    zone: str
    at: datetime


def ms(instant: str | datetime) -> int:
    """Epoch milliseconds of an instant."""
    at = datetime.fromisoformat(instant) if isinstance(instant, str) else instant
    assert at.tzinfo is not None
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def cron(
    expression: str,
    zone: str = "UTC",
    *,
    seconds: bool = False,
    gap: GapRule = GapRule.END_OF_GAP,
    fold: FoldRule = FoldRule.FIRST,
) -> ScheduleTiming:
    """A definition of one expression."""
    return ScheduleTiming(rules=(CronRule(expression=expression, seconds=seconds),), timezone=zone, gap=gap, fold=fold)


def every(every_ms: int, anchor_ms: int | None = None, phase_ms: int = 0) -> ScheduleTiming:
    """A definition of one interval."""
    return ScheduleTiming(rules=(IntervalRule(every_ms=every_ms, anchor_ms=anchor_ms, phase_ms=phase_ms),))


def next_texts(timing: ScheduleTiming, after: str, count: int, *, created_ms: int = 0) -> list[str]:
    """The next nominal instants, one by one."""
    clock, at_ms = Timing(timing, "s", created_ms), ms(after)
    found: list[str] = []
    while len(found) < count and (occurrence := clock.next_after(at_ms)) is not None:
        at_ms = occurrence.nominal_ms
        found.append(instant_text(at_ms))
    return found


def nominals(timing: ScheduleTiming, after_ms: int, until_ms: int) -> list[int]:
    """All nominal instants of a range."""
    return [each.nominal_ms for each in Timing(timing, "s", 0).between(after_ms, until_ms, 1_000_000).occurrences]


@cache
def zoneinfo_of(name: str) -> ZoneInfo:
    """The zone as zoneinfo has it, from the same database."""
    path = importlib.resources.files("tzdata.zoneinfo")
    with path.joinpath(*name.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


@cache
def distinct_zones() -> tuple[str, ...]:
    """One name of each zone that has rules of its own."""
    path = importlib.resources.files("tzdata.zoneinfo")
    by_rules = {sha256(path.joinpath(*name.split("/")).read_bytes()).digest(): name for name in sorted(zone_names())}
    return tuple(sorted(by_rules.values()))


@cache
def changes() -> tuple[Change, ...]:
    """Every change of a clock in the years 2020 to 2030, found by two days and then by the minute."""
    return tuple(change for zone in distinct_zones() for change in _changes_of(zone))


def _changes_of(zone: str) -> Iterator[Change]:
    info, step = zoneinfo_of(zone), timedelta(days=2)
    at, end = datetime.fromtimestamp(FIRST_MS / 1000, UTC), datetime.fromtimestamp(LAST_MS / 1000, UTC)
    offset = at.astimezone(info).utcoffset()
    while at < end:
        later = (at + step).astimezone(info).utcoffset()
        if later != offset:
            exact = at
            while exact.astimezone(info).utcoffset() == offset:
                exact += MINUTE
            yield Change(zone=zone, at=exact)
            offset = later
        at += step


@dataclass(frozen=True, slots=True, kw_only=True)
class Daily:
    """Minutes and hours that an expression matches every day, without any reading of expressions."""

    minutes: frozenset[int]
    hours: frozenset[int]
    minute_text: str
    hour_text: str

    @property
    def expression(self) -> str:
        return f"{self.minute_text} {self.hour_text} * * *"

    @property
    def follows_real_time(self) -> bool:
        return self.minute_text.startswith("*") or self.hour_text.startswith("*")

    def matches(self, local: datetime) -> bool:
        return local.minute in self.minutes and local.hour in self.hours


def scan(daily: Daily, zone: str, after: datetime, until: datetime, gap: GapRule, fold: FoldRule) -> list[int]:
    """What fires in (after, until], minute by minute."""
    info, found, at = zoneinfo_of(zone), [], after
    due = after.astimezone(info).replace(tzinfo=None, fold=0) + MINUTE
    while (at := at + MINUTE) <= until:
        local = at.astimezone(info)
        wall = local.replace(tzinfo=None, fold=0)
        if _fires(daily, wall, local.fold, info, fold) or (gap is GapRule.END_OF_GAP and _missed(daily, due, wall)):
            found.append(ms(at))
        due = wall + MINUTE
    return found


def _missed(daily: Daily, due: datetime, wall: datetime) -> bool:
    """Whether the clock jumped from `due` to `wall` over a time of the day."""
    while due < wall:
        if daily.matches(due) and not daily.follows_real_time:
            return True
        due += MINUTE
    return False


def _fires(daily: Daily, wall: datetime, which: int, info: ZoneInfo, fold: FoldRule) -> bool:
    if not daily.matches(wall) or daily.follows_real_time:
        return daily.matches(wall)
    comes_twice = wall.replace(tzinfo=info).utcoffset() != wall.replace(tzinfo=info, fold=1).utcoffset()
    return not comes_twice or fold is FoldRule.BOTH or which == (fold is FoldRule.SECOND)
