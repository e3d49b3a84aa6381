"""`mainspring dev`: a whole installation in one terminal."""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import IO, TYPE_CHECKING, Annotated

import typer

from mainspring.cli.connect import reach
from mainspring.cli.context import globals_of, settings_of
from mainspring.cli.errors import CliError
from mainspring.cli.output import escape, note, stdout, warn
from mainspring.cli.processes import command_line

if TYPE_CHECKING:
    from mainspring.settings import Settings

SAMPLE = "mainspring.cli.sample:app"
_USUAL = "127.0.0.1:9092"
_STOP_S = 15.0
_STYLES = {"kafka": "bright_black", "scheduler": "cyan", "worker": "green", "projector": "magenta"}


def dev(
    ctx: typer.Context,
    app: Annotated[str, typer.Option(help="Your jobs; a few to play with by default.", metavar="MODULE:APP")] = SAMPLE,
    slots: Annotated[int, typer.Option(help="Attempts that the worker runs at once.", min=1)] = 8,
    port: Annotated[int, typer.Option(help="Port of the Kafka that is started.", min=1, max=65535)] = 9092,
    data_dir: Annotated[
        Path | None, typer.Option(help="Keep the data of that Kafka here; by default it ends with this command.")
    ] = None,
) -> None:
    """Run Kafka, a scheduler, a worker and a projector in this terminal until Ctrl-C.

    A Kafka is started unless kafka.bootstrap is set.
    """
    shared = globals_of(ctx)
    stop = threading.Event()
    with ExitStack() as stack:
        stack.enter_context(_signals(stop))
        settings = settings_of(ctx)
        own_kafka = settings.origin(("kafka", "bootstrap")) == "default"
        if own_kafka:
            shared.set("kafka.bootstrap", stack.enter_context(_kafka(port, data_dir)))
            settings = shared.settings()
        _apply_topics(settings)
        fresh = own_kafka and data_dir is None
        shared.flags.setdefault("log.format", "console")
        if fresh:
            shared.flags.setdefault("scheduler.tables", "memory")
        if stdout().is_terminal and not stdout().no_color:
            os.environ["FORCE_COLOR"] = "1"
        # Three times the same warning would be noise; the settings are told once, by this process.
        processes = {
            "scheduler": command_line(shared, "--no-warnings", "scheduler"),
            "worker": command_line(shared, "--no-warnings", "worker", "--app", app, "--slots", str(slots)),
            "projector": command_line(shared, "--no-warnings", "projector", *(["--rebuild"] if fresh else [])),
        }
        children = {name: stack.enter_context(_child(name, command)) for name, command in processes.items()}
        if not own_kafka:
            for text in settings.warnings():
                warn(text)
        _banner(settings, app)
        _watch(children, stop)
        note("\nStopping…")


@contextmanager
def _signals(stop: threading.Event) -> Iterator[None]:
    previous = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def _kafka(port: int, data_dir: Path | None) -> Iterator[str]:
    from mainspring.local import EmbeddedKafka
    from mainspring.local.ports import is_free

    # Another Kafka may hold the usual port; then any will do, and the banner tells which.
    chosen = port if is_free(port) else None
    with EmbeddedKafka(port=chosen, data_dir=data_dir, notify=lambda text: _line("kafka", text)) as kafka:
        _line("kafka", f"ready at {kafka.bootstrap}")
        yield kafka.bootstrap


def _apply_topics(settings: "Settings") -> None:
    from mainspring.topics import admin

    admin.apply(reach(settings), settings.topology())


@contextmanager
def _child(name: str, command: Sequence[str]) -> Iterator["Popen[bytes]"]:
    from mainspring.local.spawn import spawn

    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as output:
        process = spawn(command, output)
    reader = threading.Thread(target=_copy, args=(name, os.fdopen(reading, "rb")), daemon=True)
    reader.start()
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except TimeoutExpired:
            process.kill()
            process.wait()
        reader.join(1)


def _copy(name: str, stream: IO[bytes]) -> None:
    with stream:
        for line in stream:
            _line(name, line.decode("utf-8", "replace").rstrip("\n"))


def _line(name: str, text: str) -> None:
    from rich.text import Text

    # The children's own colours are kept; other control sequences are not.
    line = Text.assemble((f"{name:<9} │ ", _STYLES[name]), Text.from_ansi(text))
    stdout().print(line, soft_wrap=True)


def _watch(children: dict[str, "Popen[bytes]"], stop: threading.Event) -> None:
    reported: set[str] = set()
    while not stop.wait(0.2):
        for name, process in children.items():
            if process.poll() is not None and name not in reported:
                reported.add(name)
                _line(name, f"ended with exit code {process.returncode}")
        if len(reported) == len(children):
            raise CliError("Every process has ended.", why="The lines above tell why.")


def _banner(settings: "Settings", app: str) -> None:
    kafka = settings.kafka.bootstrap
    where = "" if kafka == _USUAL else f" --bootstrap {kafka}"
    example = 'submit hello --payload \'{"name": "you"}\' --wait' if app == SAMPLE else "submit NAME --wait"
    note(
        f"\n[bold]Mainspring runs[/] on Kafka at {kafka}, with the jobs of {escape(app)}. In another terminal:\n"
        f"  mainspring job {escape(example)}{where}\n"
        f"  mainspring job list{where}\n"
        f"Ctrl-C stops everything.\n"
    )
