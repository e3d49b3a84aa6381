"""Every so often: the nth time is computed, never accumulated. Nothing drifts, and a gap of years costs a division."""

from dataclasses import dataclass
from functools import lru_cache

from mainspring.processors.core.timing.zones import DAY_S
from mainspring.schemas.schedule import IntervalRule

__all__ = ["Interval"]

_MS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The grid `base_ms + n · every_ms` for every whole n, also before its base."""

    every_ms: int
    base_ms: int

    @staticmethod
    def of(rule: IntervalRule, created_ms: int) -> "Interval":
        """The grid of a rule; `created_ms` anchors it where the rule has no anchor."""
        anchor_ms = created_ms if rule.anchor_ms is None else rule.anchor_ms
        return Interval(every_ms=rule.every_ms, base_ms=anchor_ms + rule.phase_ms)

    def next_after(self, after_ms: int) -> int:
        """The first point of the grid that is strictly later."""
        return after_ms + self.every_ms - (after_ms - self.base_ms) % self.every_ms

    def latest(self, until_ms: int) -> int:
        """The last point of the grid that is not later."""
        return until_ms - (until_ms - self.base_ms) % self.every_ms

    def count(self, after_ms: int, until_ms: int) -> int:
        """How many points of the grid are in (after, until]."""
        if until_ms <= after_ms:
            return 0
        return (until_ms - self.base_ms) // self.every_ms - (after_ms - self.base_ms) // self.every_ms

    def __contains__(self, instant_ms: int) -> bool:
        return (instant_ms - self.base_ms) % self.every_ms == 0

    @property
    def fraction_ms(self) -> int:
        """What the points of a grid of whole seconds have beyond the second."""
        return self.base_ms % _MS

    def mask(self, start_s: int, length_s: int) -> int:
        """The points in a range as bits, one for each second; of a grid of whole seconds."""
        every_s = self.every_ms // _MS
        first = (self.base_ms // _MS - start_s) % every_s
        if first >= length_s:
            return 0
        return (_comb(every_s) << first) & ((1 << length_s) - 1)


@lru_cache(maxsize=64)
def _comb(every_s: int) -> int:
    """A bit at each multiple of `every_s` of a day, by doubling."""
    bits, width = 1, every_s
    while width < DAY_S:
        bits |= bits << width
        width *= 2
    return bits
