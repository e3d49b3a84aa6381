"""A clock that was ahead: what it fired stays fired, and the other times behind the cursor are open again.

All of it from the row alone, so that the scheduler, the auditor and the view agree.
"""

from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter
from typing import Final

from mainspring.processors.core.timing import Occurrence, Occurrences, Timing
from mainspring.schemas.bounds import FIRED_RUNS_MAX
from mainspring.schemas.schedule import ScheduleStatus
from mainspring.schemas.tables import FiredRun, ScheduleState

__all__ = ["REWIND_MIN_MS", "OpenTimes", "fired_behind", "open_times", "rewind_to_ms"]

REWIND_MIN_MS: Final = 10_000
"""A cursor may be ahead of the clock by this: clocks of machines that keep time differ by less."""


class OpenTimes:
    """The occurrences of a definition without those that a clock which was ahead has fired. As `Timing`."""

    __slots__ = ("_ahead", "_timing")

    def __init__(self, timing: Timing, ahead: tuple[FiredRun, ...]) -> None:
        """`ahead`: in order, and none within another."""
        self._timing = timing
        self._ahead = ahead

    def next_after(self, after_ms: int) -> Occurrence | None:
        """The first that is nominally strictly later; None: there will never be one again."""
        found = self._timing.next_after(after_ms)
        for run in self._ahead:
            if found is None or found.nominal_ms < run.first_ms:
                break
            if found.nominal_ms <= run.last_ms:
                found = self._timing.next_after(run.last_ms)
        return found

    def between(self, after_ms: int, until_ms: int, limit: int) -> Occurrences:
        """The first `limit` in (after, until], oldest first."""
        found: list[Occurrence] = []
        has_more = False
        for first_ms, last_ms in self._gaps(after_ms, until_ms):
            some = self._timing.between(first_ms, last_ms, limit - len(found))
            found += some.occurrences
            has_more = has_more or some.has_more
        return Occurrences(occurrences=tuple(found), has_more=has_more)

    def latest(self, after_ms: int, until_ms: int) -> tuple[Occurrence | None, int]:
        """The last in (after, until], and how many there are before it in the range."""
        latest: Occurrence | None = None
        count = 0
        for first_ms, last_ms in self._gaps(after_ms, until_ms):
            last, before = self._timing.latest(first_ms, last_ms)
            if last is not None:
                latest, count = last, count + before + 1
        return latest, max(0, count - 1)

    def _gaps(self, after_ms: int, until_ms: int) -> Iterator[tuple[int, int]]:
        """The ranges (after, until] that are left between the runs."""
        for run in self._ahead:
            if run.first_ms > until_ms:
                break
            if run.first_ms - 1 > after_ms:
                yield after_ms, run.first_ms - 1
            after_ms = max(after_ms, run.last_ms)
        if after_ms < until_ms:
            yield after_ms, until_ms


def open_times(timing: Timing, ahead: tuple[FiredRun, ...]) -> Timing | OpenTimes:
    """The occurrences that have, or had, no outcome before their time."""
    return OpenTimes(timing, ahead) if ahead else timing


def fired_behind(state: ScheduleState, to_ms: int) -> tuple[FiredRun, ...]:
    """What was fired and ends behind `to_ms`, in order, runs that overlap as one.

    Runs of former versions count as a whole: in between, the present version was not in force when it mattered.
    """
    behind = [run for run in (*state.fired_runs, *state.ahead) if run.last_ms > to_ms]
    merged: list[FiredRun] = []
    for run in sorted(behind, key=attrgetter("first_ms", "last_ms", "version")):
        if merged and run.first_ms <= merged[-1].last_ms:
            former = merged.pop()
            merged.append(replace(former, last_ms=max(former.last_ms, run.last_ms)))
        else:
            merged.append(run)
    return tuple(merged)


def rewind_to_ms(state: ScheduleState, now_ms: int) -> int | None:
    """Where the cursor belongs when the clock shows `now_ms`; None: where it is.

    The present, and never before what is no longer remembered.
    """
    if state.status is not ScheduleStatus.ACTIVE or state.cursor_ms - now_ms <= REWIND_MIN_MS:
        return None
    to_ms = max(now_ms, state.forgotten_ms)
    behind = fired_behind(state, to_ms)
    if len(behind) > FIRED_RUNS_MAX:
        to_ms = behind[-FIRED_RUNS_MAX - 1].last_ms
    return to_ms if state.cursor_ms - to_ms > REWIND_MIN_MS else None
