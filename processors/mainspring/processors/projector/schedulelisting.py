"""Lists of schedules, of their ledgers and of what befell them; pages by key, as those of jobs."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, false, or_, select, tuple_

from mainspring.processors.projector.cursors import cursor_of, read_cursor
from mainspring.processors.projector.definition import definition_of, rest_of, timing_of
from mainspring.processors.projector.schedulemodel import (
    OccurrenceFilter,
    OccurrencePage,
    OccurrenceRecord,
    ScheduleChange,
    ScheduleChangePage,
    ScheduleDetail,
    ScheduleFilter,
    ScheduleOrder,
    SchedulePage,
    ScheduleSummary,
)
from mainspring.processors.projector.tables import occurrences, schedule_changes, schedules
from mainspring.processors.projector.text import clean
from mainspring.schemas.common import CauseSource
from mainspring.schemas.schedule import ScheduleStatus

__all__ = [
    "changes_page",
    "changes_statement",
    "ledger_page",
    "ledger_statement",
    "schedule_detail_of",
    "schedule_detail_statement",
    "schedule_page",
    "schedule_statement",
]

_SUMMARY = [schedules.c[name] for name in ScheduleSummary.__dataclass_fields__]
_DETAIL = [*_SUMMARY, *(schedules.c[name] for name in ("definition", "create_command_id", "cursor_ms", "rest"))]
_LEDGER = [occurrences.c[name] for name in OccurrenceRecord.__dataclass_fields__]
_CHANGES = [schedule_changes.c[name] for name in ScheduleChange.__dataclass_fields__]

_LEDGER_ORDER, _CHANGES_ORDER = "ledger", "changes"


# Schedules.


def schedule_detail_statement(schedule_id: str) -> Select[Any]:
    """The statement of one schedule with all columns."""
    return select(*_DETAIL).where(schedules.c.schedule_id == clean(schedule_id))


def schedule_statement(filters: ScheduleFilter, order: ScheduleOrder, cursor: str | None) -> Select[Any]:
    """The statement of one page. ValueError when the cursor is not one of this order."""
    statement = select(*_SUMMARY).where(*_schedule_conditions(filters))
    key = schedules.c.schedule_id
    if order is ScheduleOrder.ID:
        if cursor is not None:
            statement = statement.where(key > read_cursor(cursor, order, str)[0])
        return statement.order_by(key)
    column = schedules.c.next_fire_ms if order is ScheduleOrder.NEXT else schedules.c.created_at_ms
    is_next = order is ScheduleOrder.NEXT
    if is_next:
        statement = statement.where(column.is_not(None))
    if cursor is not None:
        at_ms, schedule_id = read_cursor(cursor, order, int, str)
        beyond = column > at_ms if is_next else column < at_ms
        further = key > schedule_id if is_next else key < schedule_id
        statement = statement.where(or_(beyond, and_(column == at_ms, further)))
    return statement.order_by(column, key) if is_next else statement.order_by(column.desc(), key.desc())


def _schedule_conditions(filters: ScheduleFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if filters.status:
        conditions.append(schedules.c.status.in_([status.name for status in filters.status]))
    for name in ("job_name", "queue", "tenant"):
        value = getattr(filters, name)
        if value is not None:
            conditions.append(schedules.c[name] == clean(value))
    if filters.text:
        columns = (schedules.c.schedule_id, schedules.c.job_name, schedules.c.note)
        found = [column.icontains(filters.text, autoescape=True) for column in columns]
        conditions.append(false() if "\x00" in filters.text else or_(*found))
    return conditions


def schedule_page(rows: Sequence[Mapping[Any, Any]], order: ScheduleOrder, limit: int) -> SchedulePage:
    """The page, and the way to the next one when a row beyond the limit was found."""
    page = tuple(ScheduleSummary(**_typed(row)) for row in rows[:limit])
    if len(rows) <= limit:
        return SchedulePage(schedules=page, next_cursor=None)
    last = page[-1]
    keys: tuple[Any, ...] = (last.schedule_id,)
    if order is not ScheduleOrder.ID:
        keys = (last.next_fire_ms if order is ScheduleOrder.NEXT else last.created_at_ms, last.schedule_id)
    return SchedulePage(schedules=page, next_cursor=cursor_of(order, *keys))


def schedule_detail_of(row: Mapping[Any, Any]) -> ScheduleDetail:
    """A row with all columns."""
    values = _typed(row)
    values["definition"] = definition_of(row["timing"], row["definition"])
    rest = rest_of(values.pop("rest"))
    values |= {"active": rest["active"], "backfills": rest["backfills"]}
    return ScheduleDetail(**values)


def _typed(row: Mapping[Any, Any]) -> dict[str, Any]:
    values = {str(name): value for name, value in row.items()}
    values["status"] = ScheduleStatus[values["status"]]
    values["timing"] = timing_of(values["timing"])
    return values


# Ledgers.


def ledger_statement(schedule_id: str, filters: OccurrenceFilter, cursor: str | None) -> Select[Any]:
    """The statement of one page, what was decided last first. ValueError when the cursor is of another list."""
    statement = select(*_LEDGER).where(occurrences.c.schedule_id == clean(schedule_id))
    if filters.outcomes:
        statement = statement.where(occurrences.c.outcome.in_(filters.outcomes))
    if filters.ended:
        statement = statement.where(occurrences.c.ended.in_(filters.ended))
    if filters.since_ms is not None:
        statement = statement.where(occurrences.c.last_ms >= filters.since_ms)
    if filters.until_ms is not None:
        statement = statement.where(occurrences.c.first_ms < filters.until_ms)
    place = (occurrences.c.incarnation, occurrences.c.revision)
    if cursor is not None:
        statement = statement.where(tuple_(*place) < tuple_(*read_cursor(cursor, _LEDGER_ORDER, int, int)))
    return statement.order_by(*(column.desc() for column in place))


def ledger_page(rows: Sequence[Mapping[Any, Any]], limit: int) -> OccurrencePage:
    """The page, and the way to the next one when a row beyond the limit was found."""
    page = tuple(OccurrenceRecord(**row) for row in rows[:limit])
    more = len(rows) > limit
    cursor = cursor_of(_LEDGER_ORDER, page[-1].incarnation, page[-1].revision) if more else None
    return OccurrencePage(occurrences=page, next_cursor=cursor)


# What else befell a schedule.


def changes_statement(schedule_id: str, cursor: str | None) -> Select[Any]:
    """The statement of one page, the newest first. ValueError when the cursor is of another list."""
    statement = select(*_CHANGES).where(schedule_changes.c.schedule_id == clean(schedule_id))
    if cursor is not None:
        # The events of a schedule are on one partition.
        statement = statement.where(schedule_changes.c.offset < read_cursor(cursor, _CHANGES_ORDER, int)[0])
    return statement.order_by(schedule_changes.c.offset.desc())


def changes_page(rows: Sequence[Mapping[Any, Any]], limit: int) -> ScheduleChangePage:
    """The page, and the way to the next one when a row beyond the limit was found."""
    page = tuple(_change_of(row) for row in rows[:limit])
    cursor = cursor_of(_CHANGES_ORDER, page[-1].offset) if len(rows) > limit else None
    return ScheduleChangePage(changes=page, next_cursor=cursor)


def _change_of(row: Mapping[Any, Any]) -> ScheduleChange:
    values = {str(name): value for name, value in row.items()}
    values["cause_source"] = CauseSource[values["cause_source"]]
    values["data"] = json.loads(values["data"])
    return ScheduleChange(**values)
