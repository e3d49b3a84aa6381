"""`mainspring local`: a Kafka on this machine, with nothing installed but Python."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.output import Output, OutputOption, note, print_json, print_pairs
from mainspring.cli.show import ago, iso, local

if TYPE_CHECKING:
    from mainspring.local.control import Background

DEFAULT_PORT = 9092

app = typer.Typer(help="A Kafka on this machine, without Docker or Java installed.", no_args_is_help=True)
kafka = typer.Typer(help="Start, stop and look at a Kafka in the background.", no_args_is_help=True)
app.add_typer(kafka, name="kafka")

DataDir = Annotated[
    Path | None, typer.Option(help="Where the broker keeps its data; by default below ~/.local/share.", metavar="DIR")
]


@kafka.command()
def start(
    data_dir: DataDir = None,
    port: Annotated[int, typer.Option(help="Port on loopback.", min=1, max=65535)] = DEFAULT_PORT,
    nodes: Annotated[int, typer.Option(help="Brokers in the cluster.", min=1, max=9)] = 1,
    output: OutputOption = Output.TABLE,
) -> None:
    """Start a broker that outlives this command, and return when it serves clients."""
    from mainspring.local import control

    background = control.start(data_dir, port=port, nodes=nodes, notify=lambda text: note(f"[dim]{text}[/]"))
    _print(background, output)
    given = "" if port == DEFAULT_PORT else f" --bootstrap {background.bootstrap}"
    note(f"Next: [bold]mainspring topics apply{given}[/]")


@kafka.command()
def stop(data_dir: DataDir = None) -> None:
    """Shut the broker down; its data is kept."""
    from mainspring.local import control

    if not control.stop(data_dir):
        raise _not_running()
    note("Stopped. The data is kept; `mainspring local kafka start` finds it again.")


@kafka.command()
def status(data_dir: DataDir = None, output: OutputOption = Output.TABLE) -> None:
    """Show the broker; exit code 3 when none is running."""
    from mainspring.local import control

    background = control.status(data_dir)
    if background is None:
        raise _not_running()
    _print(background, output)


def _not_running() -> CliError:
    return CliError(
        "No Kafka of ours is running on this machine.", hint="mainspring local kafka start", code=ExitCode.NOT_FOUND
    )


def _print(background: "Background", output: Output) -> None:
    started_ms = int(background.started_at * 1000)
    shown: dict[str, Any] = {
        "bootstrap": background.bootstrap,
        "kafka_version": background.kafka_version,
        "pids": list(background.pids),
        "data_dir": background.data_dir,
    }
    if output is Output.JSON:
        print_json(shown | {"started_at": iso(started_ms)})
    else:
        pids = " ".join(map(str, background.pids))
        print_pairs(shown | {"pids": pids, "started": f"{local(started_ms)} ({ago(started_ms)})"})
