"""An installation to measure: broker, topics under a prefix of their own, real processes. It all goes at the end."""

import json
import os
import secrets
import shutil
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import TYPE_CHECKING, Any

from mainspring.cli.bench.usage import Meter, log_bytes
from mainspring.cli.context import Globals
from mainspring.cli.errors import CliError
from mainspring.cli.output import note
from mainspring.cli.processes import command_line

if TYPE_CHECKING:
    from mainspring.client import Client
    from mainspring.local import EmbeddedKafka
    from mainspring.settings import Settings

__all__ = ["ASSIGNED", "Plan", "Process", "Site", "open_site"]

APP = "mainspring.cli.bench.jobs:app"
_READY_S = 60.0
_STOP_S = 30.0
_TAIL_LINES = 20
_LOOK_S = 0.05
_ANSWER_S = 5.0
ASSIGNED = "partitions assigned"
"""What the log of a scheduler says when the group has given it some."""
_LAG = "mainspring_standby_lag_records"
_OWNER = "mainspring_partition_owner"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How the installation is laid out."""

    partitions: int = 4
    slots: int = 2_000
    """Attempts that the worker runs at once: enough that it never declines."""
    rocksdb: bool = True
    """Whether the scheduler keeps its tables in RocksDB, as an installation does, or in memory."""


class Process:
    """One process of the installation."""

    def __init__(self, name: str, command: Sequence[str], log_file: Path, port: int) -> None:
        self.name = name
        self._command = [*command]
        self._log_file = log_file
        self._port = port
        self._process: Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Starts it, and returns at once."""
        from mainspring.local.spawn import spawn

        with self._log_file.open("ab") as log:
            self._process = spawn(self._command, log)

    def wait_ready(self, timeout_s: float = _READY_S) -> None:
        """Returns when its own `/readyz` says so. Raises `CliError` when it ends instead, or takes too long."""
        self._wait_for(self._unready, "is not ready", timeout_s)

    def wait_joined(self, timeout_s: float) -> None:
        """Returns when it has partitions, and decides for them."""
        self._wait_for(lambda: None if any(self.told(ASSIGNED)) else "it has no partition", "has no share", timeout_s)
        self.wait_ready(timeout_s)

    def wait_warm(self, partitions: int, timeout_s: float) -> None:
        """Returns when it has its share of the partitions, and has read all that was written of the others."""
        self.wait_joined(timeout_s)
        self._wait_for(lambda: self._cold(partitions), "is no warm standby", timeout_s)

    def check(self) -> None:
        """Raises `CliError` with its last words when it has ended."""
        if self._process is not None and self._process.poll() is not None:
            lines = self._log_file.read_text(encoding="utf-8", errors="replace").splitlines()
            raise CliError(
                f"The {self.name} has ended with exit code {self._process.returncode}.",
                why="\n".join(lines[-_TAIL_LINES:]),
            )

    def told(self, event: str) -> Iterator[float]:
        """The times at which its log has this event, in seconds since the epoch, oldest first."""
        with self._log_file.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if event in line and (entry := json.loads(line))["event"] == event:
                    yield datetime.fromisoformat(entry["timestamp"]).timestamp()

    def stop(self) -> None:
        """Asks it to end in order, and waits for that; it is killed after half a minute."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """`kill -9`; returns when it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _wait_for(self, missing: Callable[[], str | None], what: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while (reason := missing()) is not None:
            self.check()
            if time.monotonic() > deadline:
                raise CliError(f"The {self.name} {what} after {timeout_s:.0f} s.", why=reason)
            time.sleep(_LOOK_S)

    def _unready(self) -> str | None:
        self.check()
        try:
            with self._ask("readyz"):
                return None
        except urllib.error.HTTPError as error:
            return error.read().decode("utf-8", "replace").strip()
        except OSError as error:
            return str(error)

    def _cold(self, partitions: int) -> str | None:
        from prometheus_client.parser import text_string_to_metric_families

        with self._ask("metrics") as answer:
            families = {each.name: each.samples for each in text_string_to_metric_families(answer.read().decode())}
        lags = [sample.value for sample in families.get(_LAG, [])]
        others = partitions - sum(sample.value for sample in families.get(_OWNER, []))
        if len(lags) < others:
            return f"it follows {len(lags)} of the {others:.0f} partitions of others"
        return f"{sum(lags):,.0f} records of others are still to be read" if any(lags) else None

    def _ask(self, page: str) -> Any:
        from mainspring.local.ports import LOOPBACK

        return urllib.request.urlopen(f"http://{LOOPBACK}:{self._port}/{page}", timeout=_ANSWER_S)


class Site:
    """One scheduler, one worker, one client, on topics that nobody else uses."""

    def __init__(self, shared: Globals, kafka: "EmbeddedKafka | None", plan: Plan, home: Path) -> None:
        from mainspring.local.ports import free_ports

        self.plan = plan
        self.home = home
        self.state_dir = home / "state"
        self._load_before = os.getloadavg()[0]
        self._kafka = kafka
        flags: dict[str, object] = {
            "topics.prefix": f"bench-{secrets.token_hex(4)}.",
            "topics.partitions": plan.partitions,
            "topics.work_partitions": plan.partitions,
            "worker.slots": plan.slots,
            "worker.app": APP,
            # The slot is this scheduler's alone, so a restart of it need not wait for its former life to be missed.
            "scheduler.slot": "bench",
            "scheduler.static_member": True,
            "log.format": "json",
        }
        if kafka is not None:
            flags["kafka.bootstrap"] = kafka.bootstrap
        if plan.rocksdb:
            flags["scheduler.state_dir"] = str(self.state_dir)
        else:
            flags["scheduler.tables"] = "memory"
            flags["scheduler.standby"] = False
        shared = Globals(config=shared.config, flags=shared.flags | flags)
        self.settings: Settings = shared.settings()
        ports = free_ports(4)
        self.scheduler = self._process(shared, "scheduler", ports[0])
        self.worker = self._process(shared, "worker", ports[1])
        self.second = self._process(shared, "scheduler", ports[2], "--slot", "bench-second")
        """Another scheduler, which `start` leaves out."""
        follows = Globals(config=shared.config, flags=shared.flags | {"scheduler.standby": plan.rocksdb})
        self.standby = self._process(follows, "scheduler", ports[3], "--slot", "bench-standby")
        """And one that follows the partitions of the others; `start` leaves it out, too."""

    @property
    def prefix(self) -> str:
        """What the names of its topics begin with."""
        return self.settings.topics.prefix

    def make_topics(self) -> None:
        """Makes the topics. Raises what `topics apply` raises."""
        from mainspring.topics import admin

        admin.apply(self.settings.connection(), self.settings.topology())

    def start(self) -> None:
        """Starts the scheduler and the worker; returns when both say that they are ready."""
        for process in (self.scheduler, self.worker):
            process.start()
        for process in (self.scheduler, self.worker):
            process.wait_ready()

    def client(self) -> "Client":
        """A client; the caller closes it."""
        from mainspring.client import Client

        return Client(self.settings, actor="bench")

    def meter(self, *processes: Process) -> Meter:
        """Measures these processes from now on, and the broker where it is ours."""
        pids = {process.name: process.pid for process in processes}
        if self._kafka is not None:
            pids["broker"] = self._kafka.pid()
        return Meter(pids)

    def log_bytes(self) -> dict[str, int] | None:
        """Bytes of log by topic, all partitions; None where the broker is not ours."""
        if self._kafka is None:
            return None
        return log_bytes(self._kafka.data_dir / "node-1" / "data", self.prefix)

    def layout(self) -> dict[str, object]:
        """What was measured, for the report."""
        plan = self.plan
        return {
            "partitions": plan.partitions,
            "worker_slots": plan.slots,
            "tables": "rocksdb" if plan.rocksdb else "memory",
            "broker": "embedded" if self._kafka is not None else "given",
            # What else the machine had to do: the average of a minute before, and with this, after.
            "load_before": round(self._load_before, 1),
            "load_after": round(os.getloadavg()[0], 1),
        }

    def close(self) -> None:
        """Ends what runs, and deletes the topics of a broker that stays; their groups then go by themselves."""
        own_broker = self._kafka is not None
        for process in (self.worker, self.scheduler, self.second, self.standby):
            # A broker that goes does not mind; one that stays would miss them for a while.
            process.kill() if own_broker else process.stop()
        if not own_broker:
            self._delete_topics()

    def _process(self, shared: Globals, role: str, port: int, *options: str) -> Process:
        command = command_line(shared, "--no-warnings", "--set", f"http.port={port}", role, *options)
        return Process(role, command, self.home / f"{role}-{port}.log", port)

    def _delete_topics(self) -> None:
        from confluent_kafka.admin import AdminClient

        admin = AdminClient(self.settings.connection().admin_config())
        topics = [name for name in admin.list_topics(timeout=_STOP_S).topics if name.startswith(self.prefix)]
        if topics:
            for deletion in admin.delete_topics(topics, operation_timeout=_STOP_S).values():
                deletion.result()


@contextmanager
def open_site(shared: Globals, plan: Plan) -> Iterator[Site]:
    """An installation with its topics made and nothing running: on an embedded broker, unless one is given."""
    from mainspring.local import EmbeddedKafka

    own = shared.settings().origin(("kafka", "bootstrap")) == "default"
    kafka = EmbeddedKafka(notify=note) if own else None
    home = Path(tempfile.mkdtemp(prefix="mainspring-bench-"))
    site: Site | None = None
    try:
        if kafka is not None:
            kafka.start()
        site = Site(shared, kafka, plan, home)
        site.make_topics()
        yield site
    finally:
        if site is not None:
            site.close()
        if kafka is not None:
            kafka.stop()
        shutil.rmtree(home, ignore_errors=True)
