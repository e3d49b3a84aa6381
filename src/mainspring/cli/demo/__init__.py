"""`mainspring demo`: a whole installation on this machine, killed in part and checked to the last job."""

from pathlib import Path
from typing import Annotated

import typer

from mainspring.cli.context import globals_of
from mainspring.cli.output import Output, OutputOption

__all__ = ["app"]

# Workers import this package on the way to its jobs: everything else is imported only when the demo is run.
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def demo(
    ctx: typer.Context,
    *,
    keep: Annotated[
        Path | None, typer.Option(help="Keep everything here, the data of the Kafka included.", metavar="DIR")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Run the whole system on this machine, kill parts of it, and check that nothing was lost.

    Two schedulers, two workers and a projector run as processes on a Kafka that is started for them, or on yours if
    kafka.bootstrap is set. What is submitted and how each job must end is written down first. A worker and a scheduler
    are killed with `kill -9` in the middle. The exit code is 0 only if each job ended as it must and the log proves it.
    """
    from mainspring.cli.demo.command import run

    code = run(globals_of(ctx), keep, output)
    if code:
        raise typer.Exit(code)
