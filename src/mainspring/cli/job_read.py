"""`mainspring job get|list`: from the view."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from mainspring.cli.connect import open_client
from mainspring.cli.context import settings_of
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.job_ids import whole_id
from mainspring.cli.job_page import print_page
from mainspring.cli.jobs_view import COLUMNS, attempt_json, detail_json, event_json, summary_json, summary_row
from mainspring.cli.options import (
    Duration,
    JobId,
    OrderName,
    PriorityName,
    StatusName,
    duration_option,
    priority_option,
    status_name,
)
from mainspring.cli.output import Output, OutputOption, note, print_json, print_table
from mainspring.cli.show import STATUS_STYLES
from mainspring.cli.view_source import open_view

if TYPE_CHECKING:
    from mainspring.processors.projector.view import JobCounts, JobDetail, View
    from mainspring.settings import Settings

_CATCH_UP_S = 5.0


def get(ctx: typer.Context, job_id: JobId, output: OutputOption = Output.TABLE) -> None:
    """Show one job: where it stands, its terms, its attempts and its whole history."""
    settings = settings_of(ctx)
    job_id = whole_id(settings, job_id)
    with open_view(settings) as view:
        job = view.get(job_id) or _catch_up(settings, view, job_id)
        if job is None:
            raise not_found(job_id)
        attempts, events = view.attempts(job_id), view.events(job_id)
    if output is Output.JSON:
        parts = {"attempts": [attempt_json(each) for each in attempts], "events": [event_json(each) for each in events]}
        print_json(detail_json(job) | parts)
    else:
        print_page(job, attempts, events)


def list_(
    ctx: typer.Context,
    status: Annotated[
        list[StatusName] | None,
        typer.Option(
            parser=status_name,
            help="Only jobs in this state (PENDING, RUNNING, RETRY_WAIT, COMPLETED, FAILED, TIMED_OUT, CANCELLED); "
            "may be repeated.",
            metavar="STATUS",
        ),
    ] = None,
    queue: Annotated[str | None, typer.Option(help="Only this queue.", metavar="NAME")] = None,
    name: Annotated[str | None, typer.Option(help="Only jobs of this name.", metavar="NAME")] = None,
    tenant: Annotated[str | None, typer.Option(help="Only this tenant.", metavar="NAME")] = None,
    tag: Annotated[str | None, typer.Option(help="Only jobs with this tag.", metavar="TAG")] = None,
    priority: Annotated[
        PriorityName | None, priority_option("Only this priority: LOW, MEDIUM, HIGH or CRITICAL.")
    ] = None,
    schedule: Annotated[
        str | None, typer.Option(help="Only what this schedule has fired.", metavar="SCHEDULE_ID")
    ] = None,
    search: Annotated[str | None, typer.Option(help="Part of the id or of the name.", metavar="TEXT")] = None,
    since: Annotated[Duration, duration_option("--since", "Submitted within this time: 10m, 2h, 1d.")] = None,
    order: Annotated[OrderName, typer.Option(help="Which come first.")] = OrderName.NEWEST,
    limit: Annotated[int, typer.Option(help="Jobs on a page.", min=1, max=500)] = 50,
    cursor: Annotated[str | None, typer.Option(help="Go on behind a page: its next_cursor.", metavar="TEXT")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List jobs, the newest first."""
    from mainspring.processors.projector.view import JobFilter, JobOrder
    from mainspring.schemas.common import JobStatus, Priority

    now_ms = time.time_ns() // 1_000_000
    filters = JobFilter(
        status=tuple(JobStatus[each.value] for each in status or ()),
        queue=queue,
        name=name,
        tenant=tenant,
        tag=tag,
        priority=None if priority is None else Priority[priority.value],
        schedule_id=schedule,
        since_ms=None if since is None else now_ms - round(since.total_seconds() * 1000),
        text=search,
    )
    with open_view(settings_of(ctx)) as view:
        try:
            page = view.list(filters, order=JobOrder(order.value), limit=limit, cursor=cursor)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--cursor") from None
        counts = view.counts()
    if output is Output.JSON:
        print_json({"jobs": [summary_json(job) for job in page.jobs], "next_cursor": page.next_cursor})
        return
    empty = (
        "No job matches." if filters != JobFilter() else "No jobs yet. Submit one: [bold]mainspring job submit NAME[/]"
    )
    print_table(COLUMNS, [summary_row(job, now_ms) for job in page.jobs], empty=empty)
    if counts.total:
        note("\n" + counts_text(counts))
    if page.next_cursor:
        note(f"[dim]More: --cursor {page.next_cursor}[/]")


def _catch_up(settings: "Settings", view: "View", job_id: str) -> "JobDetail | None":
    """The job, once the view has come as far as the log; None when the log does not tell of it either."""
    with open_client(settings) as client:
        history = client.history(job_id)
    if not history or not view.wait_for(history[-1].partition, history[-1].offset, _CATCH_UP_S):
        return None
    return view.get(job_id)


def not_found(job_id: str) -> CliError:
    """No such job."""
    return CliError(
        f"There is no job {job_id!r} in the view.",
        why="The id is wrong, another installation (topics.prefix) has it, or the view is behind: no projector runs.",
        hint="`mainspring job list --search TEXT` looks for it.",
        code=ExitCode.NOT_FOUND,
    )


def counts_text(counts: "JobCounts") -> str:
    """How many jobs there are in each state, on a line (rich markup); empty when there are none."""
    if not counts.total:
        return ""
    parts = [
        f"[{STATUS_STYLES[status.name]}]{number} {status.name}[/]"
        for status, number in sorted(counts.by_status.items())
        if number
    ]
    return f"[dim]{counts.total} {'job' if counts.total == 1 else 'jobs'} in all:[/] " + "[dim],[/] ".join(parts)
