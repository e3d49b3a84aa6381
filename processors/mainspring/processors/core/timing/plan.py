"""The rules of a schedule together: their union, minus what is excluded, between start and end."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from mainspring.processors.core.timing.blocks import Block, block_at, blocks
from mainspring.processors.core.timing.bounds import (
    COUNTED_RULE_DAYS_MAX,
    EXCLUDED_DAYS_MAX,
    EXCLUDED_SPAN_MAX_MS,
    SEARCH_WORK_MAX,
)
from mainspring.processors.core.timing.cron import compile_cron
from mainspring.processors.core.timing.exclusions import Exclusions
from mainspring.processors.core.timing.firing import CronFiring, Firing, IntervalFiring
from mainspring.processors.core.timing.intervals import Interval
from mainspring.processors.core.timing.zones import END_S, Zone, zone_named
from mainspring.schemas.schedule import CronRule, IntervalRule, ScheduleTiming

__all__ = ["Plan", "plan_of"]

_MS: Final = 1_000
_LAST_MS: Final = END_S * _MS - 1
_WORKED_OUT: Final = 8
"""What a day counts as that has to be worked out: `SEARCH_WORK_MAX`."""
_DAY_KEYS_KEPT: Final = 1_024


class Plan:
    """Nominal instants of one definition, in epoch milliseconds UTC; all methods agree with each other."""

    def __init__(self, timing: ScheduleTiming, created_ms: int) -> None:
        self.zone: Zone = zone_named(timing.timezone)
        self._crons = [
            CronFiring(compile_cron(rule.expression, seconds=rule.seconds), self.zone, timing.gap, timing.fold)
            for rule in timing.rules
            if isinstance(rule, CronRule)
        ]
        intervals = [Interval.of(rule, created_ms) for rule in timing.rules if isinstance(rule, IntervalRule)]
        self._firings: tuple[Firing, ...] = (*self._crons, *map(IntervalFiring, intervals))
        self._exclusions = Exclusions(timing, created_ms, self.zone)
        self._first_ms = 0 if timing.start_ms is None else timing.start_ms
        self._last_ms = _LAST_MS if timing.end_ms is None else min(timing.end_ms, _LAST_MS)
        is_lone = len(self._firings) == 1 and self._exclusions.is_empty
        self._only = intervals[0] if intervals and is_lone else None
        self._days_repeat = not intervals and not self._exclusions.has_intervals
        self._rule_count = len(timing.rules) + len(timing.exclude)
        self._by_day_key: dict[tuple[bool, ...], int] = {}

    def next_after(self, after_ms: int) -> int | None:
        """The first instant that is strictly later; None where none will come, or none within a bounded search."""
        now_ms = max(after_ms, self._first_ms - 1)
        until_ms = now_ms + EXCLUDED_SPAN_MAX_MS
        days = work = 0
        while now_ms <= until_ms and days < EXCLUDED_DAYS_MAX and work < SEARCH_WORK_MAX:
            found = self._next_planned(now_ms)
            if found is None or found > self._last_ms or not self._exclusions.takes(found):
                return None if found is None or found > self._last_ms else found
            block = block_at(self.zone, found // _MS)
            now_ms = block.end_s * _MS - 1
            is_empty = self._is_known_empty(block)
            if not is_empty:
                left = _first(block, self._work_out(block), found, min(now_ms, self._last_ms))
                if left is not None:
                    return left
            days, work = days + 1, work + self._rule_count * (1 if is_empty else _WORKED_OUT)
        return None

    def _is_known_empty(self, block: Block) -> bool:
        """Whether nothing is left of a day, as far as that can be told without working it out."""
        if self._exclusions.takes_day(block.day):
            return True
        return self._repeats(block) and self._by_day_key.get(self._day_key(block.day)) == 0

    def _work_out(self, block: Block) -> dict[int, int]:
        """What is left of a block; how much of a day that repeats is remembered."""
        left = self._left(block)
        if self._repeats(block):
            if len(self._by_day_key) >= _DAY_KEYS_KEPT:
                self._by_day_key.clear()
            self._by_day_key[self._day_key(block.day)] = sum(mask.bit_count() for mask in left.values())
        return left

    def _repeats(self, block: Block) -> bool:
        return self._days_repeat and block.is_ordinary

    def _day_key(self, day: int) -> tuple[bool, ...]:
        """What a whole ordinary day depends on, where days repeat: equal keys, equal days."""
        return (*(cron.matches_day(day) for cron in self._crons), *self._exclusions.day_key(day))

    def span(self, after_ms: int, until_ms: int) -> tuple[int | None, int]:
        """The last instant in (after, until], and how many there are: by division, or by day."""
        after_ms, until_ms = self._clamped(after_ms, until_ms)
        if until_ms <= after_ms:
            return None, 0
        if self._only is not None:
            count = self._only.count(after_ms, until_ms)
            return (self._only.latest(until_ms) if count else None), count
        count = self._count(after_ms, until_ms)
        return (self._last(after_ms, until_ms) if count else None), count

    def days_countable(self) -> int | None:
        """How many days a range may have so that `span` takes a bounded time; None: as many as anybody asks for."""
        if self._only is not None or self._days_repeat:
            return None
        return COUNTED_RULE_DAYS_MAX // self._rule_count

    def count_excluded(self, after_ms: int, until_ms: int) -> int:
        """How many instants in (after, until] the exclusions take away."""
        after_ms, until_ms = self._clamped(after_ms, until_ms)
        if self._exclusions.is_empty or until_ms <= after_ms:
            return 0
        total = 0
        for block in blocks(self.zone, (after_ms + 1) // _MS, until_ms // _MS):
            planned = self._planned(block)
            if any(planned.values()):
                left = self._exclusions.left(block, planned)
                total += _count(block, planned, after_ms, until_ms) - _count(block, left, after_ms, until_ms)
        return total

    def is_mended(self, instant_ms: int) -> bool:
        """Whether an instant stands for times that the clock jumped over."""
        second = instant_ms // _MS
        segment = self.zone.segment_at(second)
        return instant_ms == segment.start_s * _MS and any(cron.fires_behind_gap(segment) for cron in self._crons)

    def comes_twice(self, instant_ms: int) -> bool:
        """Whether the local time of an instant comes twice."""
        second = instant_ms // _MS
        segment = self.zone.segment_at(second)
        return not segment.seen_until_s <= second + segment.offset_s < segment.again_from_s

    def _clamped(self, after_ms: int, until_ms: int) -> tuple[int, int]:
        return max(after_ms, self._first_ms - 1), min(until_ms, self._last_ms)

    def _next_planned(self, after_ms: int) -> int | None:
        found = (firing.next_after(after_ms) for firing in self._firings)
        return min((each for each in found if each is not None), default=None)

    def _planned(self, block: Block) -> dict[int, int]:
        union: dict[int, int] = {}
        for firing in self._firings:
            for fraction, mask in firing.masks(block).items():
                union[fraction] = union.get(fraction, 0) | mask
        return union

    def _left(self, block: Block) -> dict[int, int]:
        return self._exclusions.left(block, self._planned(block))

    def _count(self, after_ms: int, until_ms: int) -> int:
        total = 0
        for block in blocks(self.zone, (after_ms + 1) // _MS, until_ms // _MS):
            is_inside = after_ms < block.start_s * _MS and block.end_s * _MS <= until_ms
            if is_inside and self._repeats(block):
                key = self._day_key(block.day)
                if key not in self._by_day_key:
                    self._work_out(block)
                total += self._by_day_key[key]
            else:
                total += _count(block, self._left(block), after_ms, until_ms)
        return total

    def _last(self, after_ms: int, until_ms: int) -> int | None:
        end_ms = until_ms
        while end_ms > after_ms:
            block = block_at(self.zone, end_ms // _MS)
            last = max(
                (
                    (block.midnight_s + mask.bit_length() - 1) * _MS + fraction
                    for fraction, mask in _within(block, self._left(block), after_ms, end_ms)
                    if mask
                ),
                default=None,
            )
            if last is not None:
                return last
            end_ms = block.start_s * _MS - 1
        return None


@lru_cache(maxsize=1024)
def _plan(timing: ScheduleTiming, created_ms: int) -> Plan:
    return Plan(timing, created_ms)


def plan_of(timing: ScheduleTiming, created_ms: int) -> Plan:
    """The plan of a definition, kept for the next that is equal. Raises CronError and UnknownZoneError."""
    rules = (*timing.rules, *timing.exclude)
    is_anchored = all(isinstance(rule, CronRule) or rule.anchor_ms is not None for rule in rules)
    return _plan(timing, 0 if is_anchored else created_ms)


def _within(block: Block, masks: dict[int, int], after_ms: int, until_ms: int) -> Iterator[tuple[int, int]]:
    """The bits of the instants in (after, until]."""
    for fraction, mask in masks.items():
        first_s = -(-(after_ms + 1 - fraction) // _MS)
        end_s = (until_ms - fraction) // _MS + 1
        yield fraction, mask & block.between(first_s, end_s)


def _count(block: Block, masks: dict[int, int], after_ms: int, until_ms: int) -> int:
    return sum(mask.bit_count() for _, mask in _within(block, masks, after_ms, until_ms))


def _first(block: Block, masks: dict[int, int], after_ms: int, until_ms: int) -> int | None:
    return min(
        (
            (block.midnight_s + (mask & -mask).bit_length() - 1) * _MS + fraction
            for fraction, mask in _within(block, masks, after_ms, until_ms)
            if mask
        ),
        default=None,
    )
