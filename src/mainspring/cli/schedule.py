"""`mainspring schedule`: recurring schedules."""

import typer

from mainspring.cli import schedule_preview

app = typer.Typer(help="Recurring schedules: when they fire.", no_args_is_help=True)

app.command("preview")(schedule_preview.preview)
