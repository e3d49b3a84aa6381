"""A machine that runs the projector: the real one, its SQLite file too, on a simulated consumer and clock."""

import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Engine, create_engine, event, select
from sqlalchemy.pool import NullPool

from mainspring.log.source import LogSource
from mainspring.processors.projector import Projector
from mainspring.processors.projector.config import ProjectorConfig
from mainspring.processors.projector.database import open_writer, parse_url
from mainspring.processors.projector.feed import Feed
from mainspring.processors.projector.tables import meta, metadata, positions
from mainspring.schemas import Codec
from mainspring.topics import Connection, Topology
from tests.sim.kafka import COMMITTED, SimBroker
from tests.sim.kafka.consumer import SimAdminClient, SimConsumer
from tests.sim.node import Node
from tests.sim.process import Process
from tests.sim.world import SECOND, Violation, World
from tests.support.memory_view import project

__all__ = ["ProjectorNode"]

_KEPT_BYTES: Final = 1_000


class _Stop(threading.Event):
    """Whoever waits for it lets virtual time pass."""

    def __init__(self, process: Process) -> None:
        super().__init__()
        self._process = process

    def wait(self, timeout: float | None = None) -> bool:
        self._process.sleep(round((timeout or 0.0) * SECOND))
        return self.is_set()


class _SimProjector(Projector):
    """The projector with its ports replaced."""

    def __init__(self, config: ProjectorConfig, process: Process, broker: SimBroker, linger: int) -> None:
        super().__init__(config, process.clock.wall_ms)
        self._process = process
        self._broker = broker
        self._linger = linger

    def _open_feed(self) -> Feed:
        config, process, broker = self._config, self._process, self._broker
        return Feed(
            config.connection,
            config.topology,
            admin_timeout_s=config.admin_timeout_s,
            make_consumer=lambda _: SimConsumer(process, broker, self._linger),  # type: ignore[arg-type, return-value]  # what is used of a consumer
            make_admin=lambda _: SimAdminClient(process, broker),  # type: ignore[arg-type, return-value]  # what is used of an admin client
        )

    def _open_view(self) -> Engine:
        engine = open_writer(self._url)

        @event.listens_for(engine, "before_cursor_execute")
        def between_statements(*_: Any) -> None:
            self._process.point("statement")

        @event.listens_for(engine, "connect")
        def no_power_cuts(connection: Any, _record: Any) -> None:
            # A process that dies takes nothing from the file; only a machine that does would.
            connection.execute("PRAGMA synchronous=OFF")

        return engine


class ProjectorNode(Node):
    """One machine, its view on its disk."""

    def __init__(self, world: World, broker: SimBroker, topology: Topology, codec: Codec) -> None:
        super().__init__(world, "projector")
        self._broker = broker
        self._topology = topology
        self._codec = codec
        self._folder = Path(tempfile.mkdtemp(prefix="view-"))
        self.url = f"sqlite:///{self._folder / 'view.db'}"
        self._linger = world.rng.randrange(2, 20) * SECOND
        self._projector: _SimProjector | None = None
        self._stop: _Stop | None = None

    def stop(self) -> None:
        if self._stop is not None:
            self._stop.set()

    def is_level(self) -> bool:
        """Whether all events that can be read are in the view."""
        if self._projector is None:
            return False
        places = self._projector.status().partitions
        ends = {
            log.place[1]: next((each.at + 1 for each in reversed(log.records) if each.state == COMMITTED), 0)
            for log in self._broker.logs(self._topology.events.name)
        }
        return len(places) == len(ends) and all(each.next_offset >= ends[each.partition] for each in places)

    def check(self, log: LogSource) -> None:
        """The view is what one pass over the whole log gives. Raises Violation."""
        again = f"sqlite:///{self._folder / 'again.db'}"
        project(log, self._codec, again)
        mine, theirs = _rows(self.url), _rows(again)
        for table, rows in theirs.items():
            if mine[table] != rows:
                differing = sorted(map(str, mine[table] ^ rows))[:2]
                raise Violation("view is the fold", f"{table} differs: {differing}")

    def clear(self) -> None:
        """Gives back the disk."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _reset(self) -> None:
        self._projector = self._stop = None

    def _live(self, process: Process) -> None:
        config = ProjectorConfig(
            connection=Connection("nowhere"),
            topology=self._topology,
            codec=self._codec,
            url=self.url,
            payload_bytes=_KEPT_BYTES,
            result_bytes=_KEPT_BYTES,
        )
        self._stop = _Stop(process)
        self._projector = _SimProjector(config, process, self._broker, self._linger)
        self._projector.run(self._stop)


def _rows(url: str) -> dict[str, frozenset[tuple[Any, ...]]]:
    """All of a view but for where it stands."""
    engine = create_engine(parse_url(url), poolclass=NullPool)
    with engine.connect() as connection:
        rows = {
            table.name: frozenset(tuple(row) for row in connection.execute(select(table)))
            for table in metadata.sorted_tables
            if table not in (meta, positions)
        }
    engine.dispose()
    return rows
