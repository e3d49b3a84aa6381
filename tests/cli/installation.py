"""A whole installation, run by the commands themselves."""

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest
from confluent_kafka.admin import AdminClient

from tests.cli.command_line import Cli, Ran

MAINSPRING = [sys.executable, "-m", "mainspring.cli"]
READY_S = 60.0
_LOOK_EVERY_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One long-running command and its address for metrics and health."""

    process: "subprocess.Popen[str]"
    url: str

    def get(self, path: str) -> tuple[int, str]:
        """Status and body."""
        try:
            with urlopen(self.url + path, timeout=5) as answer:  # noqa: S310 - the process's own loopback port
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    def wait_until_ready(self) -> None:
        """Returns when `/readyz` is well."""
        deadline = time.monotonic() + READY_S
        answer: tuple[int, str] = (0, "no answer")
        while time.monotonic() < deadline:
            try:
                answer = self.get("/readyz")
            except URLError as error:
                answer = (0, str(error))
            if answer[0] == 200:
                return
            time.sleep(_LOOK_EVERY_S)
        raise AssertionError(f"not ready after {READY_S:g} s: {answer}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The settings file of an installation and its processes by role."""

    config: Path
    services: dict[str, Service]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Runs commands in this process (starting Python for each takes longer than the command) with a site's settings."""

    site: Site
    cli: Cli
    monkeypatch: pytest.MonkeyPatch

    def __call__(self, *arguments: str, stdin: str = "") -> Ran:
        """Run a command to its end."""
        with self.monkeypatch.context() as patched:
            patched.setattr(sys, "stdin", StringIO(stdin))
            return self.cli("--config", str(self.site.config), *arguments)

    def submitted(self, *arguments: str) -> str:
        """The id of a job that was accepted."""
        done = self("job", "submit", *arguments)
        assert done.code == 0, done.err
        return done.out.strip()

    def ended(self, *arguments: str) -> str:
        """The id of a job that has ended, however."""
        job_id = self.submitted(*arguments)
        self("job", "watch", job_id)
        return job_id

    def why(self, job_id: str) -> str:
        """Why a job stands where it does: the type of the reason."""
        done = self("job", "explain", job_id, "-o", "json")
        assert done.code == 0, done.err
        return str(done.json["why"]["type"])


def run_apart(config: Path, *arguments: str) -> Ran:
    """Run a command to its end in a process of its own."""
    ran = subprocess.run(
        [*MAINSPRING, "--config", str(config), *arguments],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env=environment(),
        cwd=config.parent,
    )
    return Ran(code=ran.returncode, out=ran.stdout, err=ran.stderr)


def environment() -> dict[str, str]:
    """The environment without settings of the machine that runs the tests, wide enough that no line is wrapped."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAINSPRING_")}
    return {**kept, "COLUMNS": "400", "TZ": "UTC"}


@contextmanager
def service(config: Path, *arguments: str) -> Iterator[Service]:
    """A long-running command, stopped at the end; it must end with exit code 0."""
    process = subprocess.Popen(
        [*MAINSPRING, "--config", str(config), *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=environment(),
        cwd=config.parent,
    )
    lines: list[str] = []
    # Somebody has to read on, or the process would block when the pipe is full.
    reader = threading.Thread(target=lambda: lines.extend(process.stderr or ()), daemon=True)
    try:
        url = _address(process, lines)
        reader.start()
        yield Service(process=process, url=url)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, lines[-5:]
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if reader.ident is not None:
            reader.join()
        if process.stderr is not None:
            process.stderr.close()


@contextmanager
def installation(kafka: str, directory: Path) -> Iterator[Site]:
    """Topics, a scheduler, a worker with the sample jobs, and a projector."""
    prefix = f"cli{secrets.token_hex(5)}."
    config = directory / "mainspring.toml"
    config.write_text(
        f'[kafka]\nbootstrap = "{kafka}"\n'
        f'[topics]\nprefix = "{prefix}"\npartitions = 3\nwork_partitions = 2\n'
        f'[view]\nurl = "sqlite:///{directory}/view.db"\n'
        '[log]\nformat = "json"\n',
        encoding="utf-8",
    )
    with ExitStack() as stack:
        stack.callback(_delete_topics, kafka, prefix)
        made = run_apart(config, "topics", "apply")
        assert made.code == 0, made.err
        roles = {
            "scheduler": ("scheduler",),
            "worker": ("worker", "--app", "mainspring.cli.sample:app", "--slots", "4"),
            "projector": ("projector",),
        }
        services = {role: stack.enter_context(service(config, *words)) for role, words in roles.items()}
        for running in services.values():
            running.wait_until_ready()
        yield Site(config=config, services=services)


def _delete_topics(bootstrap: str, prefix: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    names = [name for name in admin.list_topics(timeout=30).topics if name.startswith(prefix)]
    for deletion in admin.delete_topics(names, operation_timeout=30).values():
        deletion.result()


def _address(process: "subprocess.Popen[str]", lines: list[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        lines.append(line)
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "http" in entry:
            return str(entry["http"])
    raise AssertionError(f"it ended before it served: {''.join(lines)}")
