"""`mainspring schedule create`."""

import time
from typing import Annotated

import typer

from mainspring.cli import schedule_options as terms
from mainspring.cli import schedule_timing as when
from mainspring.cli.connect import open_client
from mainspring.cli.context import settings_of
from mainspring.cli.job_app import job_of
from mainspring.cli.options import Reason
from mainspring.cli.output import Output, OutputOption, escape, note, print_json, stdout
from mainspring.cli.schedule_page import next_text, schedule_json


def create(
    ctx: typer.Context,
    schedule_id: terms.ScheduleId,
    name: Annotated[
        str, typer.Argument(help="Name that the job's handler is registered under.", metavar="NAME", show_default=False)
    ],
    *,
    cron: when.Crons = None,
    every: when.Everies = None,
    tz: when.TimeZone = "UTC",
    seconds: when.Seconds = False,
    exclude: when.Excludes = None,
    anchor: when.Anchor = None,
    start: when.Start = None,
    end: when.End = None,
    jitter: when.Jitter = None,
    gap: when.GapOption = when.GapName.END_OF_GAP,
    fold: when.FoldOption = when.FoldName.FIRST,
    app: terms.AppOption = None,
    payload: terms.Payload = None,
    queue: terms.Queue = None,
    priority: terms.PriorityOption = None,
    tenant: terms.Tenant = None,
    tag: terms.Tags = None,
    timeout: terms.Timeout = None,
    retries: terms.Retries = None,
    retry_delay: terms.RetryDelay = None,
    retry_max_delay: terms.RetryMaxDelay = None,
    max_lost: terms.MaxLost = None,
    overlap: terms.OverlapOption = None,
    buffer_max: terms.BufferMax = None,
    catch_up: terms.CatchUpOption = None,
    catch_up_window: terms.CatchUpWindow = None,
    max_runs: terms.MaxRuns = None,
    pause_on_failure: terms.PauseOnFailure = None,
    description: terms.Note = None,
    reason: Reason = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Have a job fired by a plan: cron expressions, intervals, or several of them. Exit code 4 when it is rejected.

    --cron, --every and --exclude may be repeated; `schedule preview` shows when it would fire.
    """
    asked = when.TimingOptions(
        crons=cron,
        everies=every,
        excludes=exclude,
        zone=tz,
        seconds=seconds,
        anchor=anchor,
        start=start,
        end=end,
        jitter=jitter,
        gap=gap,
        fold=fold,
    )
    timing = asked.timing(time.time_ns() // 1_000_000)
    options = terms.terms_of(queue, priority, tenant, tag, timeout, retries, retry_delay, retry_max_delay, max_lost)
    policies = terms.policies_of(
        overlap, buffer_max, catch_up, catch_up_window, max_runs, pause_on_failure, description
    )
    arguments = terms.arguments_of(payload)
    settings = settings_of(ctx)
    job = job_of(name, arguments, (app,) if app else (), settings.worker.app)
    with open_client(settings) as client:
        info = client.schedules.create(schedule_id, timing, job, arguments, options=options, reason=reason, **policies)
    if output is Output.JSON:
        print_json(schedule_json(info))
        return
    stdout().print(escape(schedule_id))
    note(f"[green]accepted[/]: {escape(info.in_words())}; {next_text(info)}")
