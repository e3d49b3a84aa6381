"""Where the demo works: a directory, a Kafka, topics of its own, and the settings that all its processes share."""

import json
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mainspring.cli.connect import admin_client, connection_of, reach
from mainspring.cli.context import Globals
from mainspring.cli.demo.director import HEARTBEAT_MS, LEASE_MS, SCHEDULERS, SESSION_MS, WORKERS
from mainspring.cli.demo.fleet import Fleet
from mainspring.cli.demo.plan import PARTITIONS
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.processes import command_line
from mainspring.local import EmbeddedKafka
from mainspring.settings import Settings
from mainspring.topics import admin

__all__ = ["Workplace", "make_directory", "make_workplace"]

_SLOTS = 32
_APP = "mainspring.cli.demo.jobs:app"
_DELETE_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """Where everything is. `kafka` is None when the Kafka is somebody else's; `is_kept`: the log outlives the demo."""

    directory: Path
    shared: Globals
    kafka: EmbeddedKafka | None
    is_kept: bool
    say: Callable[[str], None]

    @property
    def config(self) -> Path:
        """The settings file that is written when a Kafka of our own is kept."""
        return self.directory / "mainspring.toml"

    @property
    def settings(self) -> Settings:
        """The settings of all processes."""
        return self.shared.settings()

    def start(self, fleet: Fleet) -> None:
        """Start the processes; returns without waiting for them."""
        own: dict[str, tuple[str, ...]] = {
            **{name: ("scheduler", "--slot", name) for name in SCHEDULERS},
            **{name: ("worker", "--app", _APP, "--set", f"worker.id={name}") for name in WORKERS},
            "projector": ("projector",),
        }
        fleet.add({name: (role, command_line(self.shared, role, *options)) for name, (role, *options) in own.items()})
        for name in own:
            fleet.start(name)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """The Kafka runs and the topics are there.

        In the end our own Kafka is stopped; on another one the topics are deleted, unless they are to be kept.
        """
        made = False
        try:
            if self.kafka is not None:
                self.say("starting a Kafka on this machine")
                self.kafka.start()
                self.shared.set("kafka.bootstrap", self.kafka.bootstrap)
            connection = reach(self.settings)
            made = True
            admin.apply(connection, self.settings.topology())
            if self.kafka is not None and self.is_kept:
                self.config.write_text(_settings_file(self.settings), encoding="utf-8")
            yield
        finally:
            if self.kafka is not None:
                self.kafka.stop()
            elif made and not self.is_kept:
                _delete_topics(self.settings)

    def kill(self) -> None:
        """End the Kafka at once, if it is ours. Safe at any moment."""
        if self.kafka is not None:
            for node in self.kafka.pids:
                self.kafka.kill(node)


def make_directory(keep: Path | None) -> Path:
    """The directory of this run. Raises CliError for one that has something in it."""
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="mainspring-demo-"))
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise CliError(
            f"{keep} is not empty.",
            why="A run keeps its plan, its report, its logs and the data of its Kafka there.",
            hint="Name a directory that is new or empty.",
            code=ExitCode.USAGE,
        )
    keep.mkdir(parents=True, exist_ok=True)
    return keep.resolve()


def make_workplace(shared: Globals, directory: Path, *, keep: bool, say: Callable[[str], None]) -> Workplace:
    """A Kafka of our own unless kafka.bootstrap is set, and topics under a new prefix. Nothing is started yet."""
    own = shared.settings().origin(("kafka", "bootstrap")) == "default"
    kafka = EmbeddedKafka(data_dir=directory / "kafka" if keep else None, notify=say) if own else None
    # One node has one copy, whatever is set for the cluster that is not used now.
    one_copy = {"topics.replication": 1, "topics.min_isr": 1} if own else {}
    for name, value in (_flags(directory) | one_copy).items():
        shared.set(name, value)
    return Workplace(directory=directory, shared=shared, kafka=kafka, is_kept=keep, say=say)


def _flags(directory: Path) -> dict[str, object]:
    """What all processes of the demo are told, whatever else is set."""
    return {
        "topics.prefix": f"demo-{secrets.token_hex(3)}.",
        "topics.partitions": PARTITIONS,
        "topics.work_partitions": PARTITIONS,
        "view.url": f"sqlite:///{directory / 'view.db'}",
        "scheduler.state_dir": directory / "state",
        "scheduler.session_timeout_ms": SESSION_MS,
        "scheduler.processes": 1,
        "worker.slots": _SLOTS,
        "worker.lease_ms": LEASE_MS,
        "worker.heartbeat_ms": HEARTBEAT_MS,
        "log.format": "console",
    }


def _settings_file(settings: Settings) -> str:
    """Settings by which any command can look at the run later. JSON's strings are TOML's, too."""
    return (
        f"[kafka]\nbootstrap = {json.dumps(settings.kafka.bootstrap)}\n\n"
        f"[topics]\nprefix = {json.dumps(settings.topics.prefix)}\n"
        f"partitions = {PARTITIONS}\nwork_partitions = {PARTITIONS}\n\n"
        f"[view]\nurl = {json.dumps(settings.view.url.get_secret_value())}\n"
    )


def _delete_topics(settings: Settings) -> None:
    from confluent_kafka import KafkaException

    client = admin_client(connection_of(settings))
    names = [topic.name for topic in settings.topology().all()]
    for deletion in client.delete_topics(names, operation_timeout=_DELETE_S).values():
        try:
            deletion.result()
        except KafkaException:
            # One that was never made, or a broker that does not let us; the demo's verdict does not hang on it.
            continue
