"""The processes of the demo: started, watched, killed with `kill -9`, started again, and ended with it."""

import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from types import TracebackType
from typing import Self

from mainspring.cli.demo.errors import DemoError
from mainspring.local.ports import LOOPBACK, free_ports
from mainspring.local.spawn import spawn

__all__ = ["Fleet", "Member"]

_STOP_S = 20.0
_PROBE_S = 2.0
_TAIL_LINES = 8


@dataclass(slots=True, kw_only=True)
class Member:
    """One process, by a name that it keeps when it is started again."""

    name: str
    role: str
    command: Sequence[str]
    log_file: Path
    port: int
    process: "Popen[bytes] | None" = field(default=None)

    @property
    def is_up(self) -> bool:
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self) -> int:
        """The process id; that of the last process when none runs, 0 before the first."""
        return 0 if self.process is None else self.process.pid

    def tail(self) -> str:
        """The last lines that it wrote."""
        if not self.log_file.exists():
            return ""
        lines = self.log_file.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_TAIL_LINES:])


class Fleet:
    """All members. Whatever ends the demo ends them: on leaving the context all that still run are killed."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._members: dict[str, Member] = {}
        # Those that ought to run: one that does not has died by itself.
        self._expected: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def __getitem__(self, name: str) -> Member:
        return self._members[name]

    def add(self, commands: Mapping[str, tuple[str, Sequence[str]]]) -> None:
        """Describe members by name: role and command line. Each gets a port for its health."""
        self._logs.mkdir(parents=True, exist_ok=True)
        for (name, (role, command)), port in zip(commands.items(), free_ports(len(commands)), strict=True):
            self._members[name] = Member(
                name=name,
                role=role,
                command=[*command, "--set", f"http.port={port}"],
                log_file=self._logs / f"{name}.log",
                port=port,
            )

    def start(self, name: str) -> None:
        """Start a member, for the first time or again."""
        member = self._members[name]
        with member.log_file.open("ab") as log:
            member.process = spawn(member.command, log)
        self._expected.add(name)

    def kill(self, name: str) -> None:
        """`kill -9`; returns when the process is gone."""
        self._expected.discard(name)
        process = self._members[name].process
        if process is not None:
            process.kill()
            process.wait()

    def check(self) -> None:
        """Raises DemoError when a member has ended that nobody killed."""
        for name in self._expected:
            member = self._members[name]
            if not member.is_up:
                code = None if member.process is None else member.process.returncode
                raise DemoError(
                    f"{name} ended by itself, with exit code {code}.",
                    why=member.tail(),
                    hint=f"Its whole log is {member.log_file}.",
                )

    def unready(self, name: str) -> str | None:
        """Why a member is not ready; None when it is."""
        member = self._members[name]
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{member.port}/readyz", timeout=_PROBE_S):
                return None
        except urllib.error.HTTPError as error:
            return error.read().decode("utf-8", "replace").strip()
        except OSError as error:
            return f"{name} does not answer yet: {error}"

    def stop(self) -> tuple[str, ...]:
        """Ask all to end in order; returns what went wrong with it, a sentence each."""
        running = [member for member in self if member.is_up]
        self._expected.clear()
        for member in running:
            assert member.process is not None
            member.process.terminate()
        deadline = time.monotonic() + _STOP_S
        return tuple(problem for member in running if (problem := _problem(member, deadline)))

    def end(self) -> None:
        """Kill whatever runs. Safe to call at any moment, also from a signal handler."""
        self._expected.clear()
        processes = [member.process for member in self if member.process is not None]
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def _problem(member: Member, deadline: float) -> str | None:
    """Wait for a member that was asked to end; what is wrong with how it did."""
    assert member.process is not None
    try:
        code = member.process.wait(max(0.0, deadline - time.monotonic()))
    except TimeoutExpired:
        return f"{member.name} did not end within {_STOP_S:.0f} s of SIGTERM"
    return f"{member.name} ended with exit code {code} after SIGTERM" if code else None
