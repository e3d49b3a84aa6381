"""Decisions on what users ask for. Each command is answered: by the event it leads to, or by CommandRejected."""

from dataclasses import replace
from typing import Final

from mainspring.processors.core.errors import MissingSpecError
from mainspring.processors.core.job.decide_timers import cancelled_by_request, stop_attempt
from mainspring.processors.core.job.decision import NOTHING, UNNUMBERED, Context, Decision
from mainspring.processors.core.job.transitions import is_terminal
from mainspring.schemas.bounds import ACTOR_MAX_CHARS, ID_MAX_CHARS, INSTANT_MAX_MS, MESSAGE_MAX_CHARS
from mainspring.schemas.build import quick
from mainspring.schemas.codes import CancelSignal, RejectCode
from mainspring.schemas.commands import CancelJob, RescheduleJob, RetryJob, SubmitJob
from mainspring.schemas.common import CauseSource, JobStatus
from mainspring.schemas.events import CommandRejected, JobCancelRequested, JobRescheduled, JobSubmitted
from mainspring.schemas.job import JobSpec
from mainspring.schemas.limits import check_command, clip
from mainspring.schemas.records import JobCommand
from mainspring.schemas.tables import JobState

__all__ = ["decide_cancel", "decide_reschedule", "decide_retry", "decide_submit", "reject"]

_SKEW_MAX_MS: Final = 10_000
"""Clocks of machines that keep time differ by less."""

_new_submitted = quick(JobSubmitted)


def reject(state: JobState | None, command: JobCommand, code: RejectCode, message: str, context: Context) -> Decision:
    """A refusal: an event, because nobody waits for a return value at the end of a topic."""
    return Decision(
        (
            CommandRejected(
                job_id=command.spec.job_id if isinstance(command, SubmitJob) else command.job_id,
                revision=0 if state is None else state.revision,
                decided_at_ms=context.now_ms,
                cause=context.cause,
                # What is refused may be refused for its size, so the refusal must not repeat it whole.
                command_id=clip(command.command_id, ID_MAX_CHARS),
                command=type(command).__name__,
                actor=clip(command.actor, ACTOR_MAX_CHARS),
                reject_code=code,
                message=clip(message, MESSAGE_MAX_CHARS),
                status=None if state is None else state.status.name,
                txn=UNNUMBERED,
            ),
        )
    )


def decide_submit(state: JobState | None, command: SubmitJob, context: Context) -> Decision:
    """Accepts the job, once per command; refuses an id that is known, a queue that is not, and what breaks a limit."""
    spec = command.spec
    if state is not None:
        if state.submit_command_id == command.command_id:
            return NOTHING
        return reject(
            state,
            command,
            RejectCode.DUPLICATE_JOB,
            f"job {spec.job_id!r} exists and is {state.status.name}; submit under another id, or retry it",
            context,
        )
    # Only a schedule's own submit comes as a follow-up that names one: the shell checks a forwarded one as a user's.
    is_fired = spec.schedule_id is not None and context.cause.source is CauseSource.FOLLOWUPS
    problem = check_command(command, is_fired=is_fired)
    if problem is not None:
        return reject(state, command, problem.code, problem.message, context)
    if spec.queue not in context.rules.queues:
        known = ", ".join(sorted(context.rules.queues))
        message = (
            f"queue {spec.queue!r} is not declared; declare it in the settings of the scheduler (queues), "
            f"or use one of: {known}"
        )
        return reject(state, command, RejectCode.UNKNOWN_QUEUE, message, context)
    due_at_ms = _due_at_ms(command, context.now_ms, is_fired=is_fired)
    if due_at_ms > INSTANT_MAX_MS:
        message = f"delay_ms {spec.delay_ms} from {command.requested_at_ms} ends after the year 9999; shorten it"
        return reject(state, command, RejectCode.INVALID_FIELD, message, context)
    return Decision(
        (
            _new_submitted(
                job_id=spec.job_id,
                revision=1,
                decided_at_ms=context.now_ms,
                cause=context.cause,
                command_id=command.command_id,
                actor=command.actor,
                reason=command.reason,
                requested_at_ms=command.requested_at_ms,
                seq=context.next_seq,
                due_at_ms=due_at_ms,
                spec=spec,
                txn=UNNUMBERED,
            ),
        )
    )


def _due_at_ms(command: SubmitJob, now_ms: int, *, is_fired: bool) -> int:
    """When the first attempt may start: the asked instant, or now where that has passed."""
    spec = command.spec
    if spec.run_at_ms is not None:
        # What a schedule fired has come by its clock: clocks differ a little, and one that was far ahead is believed.
        is_believed = is_fired and spec.run_at_ms > now_ms + _SKEW_MAX_MS
        return now_ms if is_believed else max(now_ms, spec.run_at_ms)
    if spec.delay_ms:
        # A client's clock that is ahead must not stretch the delay.
        return max(now_ms, min(command.requested_at_ms, now_ms) + spec.delay_ms)
    # Not the command's own time: clients' clocks would then decide who of two is first.
    return now_ms


def decide_cancel(state: JobState | None, command: CancelJob, context: Context) -> Decision:
    """Cancels what waits at once, and asks what runs to stop; the request then sticks, however the attempt ends."""
    refused = _refuse_invalid_or_unknown(state, command, context)
    if refused is not None or state is None:
        return refused or NOTHING
    if state.cancel is not None and state.cancel.command_id == command.command_id:
        return NOTHING
    if is_terminal(state.status):
        message = f"job {state.job_id!r} is already {state.status.name}; there is nothing to cancel"
        return reject(state, command, RejectCode.ALREADY_TERMINAL, message, context)
    if state.status is not JobStatus.RUNNING:
        return Decision((cancelled_by_request(state, command, context),))
    requested = JobCancelRequested(
        job_id=state.job_id,
        revision=state.revision + 1,
        decided_at_ms=context.now_ms,
        cause=context.cause,
        command_id=command.command_id,
        actor=command.actor,
        reason=command.reason,
        attempt=state.attempt,
        txn=UNNUMBERED,
    )
    return Decision((requested,), (stop_attempt(state, CancelSignal.CANCEL_REQUESTED),))


def decide_reschedule(state: JobState | None, command: RescheduleJob, context: Context) -> Decision:
    """Gives a waiting job another time. An offered job is withdrawn: a claim on the old offer is refused."""
    refused = _refuse_invalid_or_unknown(state, command, context)
    if refused is not None or state is None:
        return refused or NOTHING
    if state.reschedule_command_id == command.command_id:
        return NOTHING
    if is_terminal(state.status):
        message = f"job {state.job_id!r} is already {state.status.name}; retry it to run it again"
        return reject(state, command, RejectCode.ALREADY_TERMINAL, message, context)
    if state.status is JobStatus.RUNNING:
        message = f"job {state.job_id!r} is running; only a job that waits can get another time"
        return reject(state, command, RejectCode.NOT_WAITING, message, context)
    rescheduled = JobRescheduled(
        job_id=state.job_id,
        revision=state.revision + 1,
        decided_at_ms=context.now_ms,
        cause=context.cause,
        command_id=command.command_id,
        actor=command.actor,
        reason=command.reason,
        due_at_ms=max(context.now_ms, command.run_at_ms),
        txn=UNNUMBERED,
    )
    return Decision((rescheduled,))


def decide_retry(state: JobState | None, spec: JobSpec | None, command: RetryJob, context: Context) -> Decision:
    """Submits a finished job again under a new id, at that id's own partition, which gives the verdict.

    Repeating the command repeats the submit with its command id, which the new job's partition knows.
    """
    refused = _refuse_invalid_or_unknown(state, command, context)
    if refused is not None or state is None:
        return refused or NOTHING
    if not is_terminal(state.status):
        message = f"job {state.job_id!r} is {state.status.name}; only a finished job can be retried"
        return reject(state, command, RejectCode.NOT_TERMINAL, message, context)
    if command.new_job_id == command.job_id:
        message = f"new_job_id is the id of the finished job {state.job_id!r}; a retry is a new job and needs a new id"
        return reject(state, command, RejectCode.INVALID_FIELD, message, context)
    if spec is None:
        raise MissingSpecError(state.job_id)
    submit = SubmitJob(
        command_id=command.command_id,
        actor=command.actor,
        reason=command.reason,
        requested_at_ms=command.requested_at_ms,
        spec=replace(
            spec,
            job_id=command.new_job_id,
            retry_of=state.job_id,
            run_at_ms=None,
            delay_ms=None,
            deadline_ms=None,
            start_deadline_ms=None,
            # A retry is no occurrence: its schedule does not wait for it.
            schedule_id=None,
        ),
    )
    return Decision(followups=((command.new_job_id, submit),))


def _refuse_invalid_or_unknown(
    state: JobState | None, command: CancelJob | RescheduleJob | RetryJob, context: Context
) -> Decision | None:
    problem = check_command(command)
    if problem is not None:
        return reject(state, command, problem.code, problem.message, context)
    if state is None:
        message = f"job {command.job_id!r} is not known: never submitted here, or finished and no longer kept"
        return reject(None, command, RejectCode.UNKNOWN_JOB, message, context)
    return None
