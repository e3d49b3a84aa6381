"""An installation of real processes on a real broker: started by the commands, killed, stopped and started again."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from mainspring.client import Client, ClientConfig
from mainspring.local.spawn import spawn
from mainspring.settings import Settings
from mainspring.topics import Topology, admin
from tests.proof import jobs
from tests.proof.board import PATIENCE_S, Board
from tests.proof.ledger import Ledger

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "mainspring.cli")
_VERIFY_S = 300.0
_STOP_S = 30.0


@dataclass(slots=True, kw_only=True)
class Member:
    """One process, by a name that it keeps when it is started again."""

    name: str
    log_file: Path
    start_one: Callable[["Member"], "subprocess.Popen[Any]"]
    process: "subprocess.Popen[Any] | None" = None
    lives: int = 0
    started_ms: float = 0.0
    """When its present life was started, epoch milliseconds."""
    _said: "queue.SimpleQueue[str]" = field(default_factory=queue.SimpleQueue)

    @property
    def pid(self) -> int:
        """The process id of its present life."""
        assert self.process is not None
        return self.process.pid

    @property
    def life(self) -> str:
        """Its name, with the number of its present life."""
        return f"{self.name}.{self.lives}"

    def start(self) -> None:
        """Starts it, for the first time or again."""
        self.lives += 1
        self.started_ms = time.time() * 1_000
        self.process = self.start_one(self)
        self._listen()

    def kill(self) -> int:
        """`kill -9`; returns the monotonic nanoseconds at which it was dead."""
        assert self.process is not None
        self.process.kill()
        code = self.process.wait()
        at_ns = time.monotonic_ns()
        self.close()
        self.process = None
        assert code == -signal.SIGKILL, f"{self.name} had ended before it was killed: {self.tail()}"
        return at_ns

    def terminate(self) -> None:
        """SIGTERM: asks it to end in good order."""
        os.kill(self.pid, signal.SIGTERM)

    def wait_for_end(self) -> None:
        """Returns when it has ended in good order."""
        assert self.process is not None
        code = self.process.wait(_STOP_S)
        self.close()
        self.process = None
        assert code == 0, f"{self.name} ended with {code}: {self.tail()}"

    def close(self) -> None:
        """Lets go of its stdin, if it has any."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()

    def stop(self) -> None:
        """SIGSTOP; returns when it stands still, or turns out to be dead."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def go_on(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def check(self) -> None:
        """Fails when it has ended by itself."""
        code = None if self.process is None else self.process.poll()
        assert code is None, f"{self.name} ended by itself with {code}: {self.tail()}"

    def tail(self) -> str:
        """The last that it wrote."""
        return "\n".join(self.log_file.read_text(encoding="utf-8", errors="replace").splitlines()[-8:])

    # Only of schedulers that can be held:

    def order(self, line: str) -> None:
        """Tells it something on stdin."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        """Waits for what it says on stdout next; empty when it has ended."""
        try:
            return self._said.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise AssertionError(f"{self.name} said nothing for {PATIENCE_S:g} s: {self.tail()}") from None

    def _listen(self) -> None:
        assert self.process is not None
        pipe, said = self.process.stdout, queue.SimpleQueue[str]()
        self._said = said
        if pipe is None:
            return

        def pump() -> None:
            with pipe:
                for line in pipe:
                    said.put(line.strip())
            said.put("")

        threading.Thread(target=pump, name=f"proof-{self.name}", daemon=True).start()


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The settings of an installation, its processes and what can be seen of it."""

    settings_file: Path
    settings: Settings
    directory: Path
    board: Board
    client: Client
    offsets: Consumer
    """Asks what the schedulers have committed."""
    members: dict[str, Member] = field(default_factory=dict)

    @property
    def topology(self) -> Topology:
        """Its topics."""
        return self.settings.topology()

    def ledger(self) -> Ledger:
        """What its handlers have written down so far."""
        return Ledger(self.directory / "ledger")

    def command(self, *arguments: str, **settings: Any) -> list[str]:
        """A command of the product with these settings, and some of its own by their dotted names."""
        flags = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
        return [*COMMAND, "--config", str(self.settings_file), *flags, *arguments]

    def add(self, name: str, *arguments: str, **settings: Any) -> Member:
        """A process that runs a command of the product; started."""

        def start(member: Member) -> "subprocess.Popen[Any]":
            own = {jobs.LIFE_VARIABLE: member.life, jobs.DIRECTORY_VARIABLE: str(self.directory / "ledger")}
            variables = [f"{key}={value}" for key, value in (environment() | own).items()]
            with member.log_file.open("ab") as log:
                return spawn(["/usr/bin/env", "-i", *variables, *self.command(*arguments, **settings)], log)

        return self._started(name, start)

    def scheduler(self, name: str, **settings: Any) -> Member:
        """`mainspring scheduler`."""
        return self.add(name, "scheduler", "--slot", name, **settings)

    def worker(self, name: str, *, slots: int = 16, **settings: Any) -> Member:
        """`mainspring worker`, under a name of its own."""
        arguments = ("worker", "--app", "tests.proof.jobs:app", "--slots", str(slots))
        return self.add(name, *arguments, **{"worker.id": name}, **settings)

    def projector(self, **settings: Any) -> Member:
        """`mainspring projector`."""
        return self.add("projector", "projector", **settings)

    def held_scheduler(self, name: str) -> Member:
        """A scheduler whose transactions can be held open."""

        def start(member: Member) -> "subprocess.Popen[Any]":
            with member.log_file.open("ab") as log:
                return subprocess.Popen(
                    [sys.executable, "-m", "tests.proof.scheduler_process", str(self.settings_file), name],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    env=environment(),
                )

        return self._started(name, start)

    def _started(self, name: str, start: Callable[[Member], "subprocess.Popen[Any]"]) -> Member:
        member = Member(name=name, log_file=self.directory / f"{name}.log", start_one=start)
        self.members[name] = member
        member.start()
        return member

    def check(self) -> None:
        """Fails when a process has ended by itself."""
        for member in self.members.values():
            member.check()

    def until(self, condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        """Waits for something to be seen, while all processes live."""
        self.board.until(condition, what, patience_s=patience_s, check=self.check)

    def owners(self) -> dict[int, str]:
        """Which scheduler decides for which partition: it has taken it over, and left its name with the offsets."""
        topology = self.topology
        places = [TopicPartition(topology.commands.name, number) for number in range(topology.partitions)]
        prefix = topology.transactional_id("")
        found = self.offsets.committed(places, timeout=PATIENCE_S)
        return {
            place.partition: str(place.metadata).removeprefix(prefix).removesuffix("#new")
            for place in found
            if place.metadata
        }

    def verify(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """`mainspring log verify`: its exit code and its report."""
        ran = subprocess.run(
            self.command("log", "verify", "-o", "json", *arguments),
            capture_output=True,
            text=True,
            check=False,
            timeout=_VERIFY_S,
            env=environment(),
        )
        assert ran.stdout, ran.stderr
        report: dict[str, Any] = json.loads(ran.stdout)
        return ran.returncode, report

    def end(self) -> None:
        """Kills whatever runs."""
        for member in self.members.values():
            if member.process is not None:
                member.process.kill()
        for member in self.members.values():
            if member.process is not None:
                member.process.wait(_STOP_S)
                member.close()


def environment() -> dict[str, str]:
    """What processes inherit: nothing of the settings of the machine that runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAINSPRING_")}
    return kept | {"PYTHONPATH": str(ROOT)}


def write_settings(path: Path, sections: dict[str, dict[str, Any]]) -> Path:
    """A `mainspring.toml` of these sections, one level deep; strings and numbers, and None for the default."""
    lines: list[str] = []
    for section, values in sections.items():
        given = {name: value for name, value in values.items() if value is not None}
        lines += [f"[{section}]", *(f'"{name}" = {json.dumps(value)}' for name, value in given.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def settings_of(
    directory: Path, bootstrap: str, prefix: str, changes: dict[str, dict[str, Any]]
) -> tuple[Path, Settings]:
    """The settings of an installation: a small one, that notices deaths quickly. A change to None: the default."""
    sections: dict[str, dict[str, Any]] = {
        "kafka": {"bootstrap": bootstrap},
        "topics": {"prefix": prefix, "partitions": 4, "work_partitions": 4},
        "scheduler": {
            "session_timeout_ms": 2_000,
            "transaction_timeout_ms": 3_000,
            "state_dir": str(directory / "state"),
        },
        "view": {"url": f"sqlite:///{directory / 'view.db'}"},
        "log": {"format": "json"},
    }
    for section, values in changes.items():
        sections[section] = sections.get(section, {}) | values
    path = write_settings(directory / "mainspring.toml", sections)
    return path, Settings.load(config=path, environ={})


@contextmanager
def a_site(
    bootstrap: str,
    prefix: str,
    directory: Path,
    changes: dict[str, dict[str, Any]] | None = None,
    *,
    make_topics: bool = True,
) -> Iterator[Site]:
    """Topics of its own, a client and a board; no process yet. All processes are killed at the end."""
    (directory / "ledger").mkdir(parents=True)
    path, settings = settings_of(directory, bootstrap, prefix, changes or {})
    if make_topics:
        admin.apply(settings.connection(), settings.topology())
    # Offsets that a transaction is about to move would else be waited for.
    options = {"group.id": settings.topology().group("scheduler"), "isolation.level": "read_uncommitted"}
    with ExitStack() as stack:
        site = Site(
            settings_file=path,
            settings=settings,
            directory=directory,
            board=stack.enter_context(Board(settings.connection(), settings.topology())),
            client=stack.enter_context(Client(config=ClientConfig.of(settings, actor="proof@test"))),
            offsets=Consumer(settings.connection().consumer_config(**options)),
        )
        stack.callback(site.offsets.close)
        stack.callback(site.end)
        yield site


def names(kind: str, count: int) -> Sequence[str]:
    """Names of jobs."""
    return [f"{kind}-{number:05}" for number in range(count)]
