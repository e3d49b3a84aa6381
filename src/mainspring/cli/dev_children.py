"""The processes that `mainspring dev` runs, and their lines under one hat."""

import json
import os
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from subprocess import Popen, TimeoutExpired
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from mainspring.cli.output import printable, stdout

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["Child", "say"]

_STOP_S = 15.0
_PROBE_S = 1.0
_QUIET_S = 0.5
_STYLES = {"kafka": "bright_black", "scheduler": "cyan", "worker": "green", "projector": "magenta", "jobs": "blue"}
_LEVELS = {"warning": ("warn ", "bold yellow"), "error": ("error ", "bold red"), "critical": ("fatal ", "bold red")}
_HEAD = frozenset({"timestamp", "level", "event", "logger", "exception", "stack"})
# What is told otherwise: the partitions in one line, the rest by the banner.
_UNTOLD = frozenset({"partition ready", "partitions assigned", "starts"})


def say(name: str, text: "str | Text", *, cut: bool = False) -> None:
    """One line of one of the parts, under its name; `cut` where the terminal's width ends."""
    from rich.text import Text

    # The parts' own colours are kept; other control sequences are not.
    told = Text.from_ansi(text) if isinstance(text, str) else text
    line = Text.assemble((f"{name:<9} │ ", _STYLES[name]), told)
    if cut:
        line.truncate(stdout().width, overflow="ellipsis")
    stdout().print(line, soft_wrap=True)


class Child:
    """One process of ours that logs JSON lines to stderr; a context manager that runs it."""

    def __init__(self, role: str, command: Sequence[str], http_port: int) -> None:
        self.role = role
        self._command = command
        self._http_port = http_port
        self._partitions: list[float] = []
        self._last_s = 0.0

    def __enter__(self) -> Self:
        from mainspring.local.spawn import spawn

        reading, writing = os.pipe()
        with os.fdopen(writing, "wb") as output:
            self._process: Popen[bytes] = spawn(self._command, output)
        self._reader = threading.Thread(target=self._copy, args=(os.fdopen(reading, "rb"),), daemon=True)
        self._reader.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(1)

    def exit_code(self) -> int | None:
        """None while it runs; the last of its lines have been shown when it does not."""
        code = self._process.poll()
        if code is not None:
            self._reader.join(1)
        return code

    def is_ready(self) -> bool:
        """Whether its `/readyz` is well."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._http_port}/readyz", timeout=_PROBE_S):
                return True
        except OSError:
            return False

    def tell_partitions(self, *, at_once: bool = False) -> None:
        """One line for all partitions that became ready, once no more follow."""
        if self._partitions and (at_once or time.monotonic() - self._last_s > _QUIET_S):
            took, self._partitions = self._partitions, []
            noun = "partition" if len(took) == 1 else "partitions"
            say(self.role, f"{len(took)} {noun} ready in {max(took) / 1000:.1f} s")

    def _copy(self, stream: IO[bytes]) -> None:
        with stream:
            for raw in stream:
                line = raw.decode("utf-8", "replace").rstrip("\n")
                try:
                    entry = json.loads(line)
                except ValueError:
                    entry = None
                if isinstance(entry, dict) and "event" in entry:
                    self._tell(entry)
                else:
                    say(self.role, line)

    def _tell(self, entry: Mapping[str, Any]) -> None:
        from rich.text import Text

        event = str(entry["event"])
        if event == "partition ready":
            self._last_s = time.monotonic()
            self._partitions.append(float(entry.get("took_ms", 0)))
        if event in _UNTOLD:
            return
        fields = " ".join(f"{name}={value}" for name, value in entry.items() if name not in _HEAD)
        line = Text.assemble(_LEVELS.get(str(entry.get("level")), ""), printable(event))
        if fields:
            line.append(f" {printable(fields)}", style="dim")
        say(self.role, line)
        for name in ("exception", "stack"):
            for traced in str(entry.get(name) or "").splitlines():
                say(self.role, printable(traced))
