"""For what a job waits: an instant of the wall clock, or a delay, which a clock that is set back must not stretch."""

from typing import Final

from mainspring.schemas.tables import JobState

__all__ = ["is_due", "is_parked", "waits_until_ms"]

_AT_ONCE: Final = 0
"""Before every present."""


def waits_until_ms(state: JobState) -> int:
    """Until when a job waits that is neither offered nor running nor ended, epoch milliseconds; in the past: no more.

    From the row alone. What waits for no delay is due whatever the clock says.
    """
    due_at_ms = _AT_ONCE if state.delay_ms == 0 else state.due_at_ms
    parked_until_ms = state.dispatch.parked_until_ms
    return due_at_ms if parked_until_ms is None or parked_until_ms < due_at_ms else parked_until_ms


def is_due(state: JobState, now_ms: int) -> bool:
    """Whether the job may start, as far as its time is concerned."""
    return state.delay_ms == 0 or state.due_at_ms <= now_ms


def is_parked(state: JobState, now_ms: int) -> bool:
    """Whether the job pauses because workers do not know its name."""
    parked_until_ms = state.dispatch.parked_until_ms
    return parked_until_ms is not None and parked_until_ms > now_ms
