"""A cluster of brokers, seen from outside: who leads what, who coordinates whom, whether all copies are there."""

import os
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_FSIZE, prlimit

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from mainspring.local import EmbeddedKafka
from mainspring.local.readiness import admin_client

NODES = 3

_ASK_S = 5.0
_FIND_COORDINATOR, _VERSION = 10, 1
_BALLAST = "ballast"
_BALLAST_BYTES = 1 << 20
_TINY_BYTES = 4_096


class Coordinates(IntEnum):
    """Whose coordinator is asked for, as Kafka's protocol numbers it."""

    GROUP = 0
    TRANSACTIONS = 1


@dataclass(slots=True)
class Cluster:
    """Brokers that a test starts, and what it asks them. Brokers are numbered from 1."""

    brokers: EmbeddedKafka
    _admin: AdminClient = field(init=False)

    def __post_init__(self) -> None:
        self._admin = admin_client(self.brokers.bootstrap, {})

    def leader(self, topic: str, partition: int) -> int | None:
        """Which broker leads a partition; None while none does, or nobody can tell."""
        try:
            found = self._admin.list_topics(topic, timeout=_ASK_S).topics[topic].partitions[partition].leader
        except (KafkaException, KeyError):
            return None
        return found if found in self.brokers.pids else None

    def coordinator(self, of: Coordinates, name: str) -> int | None:
        """Which broker coordinates a group, or the transactions of an id; None while nobody can tell."""
        for address in self.brokers.bootstrap.split(","):
            host, port = address.split(":")
            try:
                found = _find_coordinator(host, int(port), of, name)
            except OSError:
                continue
            if found in self.brokers.pids:
                return found
        return None

    def is_whole(self) -> bool:
        """Whether every broker runs, and every copy of every partition is in sync."""
        if len(self.brokers.pids) < NODES:
            return False
        try:
            topics = self._admin.list_topics(timeout=_ASK_S).topics.values()
        except KafkaException:
            return False
        partitions = [partition for topic in topics for partition in topic.partitions.values()]
        return all(len(each.isrs) == len(each.replicas) for each in partitions)

    def send(self, broker: int, number: signal.Signals) -> None:
        """A signal to a broker."""
        os.kill(self.brokers.pid(broker), number)

    def is_gone(self, broker: int) -> bool:
        """Whether a broker has ended."""
        return broker not in self.brokers.pids

    def refuse_writes(self, broker: int) -> None:
        """Lets no file of a broker grow any more, as if the disk were full, until it is started again.

        The error is *file too large* instead of *no space left*; the broker takes both for a directory that has failed.
        What it has mapped into memory can still be written, and files that are tiny yet, too.
        """
        prlimit(self.brokers.pid(broker), RLIMIT_FSIZE, (_TINY_BYTES, RLIM_INFINITY))


def _find_coordinator(host: str, port: int, of: Coordinates, name: str) -> int | None:
    """Asks one broker; None where it answers with an error. Raises OSError where it does not answer."""
    key = name.encode()
    header = struct.pack(">hhih", _FIND_COORDINATOR, _VERSION, 1, -1)
    request = header + struct.pack(">h", len(key)) + key + struct.pack(">b", of)
    with socket.create_connection((host, port), _ASK_S) as link:
        link.sendall(struct.pack(">i", len(request)) + request)
        with link.makefile("rb") as stream:
            answer = stream.read(struct.unpack(">i", stream.read(4).ljust(4, b"\x00"))[0])
    if len(answer) < 12:
        raise OSError("the connection was closed in the middle of an answer")
    _, _, error, words = struct.unpack(">iihh", answer[:12])
    begin = 12 + max(words, 0)
    return None if error else int(struct.unpack(">i", answer[begin : begin + 4])[0])


class SmallDisk:
    """A file system of its own for the data of one broker, in memory, which can be filled."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def fill(self) -> None:
        """Takes what room is left."""
        with (self._place / _BALLAST).open("ab", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(bytes(_BALLAST_BYTES))
            except OSError:
                return

    def clear(self) -> None:
        """Gives the room back."""
        (self._place / _BALLAST).unlink()


@contextmanager
def small_disk(data_dir: Path, broker: int, size: str) -> Iterator[SmallDisk | None]:
    """Puts the data of a broker that has not been started yet on a disk of this size; None where nobody may mount."""
    place = data_dir / f"node-{broker}" / "data"
    place.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    is_mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield SmallDisk(place) if is_mounted else None
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(place)], check=True)
