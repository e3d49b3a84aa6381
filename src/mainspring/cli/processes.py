"""`mainspring scheduler|worker|projector`: the processes of an installation."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mainspring.cli.context import Globals, globals_of, settings_of
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.service import service

__all__ = ["command_line", "projector", "scheduler"]


def scheduler(
    ctx: typer.Context,
    *,
    processes: Annotated[
        int | None, typer.Option(help="Scheduler processes under one supervisor.", min=1, metavar="N")
    ] = None,
    slot: Annotated[str | None, typer.Option(help="Stable name among the schedulers.", metavar="NAME")] = None,
    state_dir: Annotated[
        Path | None, typer.Option(help="Keep the tables here (RocksDB) instead of in memory.", metavar="DIR")
    ] = None,
) -> None:
    """Decide: read commands and reports, write events and offers. Any number of them share the partitions."""
    flags = {"scheduler.processes": processes, "scheduler.slot": slot, "scheduler.state_dir": state_dir}
    settings = settings_of(ctx, **flags)
    count = settings.scheduler.processes
    if count > 1:
        if settings.scheduler.slot is not None:
            raise CliError(
                "Several processes cannot hold one slot.",
                why=f"scheduler.processes is {count} and scheduler.slot is {settings.scheduler.slot!r}.",
                hint="Leave the slot out: each process takes a free number behind the host name.",
                code=ExitCode.USAGE,
            )
        raise typer.Exit(_supervise(globals_of(ctx), count, state_dir))

    from mainspring.cli.roles import scheduler_health
    from mainspring.processors.scheduler import Scheduler

    with service(settings, "scheduler") as (stop, health):
        running = Scheduler(settings.scheduler_config())
        scheduler_health(health, running)
        running.run(stop.event)


def projector(
    ctx: typer.Context,
    *,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Drop the view and fold the log from its beginning.")
    ] = False,
) -> None:
    """Keep the view (view.url) equal to the fold of the log; one projector per view."""
    settings = settings_of(ctx)

    from mainspring.cli.roles import projector_health
    from mainspring.processors.projector import Projector

    with service(settings, "projector") as (stop, health):
        running = Projector(replace(settings.projector_config(), rebuild=rebuild))
        projector_health(health, running)
        running.run(stop.event)


def command_line(shared: Globals, *arguments: str) -> list[str]:
    """The command line that runs one of our commands in a process of its own, with the same settings."""
    config = ["--config", str(shared.config.resolve())] if shared.config else []
    flags = [part for name, value in shared.flags.items() for part in ("--set", f"{name}={value}")]
    return [sys.executable, "-m", "mainspring.cli", *config, *flags, *arguments]


def _supervise(shared: Globals, processes: int, state_dir: Path | None) -> int:
    from mainspring.processors.engine.supervisor import supervise

    where = ["--state-dir", str(state_dir)] if state_dir is not None else []
    return supervise(processes, command_line(shared, "scheduler", "--processes", "1", *where))
