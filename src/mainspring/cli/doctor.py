"""`mainspring doctor`: is everything there, and does it fit together?"""

from typing import Annotated

import typer

from mainspring.cli.context import settings_of
from mainspring.cli.errors import ExitCode
from mainspring.cli.output import Column, Output, OutputOption, print_json, print_table, progress

_STYLES = {"ok": "green", "info": "bright_black", "warn": "bold yellow", "fail": "bold red"}


def doctor(
    ctx: typer.Context,
    *,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Leave out the comparison of clocks, which makes and deletes a topic.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Examine settings, broker, topics, groups, clock, registry and view. Exit code 1 when something is broken."""
    from rich.text import Text

    from mainspring.cli.doctor_checks import Level, examine

    with progress("Examining…"):
        findings = list(examine(settings_of(ctx), read_only=read_only))
    if output is Output.JSON:
        print_json([{"check": f.check, "level": f.level, "detail": f.detail, "hint": f.hint or None} for f in findings])
    else:
        columns = (
            Column(head=""),
            Column(head="CHECK"),
            Column(head="FOUND", fold=True),
            Column(head="NEXT", fold=True),
        )
        rows = ([Text(f.level, style=_STYLES[f.level]), f.check, f.detail, f.hint] for f in findings)
        print_table(columns, rows)
    if any(finding.level is Level.FAIL for finding in findings):
        raise typer.Exit(ExitCode.FAILURE)
