"""`mainspring schedule update`: another definition, or what it would change."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring.cli import schedule_options as terms
from mainspring.cli import schedule_timing as when
from mainspring.cli.connect import open_client
from mainspring.cli.context import settings_of
from mainspring.cli.job_app import job_of
from mainspring.cli.options import Reason
from mainspring.cli.output import Column, Output, OutputOption, note, print_json, print_table, stdout
from mainspring.cli.schedule_page import change_json, change_row, instant_json, instant_local

if TYPE_CHECKING:
    from mainspring.client import Client
    from mainspring.client.schedules import PlannedUpdate
    from mainspring.schemas.schedule import ScheduleTiming

_NEXT = 5
_CHANGES = (Column(head="FIELD"), Column(head="NOW", fold=True), Column(head="WITH THE UPDATE", fold=True))
_TIMES = (Column(head="NEXT NOW"), Column(head="NEXT WITH THE UPDATE"))


class ClearName(StrEnum):
    """What an update can take away."""

    EXCLUDE = "exclude"
    CALENDARS = "calendars"
    START = "start"
    END = "end"
    JITTER = "jitter"
    MAX_RUNS = "max-runs"
    NOTE = "note"


_CLEARED: dict[ClearName, dict[str, Any]] = {
    ClearName.EXCLUDE: {"exclude": ()},
    ClearName.CALENDARS: {"calendars": ()},
    ClearName.START: {"start_ms": None},
    ClearName.END: {"end_ms": None},
    ClearName.JITTER: {"jitter_ms": 0},
}


def update(
    ctx: typer.Context,
    schedule_id: terms.ScheduleId,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")] = False,
    cron: when.Crons = None,
    every: when.Everies = None,
    tz: when.TimeZoneChange = None,
    seconds: when.Seconds = False,
    exclude: when.Excludes = None,
    anchor: when.Anchor = None,
    start: when.Start = None,
    end: when.End = None,
    jitter: when.Jitter = None,
    gap: when.GapChange = None,
    fold: when.FoldChange = None,
    clear: Annotated[list[ClearName] | None, typer.Option("--clear", help="Take this away; may be repeated.")] = None,
    job: Annotated[str | None, typer.Option("--job", help="Fire this job instead.", metavar="NAME")] = None,
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
    expect_version: Annotated[
        int | None, typer.Option("--expect-version", help="Only if it has this version now.", min=1)
    ] = None,
    reason: Reason = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Give a schedule another definition: what is given replaces what it had, all else stays.

    What runs keeps the version it was fired with. --cron and --every replace all rules, --exclude all exclusions.
    Exit code 4 when it is rejected, or somebody else has changed it meanwhile; 3 when there is none.
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
    settings = settings_of(ctx)
    arguments = terms.arguments_of(payload)
    options = terms.terms_of(queue, priority, tenant, tag, timeout, retries, retry_delay, retry_max_delay, max_lost)
    policies = terms.policies_of(
        overlap, buffer_max, catch_up, catch_up_window, max_runs, pause_on_failure, description
    )
    cleared = clear or []
    policies |= {"max_runs": None} if ClearName.MAX_RUNS in cleared else {}
    policies |= {"note": ""} if ClearName.NOTE in cleared else {}
    target = None if job is None else job_of(job, arguments, (app,) if app else (), settings.worker.app)
    with open_client(settings) as client:
        plan = _plan(client, schedule_id, asked, cleared, job=target, args=arguments, options=options, **policies)
        if dry_run or not plan.changes:
            _show(plan, output)
            return
        version = expect_version or plan.before.version
        change = client.schedules.send_update(plan, expected_version=version, reason=reason)
    if output is Output.JSON:
        print_json(
            _plan_json(plan) | {"version": plan.before.version + 1, "decided_at": instant_json(change.decided_at)}
        )
    else:
        _print_changes(plan)
        note(f"[green]accepted[/]: version {plan.before.version + 1} is in force")


def _plan(
    client: "Client", schedule_id: str, asked: when.TimingOptions, cleared: list[ClearName], **changes: Any
) -> "PlannedUpdate":
    """What the update would change; `changes` are those beside the timing."""
    from mainspring.schemas.epoch import to_epoch_ms

    # From the log, as the plan is: a view may be behind it, and what it shows must not be put back in force.
    before = client.schedules.plan_update(schedule_id).before
    present = before.definition.timing
    timing = asked.changed(
        _without(present, cleared), created_ms=to_epoch_ms(before.created_at), now_ms=time.time_ns() // 1_000_000
    )
    return client.schedules.plan_update(schedule_id, when=None if timing == present else timing, **changes)


def _without(timing: "ScheduleTiming", cleared: list[ClearName]) -> "ScheduleTiming":
    changes = [_CLEARED[name] for name in cleared if name in _CLEARED]
    return replace(timing, **{field: value for change in changes for field, value in change.items()})


def _show(plan: "PlannedUpdate", output: Output) -> None:
    """What an update would change: fields, and the times to come."""
    if output is Output.JSON:
        print_json(_plan_json(plan))
        return
    if not plan.changes:
        note("It would change nothing.")
        return
    _print_changes(plan)
    before, after = _next_runs(plan)
    rows = zip_longest(map(instant_local, before), map(instant_local, after), fillvalue="-")
    stdout().print()
    print_table(_TIMES, rows, empty="It fires no more, with and without the update.")


def _print_changes(plan: "PlannedUpdate") -> None:
    print_table(_CHANGES, map(change_row, plan.changes))


def _plan_json(plan: "PlannedUpdate") -> dict[str, Any]:
    before, after = _next_runs(plan)
    return {
        "schedule_id": plan.before.schedule_id,
        "version": plan.before.version,
        "changes": [change_json(change) for change in plan.changes],
        "next_before": [instant_json(at) for at in before],
        "next_after": [instant_json(at) for at in after],
    }


def _next_runs(plan: "PlannedUpdate") -> tuple[tuple[datetime, ...], tuple[datetime, ...]]:
    now = datetime.now(UTC)
    return plan.before.next_runs(_NEXT), plan.next_runs(_NEXT, now)
