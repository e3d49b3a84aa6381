"""Lists of jobs: conditions, order, and pages by key instead of by number, so that a page is as cheap as the first."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, false, or_, select

from mainspring.processors.projector.cursors import cursor_of, read_cursor
from mainspring.processors.projector.model import JobDetail, JobFilter, JobOrder, JobPage, JobSummary
from mainspring.processors.projector.tables import job_specs, job_tags, jobs
from mainspring.processors.projector.text import clean
from mainspring.schemas.common import JobStatus, Priority

__all__ = ["DETAIL", "SUMMARY", "detail_of", "page_statement", "summary_of", "take_page"]

_SPEC_COLUMNS = ("payload", "payload_bytes", "content_type", "spec")

SUMMARY = [jobs.c[name] for name in JobSummary.__dataclass_fields__]
DETAIL = [(job_specs if name in _SPEC_COLUMNS else jobs).c[name] for name in JobDetail.__dataclass_fields__]

_ORDERS = {
    JobOrder.NEWEST: (jobs.c.submitted_at_ms, True),
    JobOrder.OLDEST: (jobs.c.submitted_at_ms, False),
    JobOrder.DUE: (jobs.c.due_at_ms, False),
    JobOrder.FINISHED: (jobs.c.finished_at_ms, True),
}


def page_statement(base: Select[Any], filters: JobFilter, order: JobOrder, cursor: str | None) -> Select[Any]:
    """The statement of one page. ValueError when the cursor is not one of this order."""
    column, descending = _ORDERS[order]
    statement = base.where(*_conditions(filters))
    if order is JobOrder.FINISHED:
        statement = statement.where(column.is_not(None))
    if cursor is not None:
        at_ms, job_id = read_cursor(cursor, order, int, str)
        beyond = column < at_ms if descending else column > at_ms
        further = jobs.c.job_id < job_id if descending else jobs.c.job_id > job_id
        statement = statement.where(or_(beyond, and_(column == at_ms, further)))
    keys = (column, jobs.c.job_id)
    return statement.order_by(*(key.desc() if descending else key.asc() for key in keys))


def take_page(found: Sequence[JobSummary], order: JobOrder, limit: int) -> JobPage:
    """The page, and the way to the next one when a job beyond the limit was found."""
    page = tuple(found[:limit])
    if len(found) <= limit:
        return JobPage(jobs=page, next_cursor=None)
    column, _ = _ORDERS[order]
    return JobPage(jobs=page, next_cursor=cursor_of(order, getattr(page[-1], column.name), page[-1].job_id))


def _conditions(filters: JobFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if filters.status:
        conditions.append(jobs.c.status.in_([status.name for status in filters.status]))
    for name in ("queue", "name", "tenant", "schedule_id"):
        value = getattr(filters, name)
        if value is not None:
            conditions.append(jobs.c[name] == clean(value))
    if filters.tenant:
        # Said once more, so that the partial index on tenants may be used.
        conditions.append(jobs.c.tenant != "")
    if filters.priority is not None:
        conditions.append(jobs.c.priority == int(filters.priority))
    if filters.tag is not None:
        conditions.append(jobs.c.job_id.in_(select(job_tags.c.job_id).where(job_tags.c.tag == clean(filters.tag))))
    if filters.since_ms is not None:
        conditions.append(jobs.c.submitted_at_ms >= filters.since_ms)
    if filters.until_ms is not None:
        conditions.append(jobs.c.submitted_at_ms < filters.until_ms)
    if filters.text:
        conditions.append(_contains(filters.text))
    return conditions


def _contains(text: str) -> ColumnElement[bool]:
    if "\x00" in text:
        return false()
    return or_(jobs.c.job_id.icontains(text, autoescape=True), jobs.c.name.icontains(text, autoescape=True))


def summary_of(row: Mapping[Any, Any]) -> JobSummary:
    """A row of a list."""
    return JobSummary(**_typed(row))


def detail_of(row: Mapping[Any, Any]) -> JobDetail:
    """A row with all columns."""
    values = _typed(row)
    values["spec"] = json.loads(values["spec"])
    return JobDetail(**values)


def _typed(row: Mapping[Any, Any]) -> dict[str, Any]:
    values = {str(name): value for name, value in row.items()}
    values["status"] = JobStatus[values["status"]]
    values["priority"] = Priority(values["priority"])
    values["tags"] = tuple(json.loads(values["tags"]))
    return values
