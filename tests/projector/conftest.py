"""A topic of events on a real broker, and views in both databases."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from mainspring.processors.projector import Projector, ProjectorConfig, ProjectorStatus
from mainspring.schemas import Codec
from mainspring.topics import Topology
from tests.support.postgres import NoPostgresError, PostgresServer
from tests.support.scheduler_double import SchedulerDouble
from tests.support.synthetic_kafka import SyntheticCluster
from tests.support.synthetic_log import MemoryLog

WAIT_S = 90.0


@pytest.fixture(scope="session")
def codec() -> Codec:
    return Codec.embedded()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running PostgreSQL; without its programs the test is skipped, in CI it fails."""
    server = PostgresServer()
    try:
        server.start()
    except NoPostgresError as error:
        server.stop()
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    yield server
    server.stop()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def view_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a view may be made, once for each database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'view.db'}"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()


@dataclass(frozen=True, kw_only=True)
class Cluster(SyntheticCluster):
    """The topics of one installation on a real broker, a double that writes them, and projectors that read them."""

    def config(self, url: str, **changes: Any) -> ProjectorConfig:
        config = ProjectorConfig(
            connection=self.connection, topology=self.topology, codec=self.codec, url=url, topic_check_ms=500
        )
        return replace(config, **changes)

    @contextmanager
    def projecting(self, url: str, **changes: Any) -> Iterator[Running]:
        """A projector that runs in a thread until the block ends; its error is raised there."""
        running = Running(Projector(self.config(url, **changes)))
        running.start()
        try:
            yield running
        finally:
            running.stop()

    def project(self, url: str, **changes: Any) -> ProjectorStatus:
        """Runs a projector until it has caught up."""
        with self.projecting(url, **changes) as running:
            running.catch_up()
            return running.projector.status()


class Running:
    """A projector in a thread."""

    def __init__(self, projector: Projector) -> None:
        self.projector = projector
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="projector", daemon=True)

    def _run(self) -> None:
        try:
            self.projector.run(self._stop)
        except BaseException as error:  # noqa: BLE001  # handed to the test
            self.error = error

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()

    def wait_for(self, condition: Callable[[ProjectorStatus], bool]) -> None:
        """Waits until the projector's status is such."""
        deadline = time.monotonic() + WAIT_S
        while not condition(self.projector.status()):
            if self.error is not None:
                raise self.error
            assert time.monotonic() < deadline, f"not in time: {self.projector.status()}"
            time.sleep(0.01)

    def catch_up(self) -> None:
        """Waits until all there is has been folded."""
        self.wait_for(lambda status: status.is_caught_up)

    def wait_for_error(self) -> BaseException:
        """Waits until the projector has given up."""
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive(), f"still running: {self.projector.status()}"
        assert self.error is not None
        return self.error


@pytest.fixture
def cluster(kafka: str, prefix: str, codec: Codec) -> Cluster:
    """An installation with two partitions and empty topics."""
    return Cluster.new(kafka, prefix, codec)


@pytest.fixture
def double(codec: Codec) -> SchedulerDouble:
    """A double that writes into memory."""
    topology = Topology(partitions=2, queues=("default", "bulk"))
    return SchedulerDouble(topology, codec, MemoryLog(topology))
