"""Time zones as stretches of constant offset, from the tz database of the `tzdata` package.

The package and not the machine's own zone files: every process of a release then has the same rules, and their
version can be recorded with what followed from them. Times are whole seconds: `utc` since the epoch, `local` the same
plus the offset, so that a local day begins at a multiple of 86,400.
"""

import difflib
import importlib.resources
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Final
from zoneinfo import ZoneInfo

import tzdata

from mainspring.schemas.epoch import EPOCH

__all__ = ["DAY_S", "END_S", "Segment", "UnknownZoneError", "Zone", "tzdata_version", "zone_named", "zone_names"]

DAY_S: Final = 86_400
END_S: Final = 253_370_764_800
"""Begin of the year 9999, UTC: nothing fires from here on, so that every local time is one that a datetime can hold."""

# Offsets change at most once in this: the tests compare with every change in the database.
_PROBE_S: Final = 2 * DAY_S
# Beyond both ends of a year, for changes at its turn: no clock was ever moved by more than a day.
_MARGIN_S: Final = 2 * DAY_S
_YEARS_KEPT: Final = 256


class UnknownZoneError(ValueError):
    """The tz database has no zone of this name."""

    def __init__(self, name: str) -> None:
        self.name = name
        by_lower = {each.lower(): each for each in zone_names()}
        near = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.75)
        alike = " or ".join(by_lower[each] for each in near)
        hint = f"did you mean {alike}?" if near else "write it like Europe/Berlin"
        super().__init__(f"is no zone of the tz database {tzdata_version()}: {name!r}; {hint}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of time in which the offset does not change; cut at the turn of each UTC year, too."""

    start_s: int
    """UTC, first second of it."""
    end_s: int
    """UTC, first second after it."""
    offset_s: int
    """Local minus UTC."""
    seen_until_s: int
    """Local: where earlier stretches end. After `local_start_s`: times up to here come for the second time; before it:
    times from here to there do not exist."""
    again_from_s: int
    """Local: from here on, times will come again in a later stretch."""

    @property
    def local_start_s(self) -> int:
        """Local time of its first second."""
        return self.start_s + self.offset_s

    @property
    def local_end_s(self) -> int:
        """Local time of the first second after it, by its own offset."""
        return self.end_s + self.offset_s

    @property
    def has_gap(self) -> bool:
        """Whether the clock jumped forward to its beginning."""
        return self.seen_until_s < self.local_start_s


class Zone:
    """A zone's stretches of constant offset, worked out year by year as they are asked for."""

    def __init__(self, info: ZoneInfo) -> None:
        self._info = info
        self._years: dict[int, tuple[list[int], list[Segment]]] = {}
        fixed = info.utcoffset(None)
        self._fixed_s = None if fixed is None else _seconds(fixed)

    @property
    def name(self) -> str:
        """As in the tz database."""
        return self._info.key

    def offset_s(self, utc_s: int) -> int:
        """Local minus UTC at an instant."""
        if self._fixed_s is not None:
            return self._fixed_s
        offset = (EPOCH + timedelta(seconds=utc_s)).astimezone(self._info).utcoffset()
        assert offset is not None, "a zone of the tz database has an offset at any time"
        return _seconds(offset)

    def segment_at(self, utc_s: int) -> Segment:
        """The stretch that an instant from 1970 to END_S lies in."""
        year = (EPOCH + timedelta(seconds=utc_s)).year
        table = self._years.get(year)
        if table is None:
            if len(self._years) >= _YEARS_KEPT:
                self._years.clear()
            segments = self._segments(year)
            table = self._years[year] = ([segment.start_s for segment in segments], segments)
        starts, segments = table
        return segments[bisect_right(starts, utc_s) - 1]

    def _segments(self, year: int) -> list[Segment]:
        start_s, end_s = _year_start_s(year), _year_start_s(year + 1)
        first_s, last_s = start_s - _MARGIN_S, end_s + _MARGIN_S
        cuts = sorted({first_s, start_s, *self._changes(first_s, last_s), end_s, last_s})
        stretches = [(begin, end, self.offset_s(begin)) for begin, end in pairwise(cuts)]
        local_ends = list(accumulate((end + offset for _, end, offset in stretches), max))
        local_starts = list(accumulate((begin + offset for begin, _, offset in reversed(stretches)), min))[::-1]
        return [
            Segment(
                start_s=begin,
                end_s=end,
                offset_s=offset,
                seen_until_s=local_ends[at - 1],
                again_from_s=min(local_starts[at + 1], end + offset),
            )
            for at, (begin, end, offset) in enumerate(stretches)
            if start_s <= begin < end_s
        ]

    def _changes(self, from_s: int, until_s: int) -> list[int]:
        """The instants in a range at which the offset changes."""
        if self._fixed_s is not None:
            return []
        probes = [*range(from_s, until_s, _PROBE_S), until_s]
        offsets = [self.offset_s(probe) for probe in probes]
        return [
            self._change(left, right)
            for (left, right), (before, after) in zip(pairwise(probes), pairwise(offsets), strict=True)
            if before != after
        ]

    def _change(self, left_s: int, right_s: int) -> int:
        """The first second of the new offset, by bisection between one of the old and one of the new."""
        old = self.offset_s(left_s)
        while right_s - left_s > 1:
            middle = (left_s + right_s) // 2
            if self.offset_s(middle) == old:
                left_s = middle
            else:
                right_s = middle
        return right_s


@lru_cache(maxsize=1024)
def zone_named(name: str) -> Zone:
    """The zone of an IANA name, such as `Europe/Berlin`. Raises UnknownZoneError."""
    if name not in zone_names():
        raise UnknownZoneError(name)
    package, _, file = f"tzdata.zoneinfo/{name}".rpartition("/")
    with importlib.resources.files(package.replace("/", ".")).joinpath(file).open("rb") as data:
        return Zone(ZoneInfo.from_file(data, key=name))


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """The names of all zones, spelled as the tz database does."""
    return frozenset(importlib.resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


def tzdata_version() -> str:
    """The release of the tz database in use, such as `2026f`."""
    return tzdata.IANA_VERSION


def _year_start_s(year: int) -> int:
    return _seconds(datetime(year, 1, 1, tzinfo=UTC) - EPOCH)


def _seconds(delta: timedelta) -> int:
    return delta.days * DAY_S + delta.seconds
