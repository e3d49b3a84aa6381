"""`mainspring schedule`: recurring schedules."""

import typer

from mainspring.cli import (
    schedule_apply,
    schedule_create,
    schedule_history,
    schedule_preview,
    schedule_read,
    schedule_steer,
    schedule_update,
)

app = typer.Typer(help="Recurring schedules: make them, look at them, steer them.", no_args_is_help=True)

app.command("create")(schedule_create.create)
app.command("update")(schedule_update.update)
app.command("apply")(schedule_apply.apply)
app.command("get")(schedule_read.get)
app.command("list")(schedule_read.list_)
app.command("history")(schedule_history.history)
app.command("pause")(schedule_steer.pause)
app.command("resume")(schedule_steer.resume)
app.command("trigger")(schedule_steer.trigger)
app.command("backfill")(schedule_steer.backfill)
app.command("delete")(schedule_steer.delete)
app.command("preview")(schedule_preview.preview)
