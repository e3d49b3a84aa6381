"""Decisions on the answers to offers: the job's partition is the single arbiter of who may start it."""

from mainspring.processors.core.job.decide_timers import cancelled_by_scheduler, passed_start_deadline
from mainspring.processors.core.job.decision import NOTHING, UNNUMBERED, Context, Decision
from mainspring.processors.core.job.evolve import NOT_OFFERED
from mainspring.processors.core.job.transitions import is_terminal
from mainspring.processors.core.job.waiting import is_due
from mainspring.schemas.attempts import AttemptClaimed, OfferDeclined
from mainspring.schemas.build import quick
from mainspring.schemas.codes import CancelCode, ClaimRefusal, DeclineReason
from mainspring.schemas.common import ConfirmedStart, JobStatus
from mainspring.schemas.events import JobStarted
from mainspring.schemas.records import JobEvent
from mainspring.schemas.signals import ClaimRefused, StartConfirmed
from mainspring.schemas.tables import Dispatch, JobState

__all__ = ["decide_claim", "decide_decline"]

_new_started = quick(JobStarted)
_new_confirmation = quick(StartConfirmed)
_new_start = quick(ConfirmedStart)


def decide_claim(  # noqa: PLR0911 - one return per verdict
    state: JobState | None, claim: AttemptClaimed, context: Context
) -> Decision:
    """Confirms exactly one claim on an offered attempt that is due; every other is refused by a signal."""
    if state is None:
        return _refused(claim, ClaimRefusal.UNKNOWN_JOB)
    if state.status is JobStatus.RUNNING:
        if state.attempt == claim.attempt and state.incarnation == claim.incarnation:
            # Confirmed before: asking again is answered again, in case the first answer was missed.
            return Decision(signals=(_confirmation(claim, state.started_at_ms or context.now_ms),))
        return _refused(claim, ClaimRefusal.STALE_ATTEMPT)
    if is_terminal(state.status):
        return _refused(claim, ClaimRefusal.TERMINAL)
    offered = state.dispatch.offered_attempt
    if offered == 0 or claim.attempt != offered:
        return _refused(
            claim, ClaimRefusal.STALE_ATTEMPT if claim.attempt <= state.attempt else ClaimRefusal.NOT_OFFERED
        )
    if passed_start_deadline(state, context.now_ms):
        return _refused(claim, ClaimRefusal.TERMINAL, cancelled_by_scheduler(state, CancelCode.EXPIRED, context))
    if not is_due(state, context.now_ms):
        # The wall clock was set back since the offer. No start before its time, so the offer is withdrawn.
        return _refused(claim, ClaimRefusal.NOT_OFFERED, dispatch=NOT_OFFERED)
    started = _new_started(
        job_id=state.job_id,
        revision=state.revision + 1,
        decided_at_ms=context.now_ms,
        cause=context.cause,
        attempt=offered,
        worker_id=claim.worker_id,
        incarnation=claim.incarnation,
        due_at_ms=state.due_at_ms,
        txn=UNNUMBERED,
    )
    return Decision((started,), (_confirmation(claim, context.now_ms),))


def _confirmation(claim: AttemptClaimed, confirmed_at_ms: int) -> StartConfirmed:
    return _new_confirmation(
        worker_id=claim.worker_id,
        incarnation=claim.incarnation,
        confirmed_at_ms=confirmed_at_ms,
        starts=(_new_start(job_id=claim.job_id, attempt=claim.attempt),),
    )


def _refused(
    claim: AttemptClaimed, refusal: ClaimRefusal, *events: JobEvent, dispatch: Dispatch | None = None
) -> Decision:
    signal = ClaimRefused(
        worker_id=claim.worker_id,
        incarnation=claim.incarnation,
        job_id=claim.job_id,
        attempt=claim.attempt,
        refusal=refusal,
    )
    return Decision(events, (signal,), dispatch=dispatch)


def decide_decline(state: JobState | None, decline: OfferDeclined, context: Context) -> Decision:
    """Takes the job back. One whose name the worker did not know is parked, and cancelled when that lasts too long.

    A decline of what is no longer on offer says nothing about the job and changes nothing.
    """
    if state is None or state.dispatch.offered_attempt == 0 or state.dispatch.offered_attempt != decline.attempt:
        return NOTHING
    parked_since_ms = state.dispatch.parked_since_ms
    if decline.reason != DeclineReason.UNKNOWN_NAME:
        return Decision(dispatch=NOT_OFFERED if parked_since_ms is None else Dispatch(parked_since_ms=parked_since_ms))
    rules, now_ms = context.rules, context.now_ms
    # A clock that was ahead when the first worker declined must not keep the job waiting until it is as late again.
    since_ms = now_ms if parked_since_ms is None else min(parked_since_ms, now_ms)
    parked_ms = now_ms - since_ms
    if parked_since_ms is not None and parked_ms >= rules.unknown_name_after_ms:
        return Decision((cancelled_by_scheduler(state, CancelCode.UNKNOWN_NAME, context),))
    # To wait as long as it has waited already doubles the pause each time, without counting them. The last pause ends
    # at the bound itself, so that workers are asked once more before the job is given up.
    pause_ms = min(max(rules.park_min_ms, parked_ms), rules.park_max_ms)
    until_ms = min(now_ms + pause_ms, max(now_ms + 1, since_ms + rules.unknown_name_after_ms))
    return Decision(dispatch=Dispatch(parked_since_ms=since_ms, parked_until_ms=until_ms))
