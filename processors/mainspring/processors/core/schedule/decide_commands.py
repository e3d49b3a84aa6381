"""Decisions on what users ask of schedules. Each is answered: by the event it leads to, or by a refusal."""

from typing import assert_never

from mainspring.processors.core.errors import CoreError
from mainspring.processors.core.schedule.decide_due import close_overlapped, close_rest, decide_due
from mainspring.processors.core.schedule.draft import Definition, Draft
from mainspring.processors.core.schedule.fire import fire
from mainspring.processors.core.timing import Occurrence, check_timing
from mainspring.schemas.bounds import ACTOR_MAX_CHARS, BACKFILL_MAX, BACKFILLS_MAX, ID_MAX_CHARS, MESSAGE_MAX_CHARS
from mainspring.schemas.codes import FireOrigin, PauseCode, RejectCode
from mainspring.schemas.commands import (
    BackfillSchedule,
    CreateSchedule,
    DeleteSchedule,
    PauseSchedule,
    ResumeSchedule,
    TriggerSchedule,
    UpdateSchedule,
)
from mainspring.schemas.limits import Problem, clip
from mainspring.schemas.records import ScheduleCommand
from mainspring.schemas.schedule import ScheduleSpec, ScheduleStatus
from mainspring.schemas.schedule_events import (
    BackfillAccepted,
    ScheduleCommandRejected,
    ScheduleCreated,
    ScheduleDeleted,
    SchedulePaused,
    ScheduleResumed,
    ScheduleUpdated,
)
from mainspring.schemas.schedule_limits import check_schedule_command

__all__ = ["decide_command", "reject"]

_DAY_MS = 86_400_000

_ROOM = 100
"""Occurrences that are fired by the old terms before a command changes them."""


def reject(draft: Draft, command: ScheduleCommand, code: RejectCode, message: str) -> None:
    """A refusal: an event, because nobody waits for a return value at the end of a topic."""
    draft.add(
        ScheduleCommandRejected(
            **draft.head(changes=False),
            # What is refused may be refused for its size, so the refusal must not repeat it whole.
            command_id=clip(command.command_id, ID_MAX_CHARS),
            command=type(command).__name__,
            actor=clip(command.actor, ACTOR_MAX_CHARS),
            reject_code=code,
            message=clip(message, MESSAGE_MAX_CHARS),
            status=None if draft.state is None else draft.state.status.name,
        )
    )


def decide_command(draft: Draft, definition: Definition | None, command: ScheduleCommand) -> None:
    """What follows from a command. `definition`: the one in force, None where there is none that can be computed."""
    problem = check_schedule_command(command)
    if problem is not None:
        reject(draft, command, problem.code, problem.message)
    elif isinstance(command, CreateSchedule):
        _create(draft, command)
    elif draft.state is None:
        message = f"schedule {draft.schedule_id!r} is not known: never created here, or deleted"
        reject(draft, command, RejectCode.UNKNOWN_SCHEDULE, message)
    elif command.command_id in draft.state.command_ids:
        return
    elif isinstance(command, UpdateSchedule):
        _update(draft, definition, command)
    elif isinstance(command, DeleteSchedule):
        _delete(draft, definition, command)
    elif definition is None:
        message = f"the occurrences of schedule {draft.schedule_id!r} cannot be computed; update its definition first"
        reject(draft, command, RejectCode.UNPROCESSABLE, message)
    else:
        _change(draft, definition, command)


def _change(
    draft: Draft,
    definition: Definition,
    command: PauseSchedule | ResumeSchedule | TriggerSchedule | BackfillSchedule,
) -> None:
    match command:
        case PauseSchedule():
            _pause(draft, definition, command)
        case ResumeSchedule():
            _resume(draft, definition, command)
        case TriggerSchedule():
            _trigger(draft, definition, command)
        case BackfillSchedule():
            _backfill(draft, definition, command)
        case _ as unknown:
            assert_never(unknown)


def _create(draft: Draft, command: CreateSchedule) -> None:
    state, spec = draft.state, command.spec
    if state is not None:
        if state.create_command_id == command.command_id:
            return
        message = f"schedule {draft.schedule_id!r} exists and is {state.status.name}; update it, or delete it first"
        reject(draft, command, RejectCode.DUPLICATE_SCHEDULE, message)
        return
    problem = _check_definition(draft, spec, created_ms=draft.now_ms)
    if problem is not None:
        reject(draft, command, problem.code, problem.message)
        return
    draft.spec = spec
    draft.add(
        ScheduleCreated(
            **draft.head(),
            command_id=command.command_id,
            actor=command.actor,
            reason=command.reason,
            requested_at_ms=command.requested_at_ms,
            incarnation=draft.context.next_seq,
            spec=spec,
        )
    )


def _check_definition(draft: Draft, spec: ScheduleSpec, *, created_ms: int) -> Problem | None:
    problem = check_timing(spec.timing, created_ms=created_ms, after_ms=draft.now_ms)
    if problem is not None:
        return problem
    queues = draft.context.queues
    if spec.job.queue not in queues:
        message = (
            f"queue {spec.job.queue!r} is not declared; declare it in the settings of the scheduler (queues), "
            f"or use one of: {', '.join(sorted(queues))}"
        )
        return Problem(code=RejectCode.UNKNOWN_QUEUE, field="job.queue", message=message)
    return None


def _delete(draft: Draft, definition: Definition | None, command: DeleteSchedule) -> None:
    _settle(draft, definition, "the schedule was deleted")
    draft.add(
        ScheduleDeleted(**draft.head(), command_id=command.command_id, actor=command.actor, reason=command.reason)
    )


def _update(draft: Draft, definition: Definition | None, command: UpdateSchedule) -> None:
    state, spec = draft.present, command.spec
    if command.expected_version is not None and command.expected_version != state.version:
        message = (
            f"schedule {draft.schedule_id!r} has version {state.version} by now and not {command.expected_version}: "
            "somebody else changed it; read it again and update that"
        )
        reject(draft, command, RejectCode.VERSION_CONFLICT, message)
        return
    problem = _check_definition(draft, spec, created_ms=state.created_at_ms)
    if problem is not None:
        reject(draft, command, problem.code, problem.message)
        return
    plans_anew = definition is None or definition.spec.timing != spec.timing or state.status is ScheduleStatus.COMPLETED
    _settle(draft, definition, "the timing was changed before it was fired", fires=True, closes=plans_anew)
    draft.spec = spec
    draft.add(
        ScheduleUpdated(
            **draft.head(),
            command_id=command.command_id,
            actor=command.actor,
            reason=command.reason,
            version=draft.present.version + 1,
            plans_anew=plans_anew,
            spec=spec,
        )
    )


def _settle(
    draft: Draft, definition: Definition | None, reason: str, *, fires: bool = False, closes: bool = True
) -> None:
    """Gives what was planned up to now its outcome by the old terms, as far as these can be computed.

    `fires`: what is due is decided on first; `closes`: what then is left, such as what waits, is skipped.

    Rules that cannot be must not keep their schedule from being deleted, or given others.
    """
    if definition is None:
        return
    try:
        if fires:
            decide_due(draft, definition, _ROOM)
        if closes:
            close_rest(draft, definition, reason)
    except CoreError:
        raise
    except Exception:  # noqa: BLE001 - whatever is wrong with the rules; what was decided so far stands
        return


def _pause(draft: Draft, definition: Definition, command: PauseSchedule) -> None:
    status = draft.present.status
    if status is not ScheduleStatus.ACTIVE:
        code = RejectCode.ALREADY_PAUSED if status is ScheduleStatus.PAUSED else RejectCode.ALREADY_COMPLETED
        message = f"schedule {draft.schedule_id!r} is already {status.name}; there is nothing to pause"
        reject(draft, command, code, message)
        return
    decide_due(draft, definition, _ROOM)
    close_overlapped(draft, definition)
    draft.add(
        SchedulePaused(
            **draft.head(),
            pause_code=PauseCode.REQUESTED,
            command_id=command.command_id,
            actor=command.actor,
            reason=command.reason,
            note=command.note,
        )
    )


def _resume(draft: Draft, definition: Definition, command: ResumeSchedule) -> None:
    status = draft.present.status
    if status is not ScheduleStatus.PAUSED:
        message = f"schedule {draft.schedule_id!r} is {status.name}; only a paused one can be resumed"
        reject(draft, command, RejectCode.NOT_PAUSED, message)
        return
    close_rest(draft, definition, "the schedule was paused")
    draft.add(
        ScheduleResumed(**draft.head(), command_id=command.command_id, actor=command.actor, reason=command.reason)
    )


def _trigger(draft: Draft, definition: Definition, command: TriggerSchedule) -> None:
    nominal_ms = _free_instant(draft, definition)
    fire(
        draft,
        definition,
        Occurrence(nominal_ms=nominal_ms, fire_at_ms=nominal_ms),
        FireOrigin.TRIGGER,
        command_id=command.command_id,
        actor=command.actor,
        reason=command.reason,
    )


def _free_instant(draft: Draft, definition: Definition) -> int:
    """The first millisecond from now that is no planned occurrence's and no other trigger's."""
    nominal_ms = max(draft.now_ms, draft.present.triggered_ms + 1)
    planned = definition.planned_after(nominal_ms - 1)
    while planned is not None and planned.nominal_ms == nominal_ms:
        nominal_ms += 1
        planned = definition.planned_after(nominal_ms - 1)
    return nominal_ms


def _backfill(draft: Draft, definition: Definition, command: BackfillSchedule) -> None:
    if command.until_ms > draft.now_ms:
        message = f"until_ms must not be in the future, and is {command.until_ms}: what is to come is planned anyway"
        reject(draft, command, RejectCode.INVALID_FIELD, message)
        return
    if len(draft.present.backfills) >= BACKFILLS_MAX:
        message = f"schedule {draft.schedule_id!r} has {BACKFILLS_MAX} backfills under way; wait for one to end"
        reject(draft, command, RejectCode.TOO_MANY, message)
        return
    days, most = (command.until_ms - command.from_ms) // _DAY_MS, definition.planned.days_countable()
    if most is not None and days > most:
        message = (
            f"the range has {days} days, and at most {most} can be counted where intervals meet so many other rules "
            "and exclusions; divide it"
        )
        reject(draft, command, RejectCode.TOO_MANY, message)
        return
    latest, before = definition.planned.latest(command.from_ms - 1, command.until_ms)
    if latest is None:
        message = f"nothing is planned from {command.from_ms} to {command.until_ms}; `schedule preview` tells what is"
        reject(draft, command, RejectCode.NOTHING_PLANNED, message)
        return
    if before + 1 > BACKFILL_MAX:
        message = f"the range has {before + 1} occurrences, more than {BACKFILL_MAX}; divide it"
        reject(draft, command, RejectCode.TOO_MANY, message)
        return
    draft.add(
        BackfillAccepted(
            **draft.head(),
            command_id=command.command_id,
            actor=command.actor,
            reason=command.reason,
            from_ms=command.from_ms,
            until_ms=command.until_ms,
            count=before + 1,
        )
    )
