"""A PostgreSQL of the test run's own, from the server programs that this machine has."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

_READY_S = 60.0
_USERS = ("postgres", "nobody")
_FOLDERS = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/pgsql/bin",
)


class NoPostgresError(RuntimeError):
    """No PostgreSQL server programs on this machine."""


class PostgresServer:
    """One server on a Unix socket in a folder of its own, without durability: it lives for one run.

    PostgreSQL refuses to run as root, so root starts it as another user.
    """

    def __init__(self) -> None:
        self._folder = Path(
            tempfile.mkdtemp(prefix="mainspring-pg-", dir=os.environ.get("MAINSPRING_TEST_PG_DIR", "/tmp"))
        )
        self._account = _account()
        self._server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the server and waits until it answers. Raises NoPostgresError where there are no programs."""
        initdb, postgres = _program("initdb"), _program("postgres")
        if self._account is not None:
            os.chown(self._folder, self._account.pw_uid, self._account.pw_gid)
        data = self._folder / "data"
        self._run([initdb, "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"])
        with (self._folder / "log").open("wb") as log:
            self._server = subprocess.Popen(
                [
                    postgres,
                    *("-D", str(data), "-k", str(self._folder), "-h", ""),
                    *("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off"),
                ],
                stdout=log,
                stderr=log,
                **self._identity(),
            )
        self._wait()

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(command, capture_output=True, check=False, **self._identity())
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed: {done.stderr.decode(errors='replace')}")

    def _identity(self) -> dict[str, Any]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self._folder), "LC_ALL": "C"}
        common: dict[str, Any] = {"cwd": self._folder, "env": environment}
        if self._account is None:
            return common
        return common | {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}

    def _wait(self) -> None:
        deadline = time.monotonic() + _READY_S
        while True:
            assert self._server is not None
            if self._server.poll() is not None:
                raise RuntimeError(f"PostgreSQL ended: {(self._folder / 'log').read_text(errors='replace')}")
            try:
                psycopg.connect(self._conninfo("postgres"), connect_timeout=2).close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return

    def _conninfo(self, database: str) -> str:
        return f"host={self._folder} user=postgres dbname={database}"

    def new_database(self) -> str:
        """Makes an empty database; returns its URL."""
        name = f"t{secrets.token_hex(6)}"
        with psycopg.connect(self._conninfo("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql://postgres@/{name}?host={self._folder}"

    def stop(self) -> None:
        """Ends the server and removes all it wrote."""
        if self._server is not None:
            # An immediate shutdown: nobody will look at the data again.
            self._server.send_signal(signal.SIGQUIT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._server.wait(20)
            if self._server.poll() is None:
                self._server.kill()
                self._server.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _account() -> pwd.struct_passwd | None:
    """Whom to run the server as; None: as we are."""
    if os.geteuid() != 0:
        return None
    for name in _USERS:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise NoPostgresError("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody")


def _program(name: str) -> str:
    found = shutil.which(name)
    if found:
        return found
    for pattern in _FOLDERS:
        for candidate in sorted(Path("/").glob(f"{pattern[1:]}/{name}"), reverse=True):
            return str(candidate)
    raise NoPostgresError(f"there is no {name} on this machine: install PostgreSQL's server (Debian: postgresql)")
