"""When a schedule fires: its occurrences, each with its nominal instant and the instant it is fired at."""

from dataclasses import dataclass

from mainspring.processors.core.timing.plan import Plan, plan_of
from mainspring.processors.core.timing.words import describe
from mainspring.schemas.epoch import instant_text
from mainspring.schemas.schedule import ScheduleTiming
from mainspring.schemas.spread import spread_over

__all__ = ["Occurrence", "Occurrences", "Timing", "occurrence_id"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One planned time of a schedule, in epoch milliseconds UTC."""

    nominal_ms: int
    """As the rules say; it names the occurrence."""
    fire_at_ms: int
    """With the jitter: not before the nominal instant, before the next one, and not after the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrences:
    """Those of a range, oldest first, as far as they were asked for."""

    occurrences: tuple[Occurrence, ...]
    has_more: bool
    """Whether the range has more of them."""


class Timing:
    """The occurrences of one definition, which `check_timing` has passed.

    Pure: equal arguments give equal occurrences in every process with the same `tzdata_version()`. All instants are
    epoch milliseconds UTC. `created_ms` anchors intervals that have no anchor. Raises CronError or UnknownZoneError for
    a definition that does not pass here, such as a zone that only a newer tz database knows.
    """

    __slots__ = ("_plan", "_schedule_id", "_timing")

    def __init__(self, timing: ScheduleTiming, schedule_id: str, created_ms: int) -> None:
        self._timing = timing
        self._schedule_id = schedule_id
        self._plan: Plan = plan_of(timing, created_ms)

    def next_after(self, after_ms: int) -> Occurrence | None:
        """The first occurrence that is nominally strictly later; None: there will never be one again."""
        nominal_ms = self._plan.next_after(after_ms)
        return None if nominal_ms is None else self._occurrence(nominal_ms)

    def between(self, after_ms: int, until_ms: int, limit: int) -> Occurrences:
        """The first `limit` occurrences in (after, until] by their nominal instants, oldest first."""
        found: list[Occurrence] = []
        nominal_ms = self._plan.next_after(after_ms)
        while nominal_ms is not None and nominal_ms <= until_ms:
            if len(found) >= limit:
                return Occurrences(occurrences=tuple(found), has_more=True)
            next_ms = self._plan.next_after(nominal_ms)
            found.append(self._jittered(nominal_ms, next_ms))
            nominal_ms = next_ms
        return Occurrences(occurrences=tuple(found), has_more=False)

    def latest(self, after_ms: int, until_ms: int) -> tuple[Occurrence | None, int]:
        """The last occurrence in (after, until], and how many there are before it in the range.

        A lone interval costs a division, anything else some microseconds for each day of the range.
        """
        nominal_ms, count = self._plan.span(after_ms, until_ms)
        return (None, 0) if nominal_ms is None else (self._occurrence(nominal_ms), count - 1)

    def days_countable(self) -> int | None:
        """How many days a range may have so that `latest` takes a bounded time; None: as many as anybody asks for."""
        return self._plan.days_countable()

    def describe(self) -> str:
        """The rules in words: `At 02:30, Monday to Friday, Europe/Berlin`."""
        return describe(self._timing)

    def _occurrence(self, nominal_ms: int) -> Occurrence:
        next_ms = self._plan.next_after(nominal_ms) if self._timing.jitter_ms else None
        return self._jittered(nominal_ms, next_ms)

    def _jittered(self, nominal_ms: int, next_ms: int | None) -> Occurrence:
        room_ms = self._timing.jitter_ms
        if next_ms is not None:
            room_ms = min(room_ms, next_ms - nominal_ms)
        if self._timing.end_ms is not None:
            room_ms = min(room_ms, self._timing.end_ms + 1 - nominal_ms)
        fire_at_ms = nominal_ms + spread_over(f"{self._schedule_id}@{nominal_ms}", room_ms)
        return Occurrence(nominal_ms=nominal_ms, fire_at_ms=fire_at_ms)


def occurrence_id(schedule_id: str, nominal_ms: int) -> str:
    """The id of the job that an occurrence fires: `backup@2026-12-24T01:30:00Z`, with milliseconds if there are any."""
    return f"{schedule_id}@{instant_text(nominal_ms)}"
