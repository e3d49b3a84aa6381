"""Local days, or the parts of them between two changes of the clock, in which instants are bits of an integer.

Unions, exclusions and counts over days are then a few operations on integers, whatever fires in them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from mainspring.processors.core.timing.zones import DAY_S, Segment, Zone

__all__ = ["Block", "block_at", "blocks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A local day, cut where the offset changes. Bit n of a mask is second n of the local day."""

    segment: Segment
    day: int
    """Local, since 1970-01-01."""
    start_s: int
    """UTC, first second of it."""
    end_s: int
    """UTC, first second after it."""

    @property
    def midnight_s(self) -> int:
        """UTC instant of bit 0."""
        return self.day * DAY_S - self.segment.offset_s

    @property
    def first_bit(self) -> int:
        """Bit of its first second."""
        return self.start_s - self.midnight_s

    @property
    def is_ordinary(self) -> bool:
        """A whole day in which the clock runs on as everywhere else."""
        first_s, segment = self.day * DAY_S, self.segment
        return (
            self.end_s - self.start_s == DAY_S
            and segment.seen_until_s <= first_s
            and first_s + DAY_S <= segment.again_from_s
            and not (segment.has_gap and first_s == segment.local_start_s)
        )

    def window(self, first_s: int, end_s: int) -> int:
        """The bits of the local times from `first_s` up to `end_s`, as far as they are in the block."""
        low = max(first_s - self.day * DAY_S, self.first_bit)
        high = min(end_s - self.day * DAY_S, self.end_s - self.midnight_s)
        return ones(low, high)

    def between(self, first_utc_s: int, end_utc_s: int) -> int:
        """The bits of the UTC instants from `first_utc_s` up to `end_utc_s`, as far as they are in the block."""
        midnight = self.midnight_s
        return ones(max(first_utc_s, self.start_s) - midnight, min(end_utc_s, self.end_s) - midnight)


def block_at(zone: Zone, utc_s: int) -> Block:
    """The block that an instant lies in."""
    segment = zone.segment_at(utc_s)
    day = (utc_s + segment.offset_s) // DAY_S
    midnight = day * DAY_S - segment.offset_s
    return Block(
        segment=segment, day=day, start_s=max(segment.start_s, midnight), end_s=min(segment.end_s, midnight + DAY_S)
    )


def blocks(zone: Zone, first_s: int, last_s: int) -> Iterator[Block]:
    """The blocks of the instants from `first_s` to `last_s`, both included."""
    while first_s <= last_s:
        block = block_at(zone, first_s)
        yield block
        first_s = block.end_s


def ones(low: int, high: int) -> int:
    """Bits `low` up to `high`."""
    return ((1 << high - low) - 1) << low if high > low else 0
