"""A machine that runs a scheduler: the real engine, program and core, on simulated ports, life after life."""

from collections.abc import Callable

from mainspring.processors.core import Rules
from mainspring.processors.engine.errors import FatalKafkaError
from mainspring.processors.engine.loop import Engine
from mainspring.processors.engine.options import EngineOptions
from mainspring.processors.engine.tables import MemoryTables, Tables
from mainspring.processors.scheduler.program import SchedulerProgram
from mainspring.schemas import Codec
from mainspring.topics import Topology
from tests.sim.disk import Disk, DiskTables
from tests.sim.kafka import ClientSettings, SimBroker, SimKafka
from tests.sim.node import Node
from tests.sim.process import Process, SimRandomness
from tests.sim.world import World

__all__ = ["SchedulerNode"]

_STEP_MS = 5_000
"""Longer than in a real process, which is only woken more often: nothing in the loop depends on it."""


class SchedulerNode(Node):
    """One slot. A new life begins after each death, when the machine is told to."""

    def __init__(
        self,
        world: World,
        broker: SimBroker,
        topology: Topology,
        codec: Codec,
        rules: Rules,
        slot: str,
        *,
        settings: ClientSettings,
        options: EngineOptions,
        on_disk: bool,
    ) -> None:
        super().__init__(world, f"scheduler-{slot}")
        self.disk: Disk = {}
        self.engine: Engine | None = None
        self.late: Callable[[str], int | None] = lambda _: None
        self._broker = broker
        self._topology = topology
        self._codec = codec
        self.rules = rules
        self._slot = slot
        self._settings = settings
        self._options = options
        self._on_disk = on_disk
        self._stopping = False

    def stop(self) -> None:
        self._stopping = True

    def _reset(self) -> None:
        self._stopping = False
        self.engine = None

    def _live(self, process: Process) -> None:
        """As the service does: an engine that cannot go on is thrown away and built anew."""
        while True:
            engine: Engine | None = None
            try:
                engine = self.engine = self._build(process)
                self._run(engine, process)
            except FatalKafkaError as error:
                self._world.note("fatal", process.name, error)
                self._world.saw("engine built anew")
                if engine is not None:
                    engine.close()
                process.sleep(200_000)
            else:
                engine.close()
                self._world.saw("scheduler left in good order")
                return

    def _run(self, engine: Engine, process: Process) -> None:
        while not self._stopping:
            process.point("step")
            engine.step(_STEP_MS)

    def _build(self, process: Process) -> Engine:
        transactional_id = self._topology.transactional_id(self._slot)
        kafka = SimKafka(process, self._broker, self._settings)
        kafka.late = self.late
        tables: Tables = DiskTables(process, self.disk) if self._on_disk else MemoryTables()
        return Engine(
            program=SchedulerProgram(
                topology=self._topology,
                codec=self._codec,
                rules=self.rules,
                recorded_by=transactional_id,
                cache_rows=64,
                window_jobs=1,
            ),
            kafka=kafka,
            tables=tables,
            clock=process.clock,
            randomness=SimRandomness(process),
            transactional_id=transactional_id,
            options=self._options,
        )
