"""The side process of `StallGuard`: sends the heartbeats of a worker that cannot.

Reads lines of JSON: the setup, then what is held each time that changes. Writes one line for each round of heartbeats
that the broker has acknowledged. Monotonic times are the same in all processes of a machine.
"""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer

from mainspring.schemas.attempts import AttemptHeartbeat
from mainspring.schemas.codec import Codec
from mainspring.schemas.common import HeldAttempt
from mainspring.workers.lifeline import bind_to_parent

__all__ = ["main"]

_STOPPED_STATES = frozenset("TtZXx")
"""As /proc/PID/stat has them: stopped by a signal or a debugger, or dead. A stopped worker runs nothing."""


class SideProcess:
    """What the side process knows, and the rounds it makes."""

    def __init__(self, setup: dict[str, Any], parent_pid: int) -> None:
        self._setup = setup
        self._stat = Path(f"/proc/{parent_pid}/stat")
        self._codec = Codec.embedded()
        self._header = bytes.fromhex(setup["header"])
        self._producer = Producer(setup["producer"])
        self._lock = threading.Lock()
        self._number = 0
        self._held: list[Any] = []
        self._heard_at = time.monotonic()

    def hear(self, line: bytes) -> None:
        """Takes what is held now."""
        told = json.loads(line)
        with self._lock:
            self._number, self._held, self._heard_at = told["number"], told["held"], time.monotonic()

    def serve(self) -> None:
        """Makes rounds for as long as the worker lives."""
        heartbeat_s, stall_s = self._setup["heartbeat_ms"] / 1000, self._setup["stall_ms"] / 1000
        pause = threading.Event()
        while True:
            pause.wait(heartbeat_s / 2)
            with self._lock:
                number, held, silent_s = self._number, self._held, time.monotonic() - self._heard_at
            # The worker speaks at every heartbeat, also when it holds nothing.
            if held and heartbeat_s * 1.5 <= silent_s < stall_s and not self._is_stopped():
                self._beat(number, held)
            self._producer.poll(0)

    def _is_stopped(self) -> bool:
        try:
            state = self._stat.read_text(errors="replace").rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            return True
        return state in _STOPPED_STATES

    def _beat(self, number: int, held: list[Any]) -> None:
        sent_at = time.monotonic()
        arrived_at: list[float] = []

        def delivered(error: Any, message: Any) -> None:
            if error is None:
                latency_s = message.latency()
                arrived_at.append(time.monotonic() if latency_s is None else sent_at + latency_s)
            if len(arrived_at) == len(held):
                sys.stdout.write(json.dumps([number, sent_at, max(arrived_at)]) + "\n")
                sys.stdout.flush()

        for partition, attempts in held:
            record = AttemptHeartbeat(
                worker_id=self._setup["worker_id"],
                incarnation=self._setup["incarnation"],
                reported_at_ms=int(time.time() * 1000),
                attempts=tuple(
                    HeldAttempt(job_id=job_id, attempt=attempt, progress=progress, note=note)
                    for job_id, attempt, progress, note in attempts
                ),
            )
            # The schema id may come from a registry; the body is the same everywhere.
            value = self._header + self._codec.encode(record)[len(self._header) :]
            key = self._setup["worker_id"].encode()
            try:
                self._producer.produce(self._setup["topic"], value, key, partition=partition, on_delivery=delivered)
            except (BufferError, KafkaException):
                return  # the next round is as good


def main(parent_pid: int) -> int:
    """Entry of the side process."""
    bind_to_parent(parent_pid)
    lines = sys.stdin.buffer
    side = SideProcess(json.loads(lines.readline()), parent_pid)
    threading.Thread(target=side.serve, name="mainspring-side", daemon=True).start()
    for line in lines:
        side.hear(line)
    return 0
