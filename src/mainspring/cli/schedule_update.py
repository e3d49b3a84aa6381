"""`mainspring schedule update`: another definition, or what it would change."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring.cli.connect import open_client
from mainspring.cli.context import settings_of
from mainspring.cli.job_app import job_of
from mainspring.cli.option_groups import grouped
from mainspring.cli.options import AppOption, Reason, arguments_of
from mainspring.cli.output import Column, Output, OutputOption, note, print_json, print_table, stdout
from mainspring.cli.schedule_options import InstanceTerms, Payload, Policies, ScheduleId
from mainspring.cli.schedule_page import change_json, change_row, instant_json, instant_local
from mainspring.cli.schedule_timing import TimingOptions

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
_CLEARED_POLICIES: dict[ClearName, tuple[str, Any]] = {
    ClearName.MAX_RUNS: ("max_runs", None),
    ClearName.NOTE: ("note", ""),
}


@grouped
def update(
    ctx: typer.Context,
    schedule_id: ScheduleId,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")] = False,
    asked: TimingOptions,
    clear: Annotated[list[ClearName] | None, typer.Option("--clear", help="Take this away; may be repeated.")] = None,
    job: Annotated[str | None, typer.Option("--job", help="Fire this job instead.", metavar="NAME")] = None,
    app: AppOption = None,
    payload: Payload = None,
    terms: InstanceTerms,
    policies: Policies,
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
    settings = settings_of(ctx)
    arguments = arguments_of(payload)
    options = terms.options()
    cleared = clear or []
    target = None if job is None else job_of(job, arguments, (app,) if app else (), settings.worker.app)
    changes = policies.given() | _cleared_policies(cleared)
    with open_client(settings) as client:
        plan = _plan(client, schedule_id, asked, cleared, job=target, args=arguments, options=options, **changes)
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


def _cleared_policies(cleared: list[ClearName]) -> dict[str, Any]:
    return {field: value for name, (field, value) in _CLEARED_POLICIES.items() if name in cleared}


def _plan(
    client: "Client", schedule_id: str, asked: TimingOptions, cleared: list[ClearName], **changes: Any
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
