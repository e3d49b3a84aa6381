"""`mainspring log`: the log itself, its state at any time, its audit, its export."""

import typer

from mainspring.cli import log_read, log_verify

app = typer.Typer(help="Read, replay, audit and export the log.", no_args_is_help=True)

app.command("tail")(log_read.tail)
app.command("history")(log_read.history)
app.command("state")(log_read.state)
app.command("dead-letters")(log_read.dead_letters)
app.command("verify")(log_verify.verify)
app.command("export")(log_verify.export)
