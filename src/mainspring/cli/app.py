"""The tree of commands. Only typer is imported here and at the head of the command modules, so that help is quick."""

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mainspring.cli import config, dev, doctor, job, local, log, processes, schedule, topics, version
from mainspring.cli.context import Globals
from mainspring.cli.errors import CliError, ExitCode

__all__ = ["build", "forwarded"]

_FORWARD = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
_EPILOG = (
    "--config, --bootstrap, --prefix and --set may stand anywhere. "
    "Exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 4 rejected, 5 timeout of --wait, 130 interrupted."
)


_ORDER = (
    *("job", "schedule", "log"),
    *("dev", "demo", "bench"),
    *("scheduler", "worker", "projector"),
    *("topics", "doctor", "config", "local", "version"),
)
_FORWARDED = {
    "demo": "Run the whole system on this machine, kill parts of it, and check that nothing was lost.",
    "bench": "Measure throughput, latency, herd, schedules, restart and idle cost.",
}


class _InOrder(TyperGroup):
    """Lists what is used most first; typer would list all groups behind all commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(
            super().list_commands(ctx), key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER)
        )


def build(*, forward: bool = True) -> typer.Typer:
    """The whole command line; without `forward`, without the commands that `forwarded` gives."""
    app = typer.Typer(
        name="mainspring",
        cls=_InOrder,
        help="A distributed job scheduler whose only database is Apache Kafka.",
        epilog=_EPILOG,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    app.callback()(_root)
    app.add_typer(job.app, name="job", rich_help_panel="Use")
    app.add_typer(schedule.app, name="schedule", rich_help_panel="Use")
    app.add_typer(log.app, name="log", rich_help_panel="Use")
    app.command("dev", rich_help_panel="See it work")(dev.dev)
    if forward:
        for name, text in _FORWARDED.items():
            _forward(app, name, text)
    app.command("scheduler", rich_help_panel="Run")(processes.scheduler)
    app.command("worker", rich_help_panel="Run")(processes.worker)
    app.command("projector", rich_help_panel="Run")(processes.projector)
    app.add_typer(topics.app, name="topics", rich_help_panel="Operate")
    app.add_typer(config.app, name="config", rich_help_panel="Operate")
    app.add_typer(local.app, name="local", rich_help_panel="Operate")
    app.command("doctor", rich_help_panel="Operate")(doctor.doctor)
    app.command("version", rich_help_panel="Operate")(version.version)
    return app


def _version(asked: bool) -> None:  # noqa: FBT001 - typer's protocol
    if asked:
        from mainspring.cli.output import write
        from mainspring.telemetry.metrics import package_version

        write(f"mainspring {package_version()}\n")
        raise typer.Exit


def _root(
    ctx: typer.Context,
    config: Annotated[
        Path | None, typer.Option(help="Settings file; by default mainspring.toml.", metavar="FILE")
    ] = None,
    bootstrap: Annotated[str | None, typer.Option(help="Kafka brokers, host:port.", metavar="HOSTS")] = None,
    prefix: Annotated[str | None, typer.Option(help="Prefix of topics and groups.", metavar="TEXT")] = None,
    *,
    _show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    warnings: Annotated[bool, typer.Option(hidden=True)] = True,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting, such as worker.slots=4.", metavar="NAME=VALUE")
    ] = None,
) -> None:
    flags: dict[str, object] = {"kafka.bootstrap": bootstrap, "topics.prefix": prefix}
    for pair in set_ or ():
        name, separator, value = pair.partition("=")
        if not separator:
            raise CliError(f"--set {pair} has no value.", hint="Write --set NAME=VALUE.", code=ExitCode.USAGE)
        flags[name] = value
    ctx.obj = Globals(
        config=config, warnings=warnings, flags={name: value for name, value in flags.items() if value is not None}
    )


def forwarded() -> Iterator[tuple[str, typer.Typer]]:
    """The commands of modules that `build` imports only when they are called, by name."""
    for name in _FORWARDED:
        if _exists(f"mainspring.cli.{name}"):
            yield name, import_module(f"mainspring.cli.{name}").app


def _forward(app: typer.Typer, name: str, text: str) -> None:
    """Register a command whose module is imported only when it is called; it holds a `typer.Typer` named `app`."""
    module = f"mainspring.cli.{name}"
    if not _exists(module):
        return

    def forward(ctx: typer.Context) -> None:
        command: typer.Typer = import_module(module).app
        command(args=ctx.args, prog_name=f"mainspring {name}", obj=ctx.obj)

    app.command(name, help=text, context_settings=_FORWARD, rich_help_panel="See it work")(forward)


def _exists(module: str) -> bool:
    spec = find_spec(module)
    return spec is not None and spec.origin is not None
