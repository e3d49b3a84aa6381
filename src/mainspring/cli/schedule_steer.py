"""`mainspring schedule pause|resume|trigger|backfill|delete`."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring.cli.connect import open_client
from mainspring.cli.context import settings_of
from mainspring.cli.job_submit import print_result, print_submitted
from mainspring.cli.options import Reason, WaitTimeout
from mainspring.cli.output import Output, OutputOption, note, print_json
from mainspring.cli.schedule_options import ScheduleId
from mainspring.cli.schedule_page import instant_json
from mainspring.cli.schedule_timing import absolute

if TYPE_CHECKING:
    from mainspring.client.schedules import AcceptedChange


def pause(
    ctx: typer.Context,
    schedule_id: ScheduleId,
    *,
    note_: Annotated[
        str, typer.Option("--note", help="Why it is paused; shown with it meanwhile.", metavar="TEXT")
    ] = "",
    reason: Reason = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Fire nothing until it is resumed; what runs goes on.

    Exit code 4 when it is paused already or over, 3 when there is none.
    """
    with open_client(settings_of(ctx)) as client:
        change = client.schedules.pause(schedule_id, note_, reason=reason)
    _print(change, output, "[yellow]paused[/]")


def resume(
    ctx: typer.Context, schedule_id: ScheduleId, *, reason: Reason = "", output: OutputOption = Output.TABLE
) -> None:
    """Go on with what is planned from now on. Exit code 4 when it is not paused, 3 when there is none."""
    with open_client(settings_of(ctx)) as client:
        change = client.schedules.resume(schedule_id, reason=reason)
    _print(change, output, "[green]resumed[/]")


def delete(
    ctx: typer.Context, schedule_id: ScheduleId, *, reason: Reason = "", output: OutputOption = Output.TABLE
) -> None:
    """End a schedule for good; its instances run on, its history stays. Exit code 3 when there is none."""
    with open_client(settings_of(ctx)) as client:
        change = client.schedules.delete(schedule_id, reason=reason)
    _print(change, output, "deleted")


def trigger(
    ctx: typer.Context,
    schedule_id: ScheduleId,
    *,
    reason: Reason = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the instance has ended, and print its result.")
    ] = False,
    wait_timeout: WaitTimeout = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Fire one instance now, beside the plan and whatever the policies say. Exit code 3 when there is no schedule."""
    with open_client(settings_of(ctx)) as client:
        handle = client.schedules.trigger(schedule_id, reason=reason)
        if wait:
            print_result(handle, wait_timeout, output)
        else:
            print_submitted(handle.job_id, output)


def backfill(
    ctx: typer.Context,
    schedule_id: ScheduleId,
    *,
    since: Annotated[
        datetime, typer.Option("--from", parser=absolute, help="The first time that may be fired.", metavar="TIME")
    ],
    until: Annotated[
        datetime, typer.Option("--until", parser=absolute, help="The last time that may be fired.", metavar="TIME")
    ],
    reason: Reason = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Fire the occurrences of a range in the past; those that were fired are not fired again.

    Exit code 4 when nothing is planned there, or too much; 3 when there is no schedule.
    """
    with open_client(settings_of(ctx)) as client:
        accepted = client.schedules.backfill(schedule_id, since, until, reason=reason)
    if output is Output.JSON:
        print_json(
            {
                "schedule_id": schedule_id,
                "revision": accepted.revision,
                "decided_at": instant_json(accepted.decided_at),
                "command_id": accepted.command_id,
                "count": accepted.count,
            }
        )
        return
    note(f"[green]accepted[/]: {accepted.count} planned in this range; those that were not fired yet are fired now")


def _print(change: "AcceptedChange", output: Output, words: str) -> None:
    if output is Output.JSON:
        data: dict[str, Any] = {
            "schedule_id": change.schedule_id,
            "revision": change.revision,
            "decided_at": instant_json(change.decided_at),
        }
        print_json(data)
    else:
        note(words)
