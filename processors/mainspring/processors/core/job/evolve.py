"""`evolve`: a job's state after an event; history is its fold and nothing else.

Total for every event that the decider can produce, and loud for every other: the status comes from the transition
table, and the revision must be the next one. The columns of `dispatch` belong to no event: each transition resets
them.
"""

from collections.abc import Iterable
from typing import Final, assert_never

from mainspring.processors.core.errors import OrphanEventError, RevisionGapError
from mainspring.processors.core.job.transitions import apply_edge
from mainspring.schemas.build import copier, quick
from mainspring.schemas.common import CancelRequest
from mainspring.schemas.events import (
    CommandRejected,
    JobCancelled,
    JobCancelRequested,
    JobCompleted,
    JobFailed,
    JobRescheduled,
    JobRetryScheduled,
    JobStarted,
    JobSubmitted,
    JobTimedOut,
    ReportRefused,
)
from mainspring.schemas.records import JobEvent
from mainspring.schemas.tables import Dispatch, JobState

__all__ = ["NOT_OFFERED", "evolve", "fold", "with_dispatch"]

NOT_OFFERED: Final = Dispatch()
"""The dispatch columns of a job that is neither offered nor parked."""

_new_state = quick(JobState)
_copy_dispatch = copier(JobState, "dispatch")
_copy_started = copier(
    JobState, "revision", "status", "attempt", "worker_id", "incarnation", "started_at_ms", "dispatch"
)
_copy_ended = copier(JobState, "revision", "status", "finished_at_ms", "dispatch")
_copy_retry = copier(
    JobState, "revision", "status", "due_at_ms", "delay_ms", "retries", "lost", "started_at_ms", "dispatch"
)
_copy_cancelled = copier(JobState, "revision", "status", "finished_at_ms", "cancel", "dispatch")
_copy_cancel_requested = copier(JobState, "revision", "status", "cancel")
_copy_rescheduled = copier(JobState, "revision", "status", "due_at_ms", "delay_ms", "reschedule_command_id", "dispatch")
_copy_moved = copier(JobState, "revision", "status", "due_at_ms")


def fold(events: Iterable[JobEvent], state: JobState | None = None) -> JobState | None:
    """The state after these events of one job, in order, beginning with `state`. `None`: there is no such job."""
    for event in events:
        state = evolve(state, event)
    return state


def evolve(  # noqa: PLR0911 - one case per event: to split it would hide that it is complete
    state: JobState | None, event: JobEvent
) -> JobState | None:
    """The state after one event. Raises IllegalTransitionError, RevisionGapError or OrphanEventError."""
    # The three events of a job that simply succeeds come first: their order here is their cost.
    match event:
        case JobStarted():
            return _started(_next(state, event), event)
        case JobCompleted():
            return _ended(_next(state, event), event)
        case JobSubmitted():
            return _submitted(state, event)
        case JobRetryScheduled():
            return _retry_scheduled(_next(state, event), event)
        case JobFailed() | JobTimedOut():
            return _ended(_next(state, event), event)
        case JobCancelled():
            return _cancelled(_next(state, event), event)
        case JobCancelRequested():
            return _cancel_requested(_next(state, event), event)
        case JobRescheduled():
            return _rescheduled(_next(state, event), event)
        case ReportRefused() | CommandRejected():
            return state
        case _ as unknown:
            assert_never(unknown)


def with_dispatch(state: JobState, dispatch: Dispatch) -> JobState:
    """The same state with other dispatch columns; not a transition, so the revision stays."""
    return _copy_dispatch(state, dispatch=dispatch)


def _next(state: JobState | None, event: JobEvent) -> JobState:
    """The state that the event must follow. Raises OrphanEventError or RevisionGapError."""
    if state is None:
        raise OrphanEventError(event.job_id, type(event))
    if event.revision != state.revision + 1:
        raise RevisionGapError(event.job_id, state.revision + 1, event.revision)
    return state


def _submitted(state: JobState | None, event: JobSubmitted) -> JobState:
    spec = event.spec
    status = apply_edge(None if state is None else state.status, JobSubmitted)
    if event.revision != 1:
        raise RevisionGapError(event.job_id, 1, event.revision)
    delay_ms: int | None = max(0, event.due_at_ms - event.decided_at_ms)
    if delay_ms and spec.run_at_ms is not None and spec.schedule_id is None:
        # What a schedule has fired waits for the difference of two clocks, if at all.
        delay_ms = None
    return _new_state(
        job_id=event.job_id,
        revision=1,
        seq=event.seq,
        status=status,
        queue=spec.queue,
        priority=spec.priority,
        tenant=spec.tenant,
        submitted_at_ms=event.decided_at_ms,
        due_at_ms=event.due_at_ms,
        delay_ms=delay_ms,
        start_deadline_ms=spec.start_deadline_ms,
        deadline_ms=spec.deadline_ms,
        attempt=0,
        retries=0,
        lost=0,
        submit_command_id=event.command_id,
        dispatch=NOT_OFFERED,
    )


def _started(state: JobState, event: JobStarted) -> JobState:
    return _copy_started(
        state,
        revision=event.revision,
        status=apply_edge(state.status, JobStarted),
        attempt=event.attempt,
        worker_id=event.worker_id,
        incarnation=event.incarnation,
        started_at_ms=event.decided_at_ms,
        dispatch=NOT_OFFERED,
    )


def _ended(state: JobState, event: JobCompleted | JobFailed | JobTimedOut) -> JobState:
    return _copy_ended(
        state,
        revision=event.revision,
        status=apply_edge(state.status, type(event)),
        finished_at_ms=event.decided_at_ms,
        dispatch=NOT_OFFERED,
    )


def _retry_scheduled(state: JobState, event: JobRetryScheduled) -> JobState:
    return _copy_retry(
        state,
        revision=event.revision,
        status=apply_edge(state.status, JobRetryScheduled),
        due_at_ms=event.due_at_ms,
        delay_ms=event.delay_ms,
        retries=event.retries,
        lost=event.lost,
        started_at_ms=None,
        dispatch=NOT_OFFERED,
    )


def _cancelled(state: JobState, event: JobCancelled) -> JobState:
    cancel = state.cancel
    if event.command_id is not None:
        cancel = _cancel_request(event.command_id, event.actor or "", event.reason, event.decided_at_ms, cancel)
    return _copy_cancelled(
        state,
        revision=event.revision,
        status=apply_edge(state.status, JobCancelled),
        finished_at_ms=event.decided_at_ms,
        cancel=cancel,
        dispatch=NOT_OFFERED,
    )


def _cancel_requested(state: JobState, event: JobCancelRequested) -> JobState:
    return _copy_cancel_requested(
        state,
        revision=event.revision,
        status=apply_edge(state.status, JobCancelRequested),
        cancel=_cancel_request(event.command_id, event.actor, event.reason, event.decided_at_ms, state.cancel),
    )


def _cancel_request(
    command_id: str, actor: str, reason: str, at_ms: int, earlier: CancelRequest | None
) -> CancelRequest:
    """The request to keep: the one already there when it is the same command, for its time is the earlier."""
    if earlier is not None and earlier.command_id == command_id:
        return earlier
    return CancelRequest(command_id=command_id, actor=actor, reason=reason, requested_at_ms=at_ms)


def _rescheduled(state: JobState, event: JobRescheduled) -> JobState:
    status = apply_edge(state.status, JobRescheduled)
    if event.command_id is None:
        # The clock was set back and the delay goes on: whoever has the offer may claim it.
        return _copy_moved(state, revision=event.revision, status=status, due_at_ms=event.due_at_ms)
    return _copy_rescheduled(
        state,
        revision=event.revision,
        status=status,
        due_at_ms=event.due_at_ms,
        delay_ms=None if event.due_at_ms > event.decided_at_ms else 0,
        reschedule_command_id=event.command_id,
        dispatch=NOT_OFFERED,
    )
