"""A Kafka in the background: what `mainspring local kafka start|stop|status` does.

It outlives the process that started it. A file in its data directory tells the others where it is; the process behind
that file is recognised by its command line, since a process id alone may long belong to somebody else.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from mainspring.local.cluster import READY_TIMEOUT_S, EmbeddedKafka
from mainspring.local.errors import AlreadyRunningError, LocalKafkaError
from mainspring.local.locks import file_lock
from mainspring.local.ports import is_free
from mainspring.local.runtime import KAFKA_VERSION, Notify, silent

DEFAULT_PORT = 9092
_RECORD = "background.json"
_STOP_TIMEOUT_S = 15.0
_POLL_S = 0.02
_PROC = Path("/proc/self").parent


@dataclass(frozen=True)
class Background:
    """A background broker as it was recorded when it started."""

    bootstrap: str
    pids: tuple[int, ...]
    data_dir: str
    kafka_version: str
    started_at: float
    """Seconds since the epoch."""


def default_data_dir() -> Path:
    """Where the background broker keeps its data: below XDG_DATA_HOME, else below ~/.local/share."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "mainspring" / "kafka"


def start(
    data_dir: Path | None = None,
    *,
    port: int = DEFAULT_PORT,
    nodes: int = 1,
    timeout_s: float = READY_TIMEOUT_S,
    notify: Notify = silent,
) -> Background:
    """Start a broker that outlives this process, and return once it serves clients on `port` of loopback.

    Raises AlreadyRunningError where one runs on this data directory, LocalKafkaError where the port is taken,
    BrokerStartError where it does not come up.
    """
    directory = _directory(data_dir)
    with file_lock(directory / "background.lock"):
        found = status(directory)
        if found is not None:
            raise AlreadyRunningError(
                f"a broker runs on {directory} already, at {found.bootstrap}: use it, or end it with "
                "`mainspring local kafka stop`"
            )
        if not is_free(port):
            raise LocalKafkaError(f"port {port} is taken by another program: give another one, or end that program")
        kafka = EmbeddedKafka(nodes, data_dir=directory, port=port, outlives_parent=True, notify=notify)
        kafka.start(timeout_s)
        background = Background(
            kafka.bootstrap, tuple(kafka.pids.values()), str(directory), KAFKA_VERSION, started_at=time.time()
        )
        (directory / _RECORD).write_text(json.dumps(asdict(background)), encoding="utf-8")
        return background


def status(data_dir: Path | None = None) -> Background | None:
    """The background broker on this data directory; None where none of its processes runs."""
    record = _directory(data_dir) / _RECORD
    try:
        fields = json.loads(record.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    background = Background(**{**fields, "pids": tuple(fields["pids"])})
    return background if _ours(background) else None


def stop(data_dir: Path | None = None, timeout_s: float = _STOP_TIMEOUT_S) -> bool:
    """Shut the background broker down, its data kept; killed after `timeout_s`. False where none was running."""
    directory = _directory(data_dir)
    if not directory.is_dir():
        return False
    with file_lock(directory / "background.lock"):
        background = status(directory)
        if background is None:
            return False
        _end(background, signal.SIGTERM, timeout_s)
        _end(background, signal.SIGKILL, timeout_s)
        (directory / _RECORD).unlink(missing_ok=True)
        return True


def _directory(given: Path | None) -> Path:
    # Absolute, since processes are recognised by it.
    return (given or default_data_dir()).absolute()


def _end(background: Background, number: signal.Signals, timeout_s: float) -> None:
    for pid in _ours(background):
        os.kill(pid, number)
    deadline = time.monotonic() + timeout_s
    while _ours(background) and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def _ours(background: Background) -> list[int]:
    """The recorded processes that still run, and are still the broker of this data directory."""
    return [pid for pid in background.pids if background.data_dir in _command_line(pid)]


def _command_line(pid: int) -> str:
    """The command line of a process; empty for one that is gone or has ended and was not waited for."""
    if _PROC.is_dir():
        try:
            return (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            return ""
    listed = ["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)]
    shown = subprocess.run(listed, capture_output=True, text=True, check=False)
    return shown.stdout
