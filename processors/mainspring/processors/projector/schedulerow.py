"""One row of `schedules` while it is being changed: the state that is folded, the definition, and what comes next."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from mainspring.processors.core.schedule.ahead import open_times
from mainspring.processors.core.schedule.evolve import NO_PLAN
from mainspring.processors.core.timing import Timing, tzdata_version
from mainspring.processors.projector.definition import (
    definition_data,
    definition_of,
    rest_data,
    rest_of,
    timing_data,
)
from mainspring.processors.projector.text import clean, clean_or_none
from mainspring.schemas.schedule import ScheduleSpec, ScheduleStatus
from mainspring.schemas.tables import Plan, ScheduleState

__all__ = ["ScheduleRow", "schedule_state_of"]

_SAME_NAME = (
    *("schedule_id", "revision", "incarnation", "version", "created_at_ms", "updated_at_ms", "cursor_ms"),
    *("busy_until_ms", "triggered_ms", "runs", "fired", "skipped", "failed", "last_nominal_ms"),
)
_OTHER_COLUMNS = frozenset(
    {"status", "last_job_id", "last_outcome", "pause_code", "paused_by", "note", "create_command_id"}
)
_REST = tuple(
    each.name
    for each in fields(ScheduleState)
    if each.name not in _SAME_NAME and each.name not in _OTHER_COLUMNS and each.name != "plan"
)
"""What a schedule has several of: kept together, as nothing is looked for by it."""


@dataclass(slots=True, kw_only=True)
class ScheduleRow:
    """One schedule as the view will show it."""

    state: ScheduleState
    spec: ScheduleSpec
    partition: int
    last_event_type: str
    last_event_offset: int
    last_event_at_ms: int
    planned: tuple[tuple[int, int, ScheduleStatus], Plan] | None = None
    """The next occurrence, and the version, cursor and status that it was computed for."""
    written: tuple[ScheduleSpec, str, str] | None = None
    """What `timing_data` and `definition_data` made of this definition."""

    @classmethod
    def loaded(cls, row: Mapping[Any, Any]) -> "ScheduleRow":
        """The row as the database has it."""
        state = schedule_state_of(row)
        plan = Plan(nominal_ms=row["next_nominal_ms"], fire_at_ms=row["next_fire_ms"], tzdata=row["tzdata"])
        spec = definition_of(row["timing"], row["definition"])
        return cls(
            state=state,
            spec=spec,
            partition=row["partition"],
            last_event_type=row["last_event_type"],
            last_event_offset=row["last_event_offset"],
            last_event_at_ms=row["last_event_at_ms"],
            planned=(_planned_for(state), plan) if plan.tzdata == tzdata_version() else None,
            written=(spec, row["timing"], row["definition"]),
        )

    def values(self) -> dict[str, Any]:
        """All columns, by name."""
        state, spec, plan = self.state, self.spec, self._plan()
        if self.written is None or self.written[0] is not spec:
            self.written = spec, timing_data(spec), definition_data(spec)
        _, timing, definition = self.written
        return {
            **{name: getattr(state, name) for name in _SAME_NAME},
            "partition": self.partition,
            "status": state.status.name,
            "job_name": clean(spec.job.name),
            "queue": clean(spec.job.queue),
            "tenant": clean(spec.job.tenant),
            "note": clean(spec.note),
            "timing": timing,
            "definition": definition,
            "create_command_id": clean(state.create_command_id),
            "next_nominal_ms": plan.nominal_ms,
            "next_fire_ms": plan.fire_at_ms,
            "tzdata": plan.tzdata,
            "running": len(state.active),
            "rest": rest_data(state, _REST),
            "last_job_id": clean_or_none(state.last_job_id),
            "last_outcome": clean_or_none(state.last_outcome),
            "pause_code": clean_or_none(state.pause_code),
            "paused_by": clean_or_none(state.paused_by),
            "pause_note": clean(state.note),
            "last_event_type": self.last_event_type,
            "last_event_offset": self.last_event_offset,
            "last_event_at_ms": self.last_event_at_ms,
        }

    def _plan(self) -> Plan:
        wanted = _planned_for(self.state)
        if self.planned is None or self.planned[0] != wanted:
            self.planned = wanted, _next(self.state, self.spec)
        return self.planned[1]


def _planned_for(state: ScheduleState) -> tuple[int, int, ScheduleStatus]:
    return state.version, state.cursor_ms, state.status


def _next(state: ScheduleState, spec: ScheduleSpec) -> Plan:
    plan = Plan(tzdata=tzdata_version())
    if state.status is not ScheduleStatus.ACTIVE:
        return plan
    try:
        timing = open_times(Timing(spec.timing, state.schedule_id, state.created_at_ms), state.ahead)
        following = timing.next_after(state.cursor_ms)
    except Exception:  # noqa: BLE001 - rules that this version cannot compute; the scheduler pauses their schedule
        return plan
    if following is None:
        return plan
    return replace(plan, nominal_ms=following.nominal_ms, fire_at_ms=following.fire_at_ms)


def schedule_state_of(row: Mapping[Any, Any]) -> ScheduleState:
    """The state as its row tells it, without a plan: the fold of the schedule's events up to `last_event_offset`."""
    return ScheduleState(
        **{name: row[name] for name in _SAME_NAME},
        status=ScheduleStatus[row["status"]],
        last_job_id=row["last_job_id"],
        last_outcome=row["last_outcome"],
        pause_code=row["pause_code"],
        paused_by=row["paused_by"],
        note=row["pause_note"],
        create_command_id=row["create_command_id"],
        plan=NO_PLAN,
        **rest_of(row["rest"]),
    )
