"""The next occurrences as people check them: in UTC and by the local clock, with what a clock change did to them."""

from dataclasses import dataclass
from datetime import timedelta, timezone
from enum import StrEnum

from mainspring.processors.core.timing.plan import Plan, plan_of
from mainspring.processors.core.timing.timing import Timing
from mainspring.schemas.epoch import instant_text, to_datetime
from mainspring.schemas.schedule import ScheduleTiming

__all__ = ["Preview", "PreviewMark", "preview"]


class PreviewMark(StrEnum):
    """What a change of the clock does to an occurrence."""

    NONE = ""
    GAP = "gap"
    """It stands for a local time that the clock jumps over."""
    FOLD = "fold"
    """Its local time comes twice; the offset tells which one it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """One occurrence to come."""

    nominal_ms: int
    fire_at_ms: int
    utc: str
    """The nominal instant, as in the id of its job."""
    local: str
    """The nominal instant by the schedule's zone, with the offset."""
    mark: PreviewMark
    excluded: int
    """How many occurrences exclusions took away since the one before (or since the instant that was asked for)."""


def preview(
    timing: ScheduleTiming, schedule_id: str, created_ms: int, after_ms: int, count: int
) -> tuple[Preview, ...]:
    """The next `count` occurrences strictly after an instant, fewer where the schedule ends.

    Instants are epoch milliseconds UTC. Raises as `Timing` does.
    """
    clock, plan = Timing(timing, schedule_id, created_ms), plan_of(timing, created_ms)
    found: list[Preview] = []
    while len(found) < count:
        occurrence = clock.next_after(after_ms)
        if occurrence is None:
            break
        nominal_ms = occurrence.nominal_ms
        found.append(
            Preview(
                nominal_ms=nominal_ms,
                fire_at_ms=occurrence.fire_at_ms,
                utc=instant_text(nominal_ms),
                local=_local(plan, nominal_ms),
                mark=_mark(plan, nominal_ms),
                excluded=plan.count_excluded(after_ms, nominal_ms),
            )
        )
        after_ms = nominal_ms
    return tuple(found)


def _mark(plan: Plan, nominal_ms: int) -> PreviewMark:
    if plan.is_mended(nominal_ms):
        return PreviewMark.GAP
    return PreviewMark.FOLD if plan.comes_twice(nominal_ms) else PreviewMark.NONE


def _local(plan: Plan, nominal_ms: int) -> str:
    offset = timezone(timedelta(seconds=plan.zone.offset_s(nominal_ms // 1_000)))
    instant = to_datetime(nominal_ms).astimezone(offset)
    return instant.isoformat(timespec="milliseconds" if nominal_ms % 1_000 else "seconds")
