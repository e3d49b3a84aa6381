"""`mainspring scheduler|worker|projector`: the processes of an installation."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mainspring.cli.context import Globals, globals_of, settings_of
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.output import escape, note
from mainspring.cli.service import service

if TYPE_CHECKING:
    from mainspring.settings import Settings

__all__ = ["command_line", "projector", "scheduler", "worker"]


def scheduler(
    ctx: typer.Context,
    *,
    processes: Annotated[
        int | None, typer.Option(help="Scheduler processes under one supervisor.", min=1, metavar="N")
    ] = None,
    slot: Annotated[str | None, typer.Option(help="Stable name among the schedulers.", metavar="NAME")] = None,
    state_dir: Annotated[Path | None, typer.Option(help="Keep the tables (RocksDB) here.", metavar="DIR")] = None,
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
        raise typer.Exit(_supervise(globals_of(ctx), settings, state_dir))

    from mainspring.cli.roles import scheduler_health
    from mainspring.processors.scheduler import Scheduler

    with service(settings, "scheduler", warnings=globals_of(ctx).warnings) as (stop, health):
        running = Scheduler(settings.scheduler_config())
        scheduler_health(health, running)
        running.run(stop.event, own_process=True)


def worker(
    ctx: typer.Context,
    *,
    app: Annotated[
        list[str] | None, typer.Option(help="Where the jobs are; may be repeated.", metavar="MODULE:APP")
    ] = None,
    slots: Annotated[int | None, typer.Option(help="Attempts that run at once.", min=1, metavar="N")] = None,
    queue: Annotated[list[str] | None, typer.Option(help="Queue to serve; may be repeated.", metavar="NAME")] = None,
) -> None:
    """Run jobs. On the first SIGTERM or Ctrl-C running attempts may finish, on the second they are handed back."""
    flags = {"worker.app": app or None, "worker.slots": slots, "worker.queues": queue or None}
    settings = settings_of(ctx, **flags)
    if not settings.worker.app:
        raise CliError(
            "A worker needs to know where its jobs are.",
            hint="Write --app MODULE:APP, or set worker.app (MAINSPRING_WORKER__APP).",
            code=ExitCode.USAGE,
        )

    from mainspring.cli.roles import worker_health
    from mainspring.workers import Registry, run_worker

    # The entry point's own directory is on the path, the user's is not.
    sys.path.insert(0, str(Path.cwd()))
    registry = Registry.load(*settings.worker.app)
    if not len(registry):
        apps = ", ".join(settings.worker.app)
        note(f"[yellow]{escape(apps)} registers no job, so this worker declines every offer: is it the right app?[/]")
    with service(settings, "worker", warnings=globals_of(ctx).warnings) as (_, health):
        code = run_worker(settings.worker_config(), registry, on_start=lambda running: worker_health(health, running))
    raise typer.Exit(code)


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

    with service(settings, "projector", warnings=globals_of(ctx).warnings) as (stop, health):
        running = Projector(replace(settings.projector_config(), rebuild=rebuild))
        projector_health(health, running)
        running.run(stop.event)


def command_line(shared: Globals, *arguments: str) -> list[str]:
    """The command line that runs one of our commands in a process of its own, with the same settings."""
    config = ["--config", str(shared.config.resolve())] if shared.config else []
    flags = [part for name, value in shared.flags.items() for part in ("--set", f"{name}={value}")]
    return [sys.executable, "-m", "mainspring.cli", *config, *flags, *arguments]


def _supervise(shared: Globals, settings: "Settings", state_dir: Path | None) -> int:
    from mainspring.processors.scheduler import supervise_schedulers
    from mainspring.telemetry import configure_logging

    configure_logging(style=settings.log.format, level=settings.log.level)
    where = ["--state-dir", str(state_dir)] if state_dir is not None else []
    # One port cannot serve several processes: each child takes a free one and logs it.
    child = command_line(shared, "--set", "http.port=0", "scheduler", "--processes", "1", *where)
    return supervise_schedulers(settings.scheduler.processes, child, settings.scheduler_config())
