"""Decisions on how attempts end.

Only the confirmed attempt and incarnation count; every other report is kept as evidence.
"""

from typing import assert_never

from mainspring.processors.core.errors import MissingSpecError
from mainspring.processors.core.job.decide_timers import cancelled_by_request, lost, retry_scheduled
from mainspring.processors.core.job.decision import NOTHING, UNNUMBERED, AttemptEnd, Context, Decision
from mainspring.processors.core.job.transitions import is_terminal
from mainspring.processors.core.retry import retry_delay_ms
from mainspring.schemas.attempts import (
    AttemptCancelled,
    AttemptFailed,
    AttemptReleased,
    AttemptSucceeded,
    AttemptTimedOut,
)
from mainspring.schemas.bounds import (
    ERROR_MESSAGE_MAX_CHARS,
    ERROR_TYPE_MAX_CHARS,
    EVIDENCE_MAX_BYTES,
    RETRY_DELAY_MAX_MS,
    TRACEBACK_MAX_CHARS,
)
from mainspring.schemas.build import quick
from mainspring.schemas.codes import FailReason, ReportRefusal, RetryReason
from mainspring.schemas.common import AttemptError, JobStatus
from mainspring.schemas.events import JobCompleted, JobFailed, JobTimedOut, ReportRefused
from mainspring.schemas.job import JobSpec
from mainspring.schemas.limits import check_result, clip, clip_bytes
from mainspring.schemas.records import JobEvent
from mainspring.schemas.tables import JobState

__all__ = ["decide_attempt_end"]

_new_completed = quick(JobCompleted)


def decide_attempt_end(state: JobState | None, spec: JobSpec | None, report: AttemptEnd, context: Context) -> Decision:
    """What the end of an attempt means for its job. A success beats a cancel that was asked for; nothing else does."""
    if state is None or state.status is not JobStatus.RUNNING or not _is_confirmed(state, report):
        return _refused(state, report, context)
    if isinstance(report, AttemptSucceeded):
        problem = check_result(report.result)
        if problem is None:
            return Decision((_completed(state, report, context),))
    if state.cancel is not None:
        return Decision((cancelled_by_request(state, state.cancel, context),))
    return Decision((_unsuccessful(state, spec, report, context),))


def _is_confirmed(state: JobState, report: AttemptEnd) -> bool:
    return state.attempt == report.attempt and state.incarnation == report.incarnation


def _unsuccessful(state: JobState, spec: JobSpec | None, report: AttemptEnd, context: Context) -> JobEvent:
    match report:
        case AttemptFailed():
            return _failed(state, _required(spec, state), report, context)
        case AttemptTimedOut():
            return _timed_out(state, _required(spec, state), report, context)
        case AttemptReleased():
            return retry_scheduled(state, RetryReason.RELEASED, 0, context)
        case AttemptCancelled():
            # Stopped although nobody had asked: the work is as gone as with a dead worker, and counted like it, so
            # that a worker which stops everything cannot keep a job going round for ever.
            return lost(state, _required(spec, state), context)
        case AttemptSucceeded():
            problem = check_result(report.result)
            message = "" if problem is None else problem.message
            error = AttemptError(type="ResultTooLargeError", message=message)
            return _failed_for_good(state, FailReason.RESULT_TOO_LARGE, error, context)
        case _ as unknown:
            assert_never(unknown)


def _required(spec: JobSpec | None, state: JobState) -> JobSpec:
    if spec is None:
        raise MissingSpecError(state.job_id)
    return spec


def _completed(state: JobState, report: AttemptSucceeded, context: Context) -> JobCompleted:
    return _new_completed(
        job_id=state.job_id,
        revision=state.revision + 1,
        decided_at_ms=context.now_ms,
        cause=context.cause,
        attempt=state.attempt,
        worker_id=report.worker_id,
        started_at_ms=report.started_at_ms,
        finished_at_ms=report.reported_at_ms,
        result=report.result,
        content_type=report.content_type,
        txn=UNNUMBERED,
    )


def _failed(state: JobState, spec: JobSpec, report: AttemptFailed, context: Context) -> JobEvent:
    error = _clipped(report.error)
    if not report.retryable or state.retries >= spec.max_retries:
        return _failed_for_good(state, _fail_reason(report), error, context)
    delay_ms = report.retry_delay_ms
    if delay_ms is None:
        delay_ms = retry_delay_ms(spec, state.retries + 1, context.seed)
    # An error's own delay is the handler's business, yet it may not be in the past or beyond every clock.
    delay_ms = min(max(0, delay_ms), RETRY_DELAY_MAX_MS)
    return retry_scheduled(state, RetryReason.FAILED, delay_ms, context, error=error)


def _fail_reason(report: AttemptFailed) -> FailReason:
    # A result over the limit never travels: our workers tell of it by the type of the error.
    too_large = not report.retryable and report.error.type.endswith("ResultTooLargeError")
    return FailReason.RESULT_TOO_LARGE if too_large else FailReason.FAILED


def _timed_out(state: JobState, spec: JobSpec, report: AttemptTimedOut, context: Context) -> JobEvent:
    if state.retries < spec.max_retries:
        delay_ms = retry_delay_ms(spec, state.retries + 1, context.seed)
        return retry_scheduled(state, RetryReason.TIMED_OUT, delay_ms, context)
    return JobTimedOut(
        job_id=state.job_id,
        revision=state.revision + 1,
        decided_at_ms=context.now_ms,
        cause=context.cause,
        attempt=state.attempt,
        timeout_ms=report.timeout_ms,
        txn=UNNUMBERED,
    )


def _failed_for_good(state: JobState, reason: FailReason, error: AttemptError, context: Context) -> JobFailed:
    return JobFailed(
        job_id=state.job_id,
        revision=state.revision + 1,
        decided_at_ms=context.now_ms,
        cause=context.cause,
        attempt=state.attempt,
        reason=reason,
        error=error,
        txn=UNNUMBERED,
    )


def _clipped(error: AttemptError) -> AttemptError:
    return AttemptError(
        type=clip(error.type, ERROR_TYPE_MAX_CHARS),
        message=clip(error.message, ERROR_MESSAGE_MAX_CHARS),
        traceback=None if error.traceback is None else clip(error.traceback, TRACEBACK_MAX_CHARS),
    )


def _refused(state: JobState | None, report: AttemptEnd, context: Context) -> Decision:
    """The report as evidence, unless it only repeats the success that is recorded."""
    if (
        state is not None
        and state.status is JobStatus.COMPLETED
        and isinstance(report, AttemptSucceeded)
        and _is_confirmed(state, report)
    ):
        return NOTHING
    refused = ReportRefused(
        job_id=report.job_id,
        revision=0 if state is None else state.revision,
        decided_at_ms=context.now_ms,
        cause=context.cause,
        attempt=report.attempt,
        report=type(report).__name__,
        worker_id=report.worker_id,
        incarnation=report.incarnation,
        reported_at_ms=report.reported_at_ms,
        refusal=_why_refused(state, report),
        evidence=clip_bytes(context.raw, EVIDENCE_MAX_BYTES),
        txn=UNNUMBERED,
    )
    return Decision((refused,))


def _why_refused(state: JobState | None, report: AttemptEnd) -> ReportRefusal:
    if state is None:
        return ReportRefusal.UNKNOWN_JOB
    if is_terminal(state.status):
        return ReportRefusal.TERMINAL
    if report.attempt != state.attempt:
        return ReportRefusal.STALE_ATTEMPT
    if state.status is not JobStatus.RUNNING:
        return ReportRefusal.NOT_RUNNING
    return ReportRefusal.OTHER_INCARNATION
