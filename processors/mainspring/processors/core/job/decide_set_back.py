"""What a wall clock that was set back means for a job that waits for a delay, and not for an instant.

A delay goes on: what began on the clock as it was right before the step falls due when it would have. What began on
an older clock, which now proves to have been ahead, or before a takeover, waits for its delay once more at most.
"""

from mainspring.processors.core.job.decision import NOTHING, UNNUMBERED, Context, Decision
from mainspring.processors.core.job.waiting import is_due
from mainspring.processors.core.steps import STEP_MIN_MS, ClockSetBack
from mainspring.schemas.common import JobStatus
from mainspring.schemas.events import JobRescheduled
from mainspring.schemas.tables import Dispatch, JobState

__all__ = ["decide_set_back"]

_WAITING = (JobStatus.PENDING, JobStatus.RETRY_WAIT)


def decide_set_back(state: JobState | None, step: ClockSetBack, context: Context) -> Decision:
    """Moves the end of a delay or of a pause to where it belongs by the clock as it is now. An instant stays."""
    if state is None or state.status not in _WAITING:
        return NOTHING
    due_at_ms = _due_at_ms(state, step)
    dispatch = _pause_again(state.dispatch, context)
    if due_at_ms is None:
        return NOTHING if dispatch is None else Decision(dispatch=dispatch)
    moved = JobRescheduled(
        job_id=state.job_id,
        revision=state.revision + 1,
        decided_at_ms=context.now_ms,
        cause=context.cause,
        reason="the wall clock was set back; a delay goes on",
        due_at_ms=due_at_ms,
        txn=UNNUMBERED,
    )
    return Decision((moved,), dispatch=dispatch)


def _due_at_ms(state: JobState, step: ClockSetBack) -> int | None:
    """When the delay is over by the clock as it is now; None: as it says."""
    delay_ms = state.delay_ms
    if delay_ms is None or is_due(state, step.after_ms):
        return None
    if _began_ms(state) >= step.steady_since_ms or state.due_at_ms <= step.before_ms:
        return max(0, state.due_at_ms - step.by_ms)
    return step.after_ms + delay_ms if _began_ms(state) > step.after_ms + STEP_MIN_MS else None


def _pause_again(dispatch: Dispatch, context: Context) -> Dispatch | None:
    """A pause that would last too long ends now; None: there is none."""
    since_ms, until_ms = dispatch.parked_since_ms, dispatch.parked_until_ms
    now_ms = context.now_ms
    if since_ms is None or (since_ms <= now_ms and (until_ms or 0) <= now_ms + context.rules.park_max_ms):
        return None
    if dispatch.offered_attempt:
        return None
    return Dispatch(parked_since_ms=min(since_ms, now_ms), parked_until_ms=until_ms and now_ms)


def _began_ms(state: JobState) -> int:
    return state.due_at_ms - (state.delay_ms or 0)
