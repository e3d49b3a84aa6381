"""One node of the embedded Kafka: a Java process, its directory and its log."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mainspring.local.errors import BrokerStartError
from mainspring.local.layout import ClusterLayout, server_properties
from mainspring.local.runtime import JVM_FLAGS, Runtime
from mainspring.local.spawn import spawn

_FORMAT_TIMEOUT_S = 60.0
_TAIL_LINES = 30


@dataclass
class Node:
    """One broker-and-controller process; it may be started, killed and started again on the same data and ports."""

    runtime: Runtime
    layout: ClusterLayout
    node_id: int
    home: Path
    heap: str
    extra_flags: Sequence[str] = ()
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def address(self) -> str:
        """The address that clients of this node connect to."""
        return self.layout.bootstrap.split(",")[self.node_id - 1]

    @property
    def log_file(self) -> Path:
        """Where everything that the process prints goes; its name tells the node."""
        return self.home / "broker.log"

    @property
    def running(self) -> bool:
        """Whether the process has been started and has not ended."""
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self) -> int:
        """The process id; raises BrokerStartError where the node is not running."""
        if self.process is None or self.process.poll() is not None:
            raise BrokerStartError(f"node {self.node_id} is not running: start the cluster, or restart the node, first")
        return self.process.pid

    def write_properties(self) -> None:
        """Write `server.properties` and, in a new directory, format the data directory."""
        self.home.mkdir(parents=True, exist_ok=True)
        data = self.home / "data"
        self._properties.write_text(server_properties(self.layout, self.node_id, data), encoding="utf-8")
        # It holds passwords where the cluster has users.
        self._properties.chmod(0o600)
        if not (data / "meta.properties").exists():
            self._format()

    @property
    def _properties(self) -> Path:
        return self.home / "server.properties"

    def _format(self) -> None:
        tool = ["kafka.tools.StorageTool", "format", "--cluster-id", self.layout.cluster_id]
        users = self.layout.sasl.format_arguments() if self.layout.sasl else []
        command = [*self._java("-Xmx128m"), *tool, "--config", str(self._properties), *users]
        outcome = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_FORMAT_TIMEOUT_S,
            check=False,
        )
        if outcome.returncode != 0:
            # Kept only then: the tool prints the users' credentials.
            self.log_file.write_bytes(outcome.stdout)
            raise BrokerStartError(self.explain("its data directory could not be formatted"))

    def _java(self, *flags: str) -> list[str]:
        runtime = self.runtime
        archive = [f"-XX:AOTCache={runtime.archive}"] if runtime.archive.exists() and not self.extra_flags else []
        logging = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true")
        stamps = "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX"
        own = (*JVM_FLAGS, *archive, *logging, stamps, *self.extra_flags)
        return [str(runtime.java), *own, *flags, "-cp", runtime.class_path]

    def launch(self, *, outlives_parent: bool) -> None:
        """Start the process and return at once; raises BrokerStartError where the system refuses."""
        command = [*self._java(f"-Xmx{self.heap}"), "kafka.Kafka", str(self._properties)]
        with self.log_file.open("ab") as log:
            try:
                self.process = spawn(command, log, outlives_parent=outlives_parent)
            except OSError as error:
                raise BrokerStartError(
                    f"cannot start {self.runtime.java}: {error}. Is the disk or memory full?"
                ) from error

    def terminate(self) -> None:
        """Ask the process to shut down; it flushes and closes its log."""
        if self.running:
            # A paused process would not hear of it.
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the running process."""
        if self.process is not None:
            self.process.send_signal(number)

    def kill(self) -> None:
        """End the process as `kill -9` does, and wait until it is gone."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the process has ended; False where it still runs after `timeout_s` seconds."""
        if self.process is None:
            return True
        try:
            self.process.wait(max(timeout_s, 0.0))
        except subprocess.TimeoutExpired:
            return False
        return True

    def explain(self, what: str) -> str:
        """A message that says what went wrong and shows the last lines of the log."""
        code = self.process.poll() if self.process is not None else None
        ended = f" (exit code {code})" if code is not None else ""
        return f"Kafka node {self.node_id}: {what}{ended}. The end of {self.log_file}:\n{tail(self.log_file)}"


def tail(file: Path, lines: int = _TAIL_LINES) -> str:
    """The last lines of a text file, indented; a note where there are none."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"    (not readable: {error})"
    return "\n".join(f"    {line}" for line in text.splitlines()[-lines:]) or "    (empty)"


def remaining(deadline: float) -> float:
    """Seconds until `deadline` on the monotonic clock, at least 0."""
    return max(deadline - time.monotonic(), 0.0)
