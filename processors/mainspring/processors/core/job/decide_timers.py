"""Decisions that no user or worker asked for.

A lease that ran out, a deadline that passed, an input nobody can apply, an occurrence that takes the job's place.
"""

from mainspring.processors.core.errors import MissingSpecError
from mainspring.processors.core.job.decision import (
    NOTHING,
    UNNUMBERED,
    Context,
    Decision,
    JobUnprocessable,
    LeaseExpired,
)
from mainspring.processors.core.job.transitions import is_terminal
from mainspring.schemas.bounds import ERROR_MESSAGE_MAX_CHARS, INSTANT_MAX_MS
from mainspring.schemas.codes import CancelCode, CancelSignal, FailReason, RetryReason
from mainspring.schemas.commands import CancelJob
from mainspring.schemas.common import AttemptError, CancelRequest, JobStatus
from mainspring.schemas.events import JobCancelled, JobFailed, JobRetryScheduled
from mainspring.schemas.followups import InstanceReplaced
from mainspring.schemas.job import JobSpec
from mainspring.schemas.limits import clip
from mainspring.schemas.signals import CancelAttempt
from mainspring.schemas.tables import JobState

__all__ = [
    "cancelled_by_request",
    "cancelled_by_scheduler",
    "decide_lost",
    "decide_replaced",
    "decide_start_deadline",
    "decide_unprocessable",
    "lost",
    "passed_start_deadline",
    "retry_scheduled",
    "stop_attempt",
]

_WHY_CANCELLED = {
    CancelCode.EXPIRED: "not started by its start deadline",
    CancelCode.UNKNOWN_NAME: "no worker knew the name of the job for too long",
}


def decide_lost(state: JobState | None, spec: JobSpec | None, timer: LeaseExpired, context: Context) -> Decision:
    """Takes a silent attempt from its worker, and tells it so. Nothing, where the attempt has ended meanwhile."""
    if state is None or state.status is not JobStatus.RUNNING or state.attempt != timer.attempt:
        return NOTHING
    stop = stop_attempt(state, CancelSignal.LEASE_LOST)
    if state.cancel is not None:
        return Decision((cancelled_by_request(state, state.cancel, context),), (stop,))
    if spec is None:
        raise MissingSpecError(state.job_id)
    return Decision((lost(state, spec, context),), (stop,))


def lost(state: JobState, spec: JobSpec, context: Context) -> JobRetryScheduled | JobFailed:
    """The attempt is gone without a report: again at once, or the end where that happened too often.

    At once, because the lease has cost its time already; bounded by `max_lost`, because a job may be what kills
    workers.
    """
    if state.lost < spec.max_lost:
        return retry_scheduled(state, RetryReason.LOST, 0, context)
    return JobFailed(
        job_id=state.job_id,
        revision=state.revision + 1,
        decided_at_ms=context.now_ms,
        cause=context.cause,
        attempt=state.attempt,
        reason=FailReason.LOST,
        txn=UNNUMBERED,
    )


def retry_scheduled(
    state: JobState, reason: RetryReason, delay_ms: int, context: Context, *, error: AttemptError | None = None
) -> JobRetryScheduled:
    """The job waits for another attempt.

    Failures and time-outs use a retry, losses are counted apart, releases not at all.
    """
    uses_retry = reason in (RetryReason.FAILED, RetryReason.TIMED_OUT)
    return JobRetryScheduled(
        job_id=state.job_id,
        revision=state.revision + 1,
        decided_at_ms=context.now_ms,
        cause=context.cause,
        attempt=state.attempt,
        reason=reason,
        delay_ms=delay_ms,
        due_at_ms=min(context.now_ms + delay_ms, INSTANT_MAX_MS),
        retries=state.retries + uses_retry,
        lost=state.lost + (reason is RetryReason.LOST),
        error=error,
        txn=UNNUMBERED,
    )


def cancelled_by_request(state: JobState, request: CancelJob | CancelRequest, context: Context) -> JobCancelled:
    """The cancel that was asked for takes effect: at once, or when the attempt that it waited for has ended."""
    return JobCancelled(
        job_id=state.job_id,
        revision=state.revision + 1,
        decided_at_ms=context.now_ms,
        cause=context.cause,
        cancel_code=CancelCode.REQUESTED,
        command_id=request.command_id,
        actor=request.actor,
        reason=request.reason,
        attempt=state.attempt,
        txn=UNNUMBERED,
    )


def cancelled_by_scheduler(
    state: JobState, code: CancelCode, context: Context, detail: str | None = None
) -> JobCancelled:
    """The job ends without having run (again), for a reason of its own."""
    return JobCancelled(
        job_id=state.job_id,
        revision=state.revision + 1,
        decided_at_ms=context.now_ms,
        cause=context.cause,
        cancel_code=code,
        reason=_WHY_CANCELLED[code] if detail is None else detail,
        attempt=state.attempt,
        txn=UNNUMBERED,
    )


def passed_start_deadline(state: JobState, now_ms: int) -> bool:
    """Whether a job that has never run should have started by now; a retry is no start, so it does not expire."""
    return state.start_deadline_ms is not None and state.attempt == 0 and state.start_deadline_ms <= now_ms


def decide_start_deadline(state: JobState | None, context: Context) -> Decision:
    """Cancels a job that has never run and should have started by now."""
    if state is None or state.status is not JobStatus.PENDING or not passed_start_deadline(state, context.now_ms):
        return NOTHING
    return Decision((cancelled_by_scheduler(state, CancelCode.EXPIRED, context),))


def decide_replaced(state: JobState | None, given: InstanceReplaced, context: Context) -> Decision:
    """Ends an instance at once, also while it runs: the next one has started, so what this one reports is too late."""
    if (
        state is None
        or is_terminal(state.status)
        # The job of a former schedule of the same id is none of this one's business.
        or state.submit_command_id != given.submit_command_id
    ):
        return NOTHING
    detail = f"schedule {given.schedule_id} has started {given.replaced_by} in its place"
    cancelled = cancelled_by_scheduler(state, CancelCode.REPLACED, context, detail)
    if state.status is not JobStatus.RUNNING:
        return Decision((cancelled,))
    return Decision((cancelled,), (stop_attempt(state, CancelSignal.LEASE_LOST),))


def decide_unprocessable(state: JobState | None, given: JobUnprocessable, context: Context) -> Decision:
    """Ends a job whose input cannot be applied, so that it does not wait for ever for what is in the dead letters."""
    if state is None or is_terminal(state.status):
        return NOTHING
    detail = clip(given.detail, ERROR_MESSAGE_MAX_CHARS)
    if state.status is not JobStatus.RUNNING:
        return Decision((cancelled_by_scheduler(state, CancelCode.UNPROCESSABLE, context, detail),))
    stop = stop_attempt(state, CancelSignal.LEASE_LOST)
    if state.cancel is not None:
        return Decision((cancelled_by_request(state, state.cancel, context),), (stop,))
    failed = JobFailed(
        job_id=state.job_id,
        revision=state.revision + 1,
        decided_at_ms=context.now_ms,
        cause=context.cause,
        attempt=state.attempt,
        reason=FailReason.UNPROCESSABLE,
        error=AttemptError(type="UnprocessableRecordError", message=detail),
        txn=UNNUMBERED,
    )
    return Decision((failed,), (stop,))


def stop_attempt(state: JobState, reason: CancelSignal) -> CancelAttempt:
    """The signal that tells the worker of the running attempt to stop it."""
    return CancelAttempt(
        worker_id=state.worker_id or "",
        incarnation=state.incarnation or "",
        job_id=state.job_id,
        attempt=state.attempt,
        reason=reason,
    )
