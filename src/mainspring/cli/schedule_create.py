"""`mainspring schedule create`."""

import time
from typing import Annotated

import typer

from mainspring.cli.connect import open_client
from mainspring.cli.context import settings_of
from mainspring.cli.job_app import job_of
from mainspring.cli.option_groups import grouped
from mainspring.cli.options import AppOption, Reason, arguments_of
from mainspring.cli.output import Output, OutputOption, escape, note, print_json, stdout
from mainspring.cli.schedule_options import InstanceTerms, Payload, Policies, ScheduleId
from mainspring.cli.schedule_page import next_text, schedule_json
from mainspring.cli.schedule_timing import NewTimingOptions


@grouped
def create(
    ctx: typer.Context,
    schedule_id: ScheduleId,
    name: Annotated[
        str, typer.Argument(help="Name that the job's handler is registered under.", metavar="NAME", show_default=False)
    ],
    *,
    asked: NewTimingOptions,
    app: AppOption = None,
    payload: Payload = None,
    terms: InstanceTerms,
    policies: Policies,
    reason: Reason = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Have a job fired by a plan: cron expressions, intervals, or several of them. Exit code 4 when it is rejected.

    --cron, --every and --exclude may be repeated; `schedule preview` shows when it would fire.
    """
    timing = asked.timing(time.time_ns() // 1_000_000)
    options = terms.options()
    arguments = arguments_of(payload)
    settings = settings_of(ctx)
    job = job_of(name, arguments, (app,) if app else (), settings.worker.app)
    with open_client(settings) as client:
        info = client.schedules.create(
            schedule_id, timing, job, arguments, options=options, reason=reason, **policies.given()
        )
    if output is Output.JSON:
        print_json(schedule_json(info))
        return
    stdout().print(escape(schedule_id))
    note(f"[green]accepted[/]: {escape(info.in_words())}; {next_text(info)}")
