"""`mainspring schedule apply`: the schedules of a file, as a deployment declares them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring.cli.connect import open_client
from mainspring.cli.context import settings_of
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.job_app import job_of
from mainspring.cli.options import AppOption, Reason
from mainspring.cli.output import Column, Output, OutputOption, note, print_json, print_table
from mainspring.cli.schedule_page import change_json, change_row

if TYPE_CHECKING:
    from mainspring.cli.schedule_file import ScheduleEntry
    from mainspring.client import Client
    from mainspring.client.schedules import Declaration
    from mainspring.jobs.handler import Handler

_COLUMNS = (
    Column(head="SCHEDULE"),
    Column(head="OUTCOME"),
    Column(head="VERSION"),
    Column(head="FIELD"),
    Column(head="BEFORE", fold=True),
    Column(head="AFTER", fold=True),
)


def apply(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="TOML, with an array of tables named schedules.", metavar="FILE", show_default=False)
    ],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")] = False,
    app: AppOption = None,
    reason: Reason = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Have the schedules of a file: those that are missing are created, those that differ updated. None is deleted.

    All of the file is checked before anything is sent, and nothing is written where nothing differs, so that a
    deployment can run it each time. Exit code 4 when one is rejected; those before it stand.
    """
    from mainspring.cli.schedule_file import read_schedules

    settings = settings_of(ctx)
    apps = (app,) if app else ()
    wanted = [(each, job_of(each.job, each.payload, apps, settings.worker.app)) for each in read_schedules(file)]
    with open_client(settings) as client:
        done = [_declare(client, each, job, file, dry_run=True) for each, job in wanted]
        if not dry_run:
            done = [
                planned
                if planned.outcome == "unchanged"
                else _declare(client, each, job, file, dry_run=False, reason=reason)
                for planned, (each, job) in zip(done, wanted, strict=True)
            ]
    _show(done, output, dry_run=dry_run)


def _declare(
    client: "Client",
    entry: "ScheduleEntry",
    job: "Handler | str",
    file: Path,
    *,
    dry_run: bool,
    reason: str = "",
) -> "Declaration":
    from mainspring.client import InvalidJobError, InvalidScheduleError

    try:
        return client.schedules.declare(
            entry.id,
            entry.when(),
            job,
            entry.payload,
            options=entry.options(),
            dry_run=dry_run,
            reason=reason,
            **entry.policies(),
        )
    except (InvalidScheduleError, InvalidJobError) as error:
        raise CliError(f"{file}: schedule {entry.id!r}: {error.message}.", code=ExitCode.USAGE) from None


def _show(done: "list[Declaration]", output: Output, *, dry_run: bool) -> None:
    if output is Output.JSON:
        print_json([_json(each) for each in done])
        return
    print_table(_COLUMNS, [row for each in done for row in _rows(each)], empty="The file has no schedules.")
    changed = sum(each.outcome != "unchanged" for each in done)
    note(f"{changed} of {len(done)} {'would change' if dry_run else 'changed'}")


def _json(done: "Declaration") -> dict[str, Any]:
    return {
        "schedule_id": done.schedule_id,
        "outcome": done.outcome.value,
        "version": done.version,
        "changes": [change_json(change) for change in done.changes],
    }


def _rows(done: "Declaration") -> list[list[str]]:
    head = [done.schedule_id, done.outcome.value, str(done.version)]
    changes = [change_row(change) for change in done.changes] or [["", "", ""]]
    return [[*(head if at == 0 else ["", "", ""]), *change] for at, change in enumerate(changes)]
