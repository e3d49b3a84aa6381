"""`mainspring dev`: a whole installation in one terminal."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mainspring.cli.connect import reach
from mainspring.cli.context import Globals, globals_of, settings_of
from mainspring.cli.dev_banner import show_banner
from mainspring.cli.dev_children import Child, say
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.output import note, stdout, warn
from mainspring.cli.processes import command_line

if TYPE_CHECKING:
    from mainspring.settings import Settings
    from mainspring.workers import Registry

SAMPLE = "mainspring.cli.sample:app"
USUAL_PORT = 9092
_BEGUN_S = 10.0
_LOOK_EVERY_S = 0.2


def dev(
    ctx: typer.Context,
    app: Annotated[str, typer.Option(help="Your jobs; a few to play with by default.", metavar="MODULE:APP")] = SAMPLE,
    slots: Annotated[int, typer.Option(help="Attempts that the worker runs at once.", min=1)] = 8,
    port: Annotated[
        int | None,
        typer.Option(help="Port of the Kafka that is started; 9092, or a free one.", min=1, max=65535, metavar="N"),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Keep the data of that Kafka here; by default it ends with this command.")
    ] = None,
) -> None:
    """Run Kafka, a scheduler, a worker and a projector in this terminal until Ctrl-C.

    A Kafka is started unless kafka.bootstrap is set. It comes with a view of its own and a settings file that leads
    other commands to both (.mainspring/dev.toml); no other view is ever touched.
    """
    shared = globals_of(ctx)
    stop = threading.Event()
    with ExitStack() as stack:
        stack.enter_context(_signals(stop))
        settings = settings_of(ctx)
        own_kafka = settings.origin(("kafka", "bootstrap")) == "default"
        if port is not None and not own_kafka:
            raise CliError(
                f"--port {port} is for a Kafka of dev's own, and kafka.bootstrap names another.",
                hint="Leave one of them out.",
                code=ExitCode.USAGE,
            )
        registry = _jobs_of(app)
        config, own_view = None, False
        if own_kafka:
            from mainspring.cli import dev_site

            bootstrap = stack.enter_context(_kafka(port, data_dir))
            # A view that was configured is of another cluster's log, unless this one is kept from run to run.
            own_view = data_dir is None or settings.origin(("view", "url")) == "default"
            shared.set("kafka.bootstrap", bootstrap)
            config = stack.enter_context(dev_site.place(shared, app, own_view=own_view, passing=data_dir is None))
            settings = shared.settings()
        _apply_topics(settings)
        if own_kafka and data_dir is None:
            shared.flags.setdefault("scheduler.tables", "memory")
            shared.flags.setdefault("scheduler.standby", False)
        started = time.monotonic()
        children = _start(stack, shared, app, slots, rebuild=own_view)
        if not own_kafka:
            for text in settings.warnings():
                warn(text)
        if _until_ready(children, stop):
            took_s = time.monotonic() - started
            # Before the banner: whoever reads it may submit at once, and that end is to be told, too.
            stack.enter_context(_ends_told(settings))
            show_banner(settings, registry, config, took_s)
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


def _jobs_of(app: str) -> "Registry":
    """The jobs, imported before anything is started: an app that cannot be imported is a usage error at once."""
    from mainspring.workers import Registry

    sys.path.insert(0, str(Path.cwd()))
    registry = Registry.load(app)
    registry.prepare()
    return registry


@contextmanager
def _kafka(port: int | None, data_dir: Path | None) -> Iterator[str]:
    from mainspring.local import EmbeddedKafka
    from mainspring.local.ports import free_ports, is_free

    if port is not None and not is_free(port):
        raise CliError(
            f"Port {port} is taken.",
            hint="Give another --port, leave it out to take a free one, or set kafka.bootstrap to the Kafka there.",
            code=ExitCode.USAGE,
        )
    chosen = port or USUAL_PORT
    if not is_free(chosen):
        (chosen,) = free_ports(1)
        say("kafka", f"port {USUAL_PORT} is taken, using {chosen}")
    with EmbeddedKafka(port=chosen, data_dir=data_dir, notify=lambda text: say("kafka", text)) as kafka:
        say("kafka", f"ready at {kafka.bootstrap}")
        yield kafka.bootstrap


def _apply_topics(settings: "Settings") -> None:
    from mainspring.topics import admin

    admin.apply(reach(settings), settings.topology())


def _start(stack: ExitStack, shared: Globals, app: str, slots: int, *, rebuild: bool) -> list[Child]:
    from mainspring.local.ports import free_ports

    if stdout().is_terminal and not stdout().no_color:
        os.environ["FORCE_COLOR"] = "1"
    commands = {
        "scheduler": ["scheduler"],
        "worker": ["worker", "--app", app, "--slots", str(slots)],
        "projector": ["projector", *(["--rebuild"] if rebuild else [])],
    }
    children = []
    for (role, command), http in zip(commands.items(), free_ports(len(commands)), strict=True):
        # Three times the same warning would be noise; the settings are told once, by this process.
        own = ["--no-warnings", "--set", "log.format=json", "--set", f"http.port={http}"]
        own += ["--set", "http.host=127.0.0.1"]
        children.append(stack.enter_context(Child(role, command_line(shared, *own, *command), http)))
    return children


def _until_ready(children: list[Child], stop: threading.Event) -> bool:
    """Returns when every process serves; False when it was stopped before. A process that ends ends all of it."""
    while not all(child.is_ready() for child in children):
        if stop.wait(_LOOK_EVERY_S):
            return False
        _require_all(children)
    for child in children:
        child.tell_partitions(at_once=True)
    return True


def _watch(children: list[Child], stop: threading.Event) -> None:
    while not stop.wait(_LOOK_EVERY_S):
        for child in children:
            child.tell_partitions()
        _require_all(children)


def _require_all(children: list[Child]) -> None:
    for child in children:
        code = child.exit_code()
        if code is not None:
            raise CliError(
                f"The {child.role} has ended with exit code {code}, so everything stops.",
                why=f"The lines of the {child.role} above tell why.",
            )


@contextmanager
def _ends_told(settings: "Settings") -> Iterator[None]:
    """Says each end of a job, a line each, while the body runs."""
    from confluent_kafka import KafkaException

    from mainspring.cli.events import end_line
    from mainspring.cli.job_watch import ENDS, follow_events
    from mainspring.schemas import MainspringError

    over, begun = threading.Event(), threading.Event()

    def tell() -> None:
        while not over.is_set():
            try:
                for event, _, _ in follow_events(settings, over.is_set, begun.set):
                    if type(event).__name__ in ENDS:
                        say("jobs", end_line(event), cut=True)
            except (KafkaException, MainspringError):
                # A broker that has just started does not lead its partitions yet.
                over.wait(_LOOK_EVERY_S)

    teller = threading.Thread(target=tell, name="mainspring-dev-jobs", daemon=True)
    teller.start()
    begun.wait(_BEGUN_S)
    try:
        yield
    finally:
        over.set()
        teller.join(2)
