"""`decide`: what follows from an input, given the state of its job.

Pure, total, and without effect: the caller folds the events with `evolve`, sends the rest, and keeps the state.
Deciding again on an input whose decision was folded changes nothing.
"""

from typing import assert_never

from mainspring.processors.core.job.decide_commands import decide_cancel, decide_reschedule, decide_retry, decide_submit
from mainspring.processors.core.job.decide_offers import decide_claim, decide_decline
from mainspring.processors.core.job.decide_reports import decide_attempt_end
from mainspring.processors.core.job.decide_set_back import decide_set_back
from mainspring.processors.core.job.decide_timers import (
    decide_lost,
    decide_replaced,
    decide_start_deadline,
    decide_unprocessable,
)
from mainspring.processors.core.job.decision import (
    ClockStepped,
    Context,
    Decision,
    JobInput,
    JobUnprocessable,
    LeaseExpired,
    StartDeadlinePassed,
)
from mainspring.schemas.attempts import (
    AttemptCancelled,
    AttemptClaimed,
    AttemptFailed,
    AttemptReleased,
    AttemptSucceeded,
    AttemptTimedOut,
    OfferDeclined,
)
from mainspring.schemas.commands import CancelJob, RescheduleJob, RetryJob, SubmitJob
from mainspring.schemas.followups import InstanceReplaced
from mainspring.schemas.job import JobSpec
from mainspring.schemas.tables import JobState

__all__ = ["decide"]


def decide(  # noqa: C901, PLR0911, PLR0912 - one case per input: to split it would hide that it is complete
    state: JobState | None, spec: JobSpec | None, given: JobInput, context: Context
) -> Decision:
    """What follows from `given`. `spec` is needed where `needs_spec` says so. Raises MissingSpecError without it."""
    # The three inputs of a job that simply succeeds come first: their order here is their cost.
    match given:
        case AttemptClaimed():
            return decide_claim(state, given, context)
        case AttemptSucceeded():
            return decide_attempt_end(state, spec, given, context)
        case SubmitJob():
            return decide_submit(state, given, context)
        case AttemptFailed() | AttemptTimedOut() | AttemptCancelled() | AttemptReleased():
            return decide_attempt_end(state, spec, given, context)
        case OfferDeclined():
            return decide_decline(state, given, context)
        case CancelJob():
            return decide_cancel(state, given, context)
        case RescheduleJob():
            return decide_reschedule(state, given, context)
        case RetryJob():
            return decide_retry(state, spec, given, context)
        case InstanceReplaced():
            return decide_replaced(state, given, context)
        case LeaseExpired():
            return decide_lost(state, spec, given, context)
        case StartDeadlinePassed():
            return decide_start_deadline(state, context)
        case ClockStepped():
            return decide_set_back(state, given.step, context)
        case JobUnprocessable():
            return decide_unprocessable(state, given, context)
        case _ as unknown:
            assert_never(unknown)
