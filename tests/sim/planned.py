"""When the schedules of the simulation are to fire, by brute force: multiples, and each minute as zoneinfo reads it."""

from collections.abc import Iterable
from datetime import timedelta
from functools import lru_cache
from typing import Final

from mainspring.schemas import CronRule, FoldRule, GapRule, IntervalRule, ScheduleTiming
from mainspring.schemas.epoch import to_datetime
from tests.core.timing.oracle import Daily, scan
from tests.support.chronos import multiples

__all__ = ["EXPRESSIONS", "TIMES_OF_DAY", "planned"]

_HOUR_MS: Final = 3_600_000
_HOUR: Final = timedelta(hours=1)
_MINUTE: Final = timedelta(minutes=1)
_EVERY_HOUR: Final = frozenset(range(24))

EXPRESSIONS: Final = {
    each.expression: each
    for each in (
        Daily(minutes=frozenset(range(60)), hours=_EVERY_HOUR, minute_text="*", hour_text="*"),
        Daily(minutes=frozenset(range(0, 60, 2)), hours=_EVERY_HOUR, minute_text="*/2", hour_text="*"),
        Daily(minutes=frozenset(range(60)), hours=frozenset({0, 1, 2, 3}), minute_text="*", hour_text="0-3"),
        # Times of the day, some of which a change of the clock leaves out or brings twice.
        Daily(
            minutes=frozenset({1, 10, 30, 50, 55}),
            hours=frozenset({1, 2, 3, 17, 18}),
            minute_text="1,10,30,50,55",
            hour_text="1-3,17,18",
        ),
        Daily(minutes=frozenset({5, 20}), hours=_EVERY_HOUR, minute_text="5,20", hour_text="0-23"),
    )
}
"""The expressions that occur, with what they mean, so that nothing here reads one."""

TIMES_OF_DAY: Final = tuple(text for text, each in EXPRESSIONS.items() if not each.follows_real_time)
"""Those that a change of the clock leaves out or brings twice; none of them has the full hour."""


def planned(timing: ScheduleTiming, created_ms: int, after_ms: int, until_ms: int) -> list[int]:
    """All nominal times in (after, until], in order, epoch milliseconds."""
    if timing.start_ms is not None:
        after_ms = max(after_ms, timing.start_ms - 1)
    if timing.end_ms is not None:
        until_ms = min(until_ms, timing.end_ms)
    if after_ms >= until_ms:
        return []
    found = _of(timing.rules, timing, created_ms, after_ms, until_ms)
    return sorted(found - _of(timing.exclude, timing, created_ms, after_ms, until_ms))


def _of(
    rules: Iterable[CronRule | IntervalRule], timing: ScheduleTiming, created_ms: int, after_ms: int, until_ms: int
) -> set[int]:
    found: set[int] = set()
    for rule in rules:
        if isinstance(rule, IntervalRule):
            anchor_ms = created_ms if rule.anchor_ms is None else rule.anchor_ms
            found.update(multiples(rule.every_ms, anchor_ms + rule.phase_ms, after_ms, until_ms))
            continue
        for hour in range(after_ms // _HOUR_MS, until_ms // _HOUR_MS + 1):
            times = _scanned(rule.expression, timing.timezone, timing.gap, timing.fold, hour)
            found.update(each for each in times if after_ms < each <= until_ms)
    return found


@lru_cache(maxsize=10_000)
def _scanned(expression: str, zone: str, gap: GapRule, fold: FoldRule, hour: int) -> tuple[int, ...]:
    """In one hour: from its beginning on, and before its end."""
    after = to_datetime(hour * _HOUR_MS)
    return tuple(scan(EXPRESSIONS[expression], zone, after - _MINUTE, after + _HOUR - _MINUTE, gap, fold))
