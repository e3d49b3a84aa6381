"""`evolve_schedule`: a schedule's state after an event; history is its fold and nothing else.

The column `plan` belongs to no event: every event that moves the cursor or changes the definition empties it, and the
caller computes it anew.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, assert_never

from mainspring.processors.core.errors import ScheduleFoldError
from mainspring.processors.core.schedule.ahead import fired_behind
from mainspring.processors.core.schedule.transitions import apply_schedule_edge
from mainspring.schemas.bounds import ACTIVE_INSTANCES_MAX, FIRED_RUNS_MAX
from mainspring.schemas.build import copier
from mainspring.schemas.codes import FireOrigin, InstanceOutcome, RejectCode, StopMode
from mainspring.schemas.records import ScheduleEvent
from mainspring.schemas.schedule_events import (
    BackfillAccepted,
    BackfillEnded,
    InstanceEnded,
    InstancesStopped,
    OccurrenceFired,
    OccurrencesSkipped,
    ScheduleCommandRejected,
    ScheduleCompleted,
    ScheduleCreated,
    ScheduleDeleted,
    SchedulePaused,
    ScheduleResumed,
    ScheduleRewound,
    ScheduleUpdated,
)
from mainspring.schemas.tables import ActiveInstance, Backfill, FiredRun, Plan, ScheduleState

__all__ = ["NO_PLAN", "evolve_schedule", "fold_schedule", "has_failed", "with_plan"]

NO_PLAN: Final = Plan()
"""The plan of a schedule for which the next occurrence has not been computed."""

_copy_plan = copier(ScheduleState, "plan")
_copy_next = copier(ScheduleState, "revision", "status")
_copy_fired = copier(
    ScheduleState,
    "fired",
    "runs",
    "last_nominal_ms",
    "last_job_id",
    "active",
    "cursor_ms",
    "plan",
    "fired_runs",
    "forgotten_ms",
    "ahead",
)

_COMMANDS_KEPT: Final = 64
"""Accepted commands whose repetition is recognised: a client that sends again does so within seconds, in which others
may ask as well."""

_FAILED: Final = frozenset({InstanceOutcome.FAILED, InstanceOutcome.TIMED_OUT, InstanceOutcome.REFUSED})


def fold_schedule(events: Iterable[ScheduleEvent], state: ScheduleState | None = None) -> ScheduleState | None:
    """The state after these events of one schedule, in order, beginning with `state`. `None`: there is none."""
    for event in events:
        state = evolve_schedule(state, event)
    return state


def evolve_schedule(  # noqa: C901, PLR0911, PLR0912 - one case per event: to split it would hide that it is complete
    state: ScheduleState | None, event: ScheduleEvent
) -> ScheduleState | None:
    """The state after one event; None after its end. Raises ScheduleFoldError."""
    match event:
        case ScheduleCommandRejected():
            return state
        case ScheduleCreated():
            return _created(state, event)
        case OccurrenceFired():
            return _fired(_next(state, event), event)
        case InstanceEnded():
            return _instance_ended(_next(state, event), event)
        case OccurrencesSkipped():
            return _skipped(_next(state, event), event)
        case ScheduleRewound():
            return _rewound(_next(state, event), event)
        case InstancesStopped():
            return _instances_stopped(_next(state, event), event)
        case ScheduleUpdated():
            return _updated(_next(state, event), event)
        case SchedulePaused():
            after = replace(_next(state, event), pause_code=event.pause_code, paused_by=event.actor, note=event.note)
            return after if event.command_id is None else _remember(after, event.command_id)
        case ScheduleResumed():
            return _resumed(_next(state, event), event)
        case ScheduleCompleted():
            return _next(state, event)
        case BackfillAccepted():
            return _backfill_accepted(_next(state, event), event)
        case BackfillEnded():
            after = _next(state, event)
            left = tuple(each for each in after.backfills if each.command_id != event.command_id)
            return replace(after, backfills=left)
        case ScheduleDeleted():
            _next(state, event)
            return None
        case _ as unknown:
            assert_never(unknown)


def has_failed(outcome: str, detail: str) -> bool:
    """Whether an instance that ended like this has failed.

    One that is refused because its time was fired before has not: the job of that time says how it went.
    """
    return outcome in _FAILED and detail != RejectCode.DUPLICATE_JOB


def with_plan(state: ScheduleState, plan: Plan) -> ScheduleState:
    """The same state with another plan; not a transition, so the revision stays."""
    return _copy_plan(state, plan=plan)


def _next(state: ScheduleState | None, event: ScheduleEvent) -> ScheduleState:
    """The state with its revision and status after the event. Raises ScheduleFoldError."""
    if state is None:
        detail = f"{type(event).__name__} without a row; the first event must be ScheduleCreated"
        raise ScheduleFoldError(event.schedule_id, detail)
    if event.revision != state.revision + 1:
        detail = f"event of revision {event.revision} where {state.revision + 1} is next; one is missing or repeated"
        raise ScheduleFoldError(event.schedule_id, detail)
    status = apply_schedule_edge(event.schedule_id, state.status, type(event))
    return _copy_next(state, revision=event.revision, status=state.status if status is None else status)


def _created(state: ScheduleState | None, event: ScheduleCreated) -> ScheduleState:
    status = apply_schedule_edge(event.schedule_id, None if state is None else state.status, ScheduleCreated)
    if event.revision != 1 or status is None:
        raise ScheduleFoldError(event.schedule_id, f"it begins with revision 1, not {event.revision}")
    return ScheduleState(
        schedule_id=event.schedule_id,
        revision=1,
        incarnation=event.incarnation,
        version=1,
        status=status,
        created_at_ms=event.decided_at_ms,
        updated_at_ms=event.decided_at_ms,
        cursor_ms=event.decided_at_ms,
        busy_until_ms=0,
        # Not 0: a former schedule of this id may have been triggered at this instant, and a trigger makes a job id.
        triggered_ms=event.decided_at_ms,
        runs=0,
        fired=0,
        skipped=0,
        failed=0,
        create_command_id=event.command_id,
        plan=NO_PLAN,
    )


def _skipped(state: ScheduleState, event: OccurrencesSkipped) -> ScheduleState:
    cursor_ms = max(state.cursor_ms, event.last_ms)
    return replace(
        state,
        cursor_ms=cursor_ms,
        ahead=_left(state.ahead, cursor_ms),
        skipped=state.skipped + event.count,
        plan=NO_PLAN,
    )


def _rewound(state: ScheduleState, event: ScheduleRewound) -> ScheduleState:
    if event.from_ms != state.cursor_ms or event.to_ms >= event.from_ms:
        detail = f"rewound from {event.from_ms} to {event.to_ms} while the cursor is at {state.cursor_ms}"
        raise ScheduleFoldError(event.schedule_id, detail)
    return replace(
        state,
        cursor_ms=event.to_ms,
        # An instance that ended on the clock that was ahead has kept nothing back since.
        busy_until_ms=min(state.busy_until_ms, event.to_ms),
        ahead=fired_behind(state, event.to_ms)[-FIRED_RUNS_MAX:],
        plan=NO_PLAN,
    )


def _left(ahead: tuple[FiredRun, ...], cursor_ms: int) -> tuple[FiredRun, ...]:
    """What is still ahead of the cursor."""
    return tuple(run for run in ahead if run.last_ms > cursor_ms) if ahead else ahead


def _fired(state: ScheduleState, event: OccurrenceFired) -> ScheduleState:
    active = state.active
    if len(active) < ACTIVE_INSTANCES_MAX:
        instance = ActiveInstance(
            job_id=event.job_id, nominal_ms=event.nominal_ms, version=event.version, fired_revision=event.revision
        )
        active = (*active, instance)
    is_planned = event.origin == FireOrigin.PLANNED
    runs = state.fired_runs
    if is_planned:
        runs = _with_fired(runs, state.cursor_ms, event)
    elif event.origin == FireOrigin.BACKFILL:
        after_ms = next((each.after_ms for each in state.backfills if each.command_id == event.command_id), -1)
        runs = _with_fired(runs, after_ms, event)
    forgotten_ms = state.forgotten_ms
    if len(runs) > FIRED_RUNS_MAX:
        forgotten_ms, runs = max(forgotten_ms, runs[0].last_ms), runs[1:]
    cursor_ms = max(state.cursor_ms, event.nominal_ms) if is_planned else state.cursor_ms
    fired = _copy_fired(
        state,
        fired=state.fired + 1,
        runs=state.runs + is_planned,
        last_nominal_ms=event.nominal_ms,
        last_job_id=event.job_id,
        active=active,
        cursor_ms=cursor_ms,
        plan=NO_PLAN if is_planned else state.plan,
        fired_runs=runs,
        forgotten_ms=forgotten_ms,
        ahead=_left(state.ahead, cursor_ms),
    )
    if is_planned:
        return fired
    if event.origin == FireOrigin.TRIGGER:
        return _remember(replace(fired, triggered_ms=event.nominal_ms), event.command_id or "")
    backfills = tuple(
        replace(each, after_ms=event.nominal_ms) if each.command_id == event.command_id else each
        for each in state.backfills
    )
    return replace(fired, backfills=backfills)


def _with_fired(runs: tuple[FiredRun, ...], previous_ms: int, event: OccurrenceFired) -> tuple[FiredRun, ...]:
    """The runs with one occurrence more; it extends the run that ends where the search for it began."""
    for index in range(len(runs) - 1, -1, -1):
        run = runs[index]
        if run.last_ms == previous_ms and run.version == event.version:
            return (*runs[:index], replace(run, last_ms=event.nominal_ms), *runs[index + 1 :])
    run = FiredRun(first_ms=event.nominal_ms, last_ms=event.nominal_ms, version=event.version)
    return (*runs, run)


def _instance_ended(state: ScheduleState, event: InstanceEnded) -> ScheduleState:
    active = tuple(each for each in state.active if each.fired_revision != event.fired_revision)
    is_last = len(active) < len(state.active) and not active
    # It had ended when that was told, whatever the clock of its partition says.
    ended_ms = min(event.finished_at_ms, event.decided_at_ms)
    return replace(
        state,
        active=active,
        busy_until_ms=max(state.busy_until_ms, ended_ms) if is_last else state.busy_until_ms,
        failed=state.failed + has_failed(event.outcome, event.detail),
        last_outcome=event.outcome,
    )


def _instances_stopped(state: ScheduleState, event: InstancesStopped) -> ScheduleState:
    stopped = frozenset(event.job_ids)
    if event.how == StopMode.REPLACED:
        return replace(state, active=tuple(each for each in state.active if each.job_id not in stopped))
    active = tuple(replace(each, cancelled=True) if each.job_id in stopped else each for each in state.active)
    return replace(state, active=active)


def _updated(state: ScheduleState, event: ScheduleUpdated) -> ScheduleState:
    # What another timing would have planned in the past was never planned; by the same one it still is.
    cursor_ms = max(state.cursor_ms, event.decided_at_ms) if event.plans_anew else state.cursor_ms
    updated = replace(
        state,
        version=event.version,
        updated_at_ms=event.decided_at_ms,
        cursor_ms=cursor_ms,
        ahead=_left(state.ahead, cursor_ms),
        plan=NO_PLAN,
    )
    return _remember(updated, event.command_id)


def _resumed(state: ScheduleState, event: ScheduleResumed) -> ScheduleState:
    cursor_ms = max(state.cursor_ms, event.decided_at_ms)
    resumed = replace(
        state,
        pause_code=None,
        paused_by=None,
        note="",
        cursor_ms=cursor_ms,
        ahead=_left(state.ahead, cursor_ms),
        plan=NO_PLAN,
    )
    return _remember(resumed, event.command_id)


def _backfill_accepted(state: ScheduleState, event: BackfillAccepted) -> ScheduleState:
    backfill = Backfill(
        command_id=event.command_id,
        actor=event.actor,
        reason=event.reason,
        after_ms=event.from_ms - 1,
        until_ms=event.until_ms,
    )
    return _remember(replace(state, backfills=(*state.backfills, backfill)), event.command_id)


def _remember(state: ScheduleState, command_id: str) -> ScheduleState:
    return replace(state, command_ids=(*state.command_ids, command_id)[-_COMMANDS_KEPT:])
