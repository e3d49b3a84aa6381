"""One Kafka for the whole test run, also when the tests run in several processes (pytest-xdist).

The first process owns it and hands out its address over a Unix socket; it starts the broker when the first test asks.
So the broker is a child of the process that lives longest, and dies with it, even by `kill -9`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from multiprocessing.connection import Client, Listener
from typing import Protocol

from mainspring.local import EmbeddedKafka, LocalKafkaError

BOOTSTRAP_VARIABLE = "MAINSPRING_KAFKA__BOOTSTRAP"
_DOCKER_ANSWERS_S = 10
_IMAGE = "apache/kafka:4.3.1"


class _Broker(Protocol):
    @property
    def bootstrap(self) -> str: ...

    def stop(self) -> None: ...


class NoBrokerError(RuntimeError):
    """There is no Kafka for the tests, by none of the ways that were tried."""


class SharedBroker:
    """The broker of this run: the one named in the environment, else an embedded one, else one in a container."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._broker: _Broker | None = None
        self._refusal: str | None = None
        self._listener: Listener | None = None

    def bootstrap(self) -> str:
        """The broker's address; starts it at the first call. Raises NoBrokerError, at once after the first time."""
        given = os.environ.get(BOOTSTRAP_VARIABLE)
        if given:
            return given
        with self._lock:
            if self._refusal is not None:
                raise NoBrokerError(self._refusal)
            if self._broker is None:
                self._broker = self._start()
            return self._broker.bootstrap

    def _start(self) -> _Broker:
        kafka = EmbeddedKafka()
        try:
            kafka.start()
            return kafka
        except LocalKafkaError as error:
            if _docker_answers():
                return _container()
            self._refusal = (
                f"no Kafka for the tests: {BOOTSTRAP_VARIABLE} is not set, no Docker engine answers, and {error}"
            )
            raise NoBrokerError(self._refusal) from error

    def serve(self) -> str:
        """Answer the other processes of this run from now on; returns the socket's path for `ask`."""
        if self._listener is None:
            self._listener = Listener(family="AF_UNIX")
            threading.Thread(target=self._answer, args=(self._listener,), name="shared-broker", daemon=True).start()
        return str(self._listener.address)

    def _answer(self, listener: Listener) -> None:
        while True:
            try:
                connection = listener.accept()
            except OSError:
                return  # closed by stop()
            with connection:
                try:
                    connection.send(("bootstrap", self.bootstrap()))
                except NoBrokerError as error:
                    connection.send(("refused", str(error)))

    def stop(self) -> None:
        """End what was started here; a broker named in the environment is left alone."""
        if self._listener is not None:
            self._listener.close()
        with self._lock:
            if self._broker is not None:
                self._broker.stop()
                self._broker = None


def ask(address: str) -> str:
    """The bootstrap of the broker that the first process of this run owns; raises NoBrokerError."""
    with Client(address, family="AF_UNIX") as connection:
        verdict, answer = connection.recv()
    if verdict != "bootstrap":
        raise NoBrokerError(answer)
    return str(answer)


def _docker_answers() -> bool:
    """Whether a Docker engine runs here, not only its client."""
    docker = shutil.which("docker")
    if docker is None:
        return False
    try:
        found = subprocess.run([docker, "info"], capture_output=True, timeout=_DOCKER_ANSWERS_S, check=False)
    except subprocess.TimeoutExpired:
        return False
    return found.returncode == 0


class _Container:
    """A broker in a container, behind the two things that the tests need of one."""

    def __init__(self) -> None:
        from testcontainers.kafka import KafkaContainer

        self._container = KafkaContainer(_IMAGE).with_kraft()
        self._container.start()

    @property
    def bootstrap(self) -> str:
        return str(self._container.get_bootstrap_server())

    def stop(self) -> None:
        self._container.stop()


def _container() -> _Broker:
    return _Container()
