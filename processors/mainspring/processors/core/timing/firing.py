"""Where a rule fires in absolute time: local times of an expression through the gaps and folds of a zone."""

from typing import Final, Protocol

from mainspring.processors.core.timing.blocks import Block
from mainspring.processors.core.timing.bounds import SKIPPED_STRETCHES_MAX
from mainspring.processors.core.timing.cron import Cron
from mainspring.processors.core.timing.intervals import Interval
from mainspring.processors.core.timing.zones import DAY_S, END_S, Segment, Zone
from mainspring.schemas.schedule import FoldRule, GapRule

__all__ = ["CronFiring", "Firing", "IntervalFiring"]

_MS: Final = 1_000


class Firing(Protocol):
    """One rule in absolute time."""

    def next_after(self, after_ms: int) -> int | None:
        """The first instant that is strictly later; None where none will come, or none within a bounded search."""

    def masks(self, block: Block) -> dict[int, int]:
        """The instants in a block as bits of the local day's seconds, by their milliseconds beyond the second."""


class IntervalFiring:
    """An interval; no clock change concerns it."""

    def __init__(self, interval: Interval) -> None:
        self._interval = interval

    def next_after(self, after_ms: int) -> int | None:
        found = self._interval.next_after(after_ms)
        return found if found < END_S * _MS else None

    def masks(self, block: Block) -> dict[int, int]:
        mask = self._interval.mask(block.start_s, block.end_s - block.start_s)
        return {self._interval.fraction_ms: mask << block.first_bit}


class CronFiring:
    """An expression in a zone.

    One whose minute or hour begins with a star follows real time: it fires at every instant whose local time matches.
    Any other means times of the day: each fires once, whatever the clock does, by the two rules.
    """

    def __init__(self, cron: Cron, zone: Zone, gap: GapRule, fold: FoldRule) -> None:
        self._cron = cron
        self._zone = zone
        self._mends_gaps = gap is GapRule.END_OF_GAP and not cron.follows_real_time
        self._skips_second = fold is FoldRule.FIRST and not cron.follows_real_time
        self._skips_first = fold is FoldRule.SECOND and not cron.follows_real_time

    def next_after(self, after_ms: int) -> int | None:
        now_s = after_ms // _MS + 1
        for _ in range(SKIPPED_STRETCHES_MAX):
            if now_s >= END_S:
                break
            segment = self._zone.segment_at(now_s)
            if now_s == segment.start_s and self.fires_behind_gap(segment):
                return now_s * _MS
            first, end = self._window(segment)
            local_s = now_s + segment.offset_s
            found = self._cron.next_local(max(local_s, first))
            if found is not None and found < end:
                return (found - segment.offset_s) * _MS
            if segment.again_from_s < local_s:
                # Times before this one, which match perhaps, come again.
                now_s = segment.end_s
            elif found is None:
                return None
            else:
                # It may fire earlier or later than by this offset, by two days at most.
                now_s = max(segment.end_s, found - segment.offset_s - 2 * DAY_S)
        return None

    def masks(self, block: Block) -> dict[int, int]:
        first, end = self._window(block.segment)
        mask = 0
        if self._cron.matches_day(block.day):
            mask = self._cron.mask() & block.window(first, end)
        if block.start_s == block.segment.start_s and self.fires_behind_gap(block.segment):
            mask |= 1 << block.first_bit
        return {0: mask}

    def matches_day(self, day: int) -> bool:
        """Whether the expression matches a local day."""
        return self._cron.matches_day(day)

    def fires_behind_gap(self, segment: Segment) -> bool:
        """Whether times of the day that the clock jumped over are made up for at the beginning of the stretch."""
        if not (self._mends_gaps and segment.has_gap):
            return False
        missed = self._cron.next_local(segment.seen_until_s)
        return missed is not None and missed < segment.local_start_s

    def _window(self, segment: Segment) -> tuple[int, int]:
        """The local times of the stretch, from and up to, that are fired at."""
        first = max(segment.local_start_s, segment.seen_until_s) if self._skips_second else segment.local_start_s
        end = min(segment.local_end_s, segment.again_from_s) if self._skips_first else segment.local_end_s
        return first, end
