"""`mainspring schedule get|list`: from the view."""

import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring.cli.connect import open_client
from mainspring.cli.context import settings_of
from mainspring.cli.durations import brief_duration
from mainspring.cli.output import Column, Output, OutputOption, note, print_json, print_table
from mainspring.cli.schedule_options import ScheduleId
from mainspring.cli.schedule_page import definition_json, print_schedule, schedule_json, schedule_status_text
from mainspring.cli.show import iso
from mainspring.cli.view_source import open_view

if TYPE_CHECKING:
    from mainspring.processors.projector.view import ScheduleSummary

_COLUMNS = (
    Column(head="SCHEDULE"),
    Column(head="STATUS"),
    Column(head="JOB", least=12, drop=2),
    Column(head="NEXT", right=True),
    Column(head="LAST", right=True, drop=3),
    Column(head="LAST END", drop=4),
    Column(head="FIRED", right=True, drop=5),
    Column(head="SKIPPED", right=True, drop=7),
    Column(head="FAILED", right=True, drop=6),
    Column(head="WHEN", least=20, drop=1),
)


class ScheduleStatusName(StrEnum):
    """The states of a schedule, by name."""

    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"


class ScheduleOrderName(StrEnum):
    """The orders of a list."""

    ID = "id"
    NEXT = "next"
    NEWEST = "newest"


def get(ctx: typer.Context, schedule_id: ScheduleId, output: OutputOption = Output.TABLE) -> None:
    """Show one schedule: where it stands, its definition, and when it fires next. Exit code 3 when there is none."""
    from mainspring.client import ScheduleNotFoundError
    from mainspring.client.schedules import ScheduleInfo

    with open_client(settings_of(ctx)) as client:
        try:
            info = client.schedules.get(schedule_id)
        except ScheduleNotFoundError:
            told = ScheduleInfo.of_events(entry.event for entry in client.schedules.history(schedule_id))
            if told is None:
                raise
            info = told  # the view has not come so far
    if output is Output.JSON:
        print_json(schedule_json(info))
    else:
        print_schedule(info)


def list_(
    ctx: typer.Context,
    status: Annotated[
        list[ScheduleStatusName] | None, typer.Option(help="Only schedules in this state; may be repeated.")
    ] = None,
    job: Annotated[str | None, typer.Option(help="Only those that fire this job.", metavar="NAME")] = None,
    queue: Annotated[str | None, typer.Option(help="Only those of this queue.", metavar="NAME")] = None,
    tenant: Annotated[str | None, typer.Option(help="Only this tenant's.", metavar="NAME")] = None,
    search: Annotated[str | None, typer.Option(help="Part of the id, the job or the note.", metavar="TEXT")] = None,
    order: Annotated[ScheduleOrderName, typer.Option(help="Which come first.")] = ScheduleOrderName.ID,
    limit: Annotated[int, typer.Option(help="Schedules on a page.", min=1, max=500)] = 50,
    cursor: Annotated[str | None, typer.Option(help="Go on behind a page: its next_cursor.", metavar="TEXT")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List schedules: where each stands, and when it fires next."""
    from mainspring.processors.projector.view import ScheduleFilter, ScheduleOrder
    from mainspring.schemas.schedule import ScheduleStatus

    filters = ScheduleFilter(
        status=tuple(ScheduleStatus[each.name] for each in status or ()),
        job_name=job,
        queue=queue,
        tenant=tenant,
        text=search,
    )
    with open_view(settings_of(ctx)) as view:
        try:
            page = view.schedules(filters, order=ScheduleOrder(order.value), limit=limit, cursor=cursor)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--cursor") from None
    if output is Output.JSON:
        print_json({"schedules": [_json(each) for each in page.schedules], "next_cursor": page.next_cursor})
        return
    now_ms = time.time_ns() // 1_000_000
    empty = "No schedule matches." if filters != ScheduleFilter() else "No schedules yet: mainspring schedule create"
    print_table(_COLUMNS, [_row(each, now_ms) for each in page.schedules], empty=empty)
    if page.next_cursor:
        note(f"[dim]More: --cursor {page.next_cursor}[/]")


def _json(schedule: "ScheduleSummary") -> dict[str, Any]:
    return {
        "schedule_id": schedule.schedule_id,
        "status": schedule.status.name,
        "version": schedule.version,
        "revision": schedule.revision,
        "job": schedule.job_name,
        "queue": schedule.queue,
        "tenant": schedule.tenant,
        "note": schedule.note,
        "when": _words(schedule),
        "timing": definition_json(schedule.timing),
        "next_run": iso(schedule.next_nominal_ms),
        "created_at": iso(schedule.created_at_ms),
        "updated_at": iso(schedule.updated_at_ms),
        "runs": schedule.runs,
        "fired": schedule.fired,
        "skipped": schedule.skipped,
        "failed": schedule.failed,
        "running": schedule.running,
        "last_run": iso(schedule.last_nominal_ms),
        "last_job_id": schedule.last_job_id,
        "last_outcome": schedule.last_outcome,
        "pause_code": schedule.pause_code,
        "paused_by": schedule.paused_by,
        "pause_note": schedule.pause_note,
    }


def _row(schedule: "ScheduleSummary", now_ms: int) -> list[Any]:
    return [
        schedule.schedule_id,
        schedule_status_text(schedule.status.name),
        schedule.job_name,
        _away(schedule.next_fire_ms, now_ms),
        _away(schedule.last_nominal_ms, now_ms),
        schedule.last_outcome or "",
        schedule.fired,
        schedule.skipped,
        schedule.failed,
        _words(schedule),
    ]


def _away(at_ms: int | None, now_ms: int) -> str:
    if at_ms is None:
        return ""
    seconds = (at_ms - now_ms) / 1000
    return f"in {brief_duration(seconds)}" if seconds > 0 else f"{brief_duration(-seconds)} ago"


def _words(schedule: "ScheduleSummary") -> str:
    from mainspring.processors.core.timing import Timing

    return Timing(schedule.timing, schedule.schedule_id, schedule.created_at_ms).describe()
