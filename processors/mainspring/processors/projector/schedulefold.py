"""From the events of schedules to the rows they change: the schedules, their ledger, and what else befell them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mainspring.processors.core.errors import CoreError
from mainspring.processors.core.schedule.evolve import evolve_schedule
from mainspring.processors.projector.eventdata import event_row
from mainspring.processors.projector.placed import InapplicableEventError, Placed
from mainspring.processors.projector.schedulemodel import FIRED
from mainspring.processors.projector.schedulerow import ScheduleRow
from mainspring.processors.projector.text import ID_CHARS, clean, clean_or_none
from mainspring.schemas.records import ScheduleEvent
from mainspring.schemas.schedule_events import (
    InstanceEnded,
    OccurrenceFired,
    OccurrencesSkipped,
    ScheduleCommandRejected,
    ScheduleCreated,
    ScheduleUpdated,
)
from mainspring.schemas.tables import ScheduleState

__all__ = ["ScheduleChanges", "ScheduleFold"]

Row = dict[str, Any]
EntryKey = tuple[str, int, int]
"""Schedule id, incarnation, revision of the event."""


@dataclass(slots=True)
class ScheduleChanges:
    """What one batch changes. `rows` holds each touched schedule once; None: it was deleted."""

    rows: dict[str, ScheduleRow | None] = field(default_factory=dict)
    entries: dict[EntryKey, Row] = field(default_factory=dict)
    ended: dict[EntryKey, Row] = field(default_factory=dict)
    deleted: dict[tuple[str, int], int] = field(default_factory=dict)
    """By id and incarnation, when: instances that have not ended will tell nobody that they did."""
    changes: list[Row] = field(default_factory=list)


class ScheduleFold:
    """Folds the schedule events of one batch. The rows of `known` are changed in place, so they serve one batch."""

    def __init__(self, known: Mapping[str, ScheduleRow]) -> None:
        self.changes = ScheduleChanges()
        self._known = known

    def apply(self, event: ScheduleEvent, placed: Placed) -> None:
        """Takes the event of `placed`. Raises InapplicableEventError and leaves everything as it was."""
        if isinstance(event, ScheduleCommandRejected):
            self._note(event, placed)
            return
        schedule_id = event.schedule_id
        row = self.changes.rows[schedule_id] if schedule_id in self.changes.rows else self._known.get(schedule_id)
        try:
            state = evolve_schedule(None if row is None else row.state, event)
        except CoreError as error:
            raise InapplicableEventError(str(error)) from error
        if state is None:
            assert row is not None, schedule_id
            self.changes.rows[schedule_id] = None
            self.changes.deleted[schedule_id, row.state.incarnation] = event.decided_at_ms
        else:
            self.changes.rows[schedule_id] = _changed(row, state, event, placed)
        self._record(event, state, placed)

    def _record(self, event: ScheduleEvent, state: ScheduleState | None, placed: Placed) -> None:
        if state is not None and isinstance(event, OccurrenceFired | OccurrencesSkipped):
            key = (event.schedule_id, state.incarnation, event.revision)
            self.changes.entries[key] = {
                **dict(zip(("schedule_id", "incarnation", "revision"), key, strict=True)),
                "partition": placed.partition,
                "offset": placed.offset,
                **(_fired(event) if isinstance(event, OccurrenceFired) else _skipped(event)),
            }
        elif state is not None and isinstance(event, InstanceEnded):
            self._end(event, (event.schedule_id, state.incarnation, event.fired_revision))
        else:
            self._note(event, placed)

    def _end(self, event: InstanceEnded, key: EntryKey) -> None:
        end: Row = {
            "ended": clean(event.outcome),
            "ended_detail": clean(event.detail),
            "ended_at_ms": event.finished_at_ms,
            "settled_at_ms": event.decided_at_ms,
        }
        entry = self.changes.entries.get(key)
        if entry is not None:
            entry.update(end)
        else:
            self.changes.ended[key] = dict(zip(("of_id", "of_incarnation", "of_revision"), key, strict=True)) | end

    def _note(self, event: ScheduleEvent, placed: Placed) -> None:
        row = event_row(placed)
        row["schedule_id"] = clean(event.schedule_id)[:ID_CHARS]
        self.changes.changes.append(row)


def _changed(row: ScheduleRow | None, state: ScheduleState, event: ScheduleEvent, placed: Placed) -> ScheduleRow:
    if isinstance(event, ScheduleCreated):
        return ScheduleRow(
            state=state,
            spec=event.spec,
            partition=placed.partition,
            last_event_type=type(event).__name__,
            last_event_offset=placed.offset,
            last_event_at_ms=event.decided_at_ms,
        )
    assert row is not None, event.schedule_id
    row.state = state
    if isinstance(event, ScheduleUpdated):
        row.spec = event.spec
    row.last_event_type = type(event).__name__
    row.last_event_offset = placed.offset
    row.last_event_at_ms = event.decided_at_ms
    return row


def _fired(event: OccurrenceFired) -> Row:
    return {
        "outcome": FIRED,
        "first_ms": event.nominal_ms,
        "last_ms": event.nominal_ms,
        "count": 1,
        "decided_at_ms": event.decided_at_ms,
        "version": event.version,
        "reason": clean(event.reason),
        "tzdata": clean(event.tzdata),
        "fire_at_ms": event.fire_at_ms,
        "origin": clean(event.origin),
        "job_id": clean(event.job_id),
        "command_id": clean_or_none(event.command_id),
        "actor": clean_or_none(event.actor),
        "ended": None,
        "ended_detail": None,
        "ended_at_ms": None,
        "settled_at_ms": None,
    }


def _skipped(event: OccurrencesSkipped) -> Row:
    return {
        "outcome": clean(event.outcome),
        "first_ms": event.first_ms,
        "last_ms": event.last_ms,
        "count": event.count,
        "decided_at_ms": event.decided_at_ms,
        "version": event.version,
        "reason": clean(event.reason),
        "tzdata": clean(event.tzdata),
        "fire_at_ms": None,
        "origin": None,
        "job_id": None,
        "command_id": None,
        "actor": None,
        "ended": None,
        "ended_detail": None,
        "ended_at_ms": None,
        "settled_at_ms": event.decided_at_ms,
    }
