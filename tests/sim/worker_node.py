"""A machine that runs a worker: the real one, whole, in a simulated world."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any

from confluent_kafka import KafkaException

from mainspring.schemas import CancelAttempt, ClaimRefused, Codec
from mainspring.topics import Connection, Topology
from mainspring.workers import Worker
from mainspring.workers.config import WorkerConfig, WorkerState
from mainspring.workers.measures import Measures
from mainspring.workers.ports import WorkerPorts
from mainspring.workers.registry import Registry
from tests.sim.executor import Ledger, SimExecutor
from tests.sim.kafka import SimBroker
from tests.sim.kafka.group_consumer import SimGroupConsumer
from tests.sim.kafka.plain_producer import SimProducer
from tests.sim.node import Node
from tests.sim.process import Process
from tests.sim.rest import Rest
from tests.sim.world import World

__all__ = ["WorkerNode", "WorkerShape"]

_TICK_S = 0.1
_IDLE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerShape:
    """How a worker is set up."""

    slots: int = 4
    lease_ms: int = 10_000
    heartbeat_ms: int = 3_000
    session_timeout_ms: int = 10_000
    drain_ms: int = 5_000


class WorkerNode(Node):
    """One machine. Each life of its process is another incarnation."""

    def __init__(
        self,
        world: World,
        broker: SimBroker,
        topology: Topology,
        codec: Codec,
        name: str,
        *,
        shape: WorkerShape,
        ledger: Ledger,
        registry: Callable[[], Registry],
    ) -> None:
        super().__init__(world, name)
        self.duplicates = 0.0
        """How often a heartbeat is written twice: its producer is not idempotent."""
        self._broker = broker
        self._topology = topology
        self._codec = codec
        self._shape = shape
        self._ledger = ledger
        self._registry = registry
        self._worker: _SimWorker | None = None

    def stop(self) -> None:
        if self._worker is not None:
            self._worker.drain()

    def hurry(self) -> None:
        """A second SIGTERM."""
        if self._worker is not None:
            self._worker.hurry()

    def _reset(self) -> None:
        self._worker = None

    def _live(self, process: Process) -> None:
        config = WorkerConfig(
            connection=Connection("nowhere"),
            topology=self._topology,
            codec=self._codec,
            worker_id=self.name,
            queues=self._topology.queues,
            slots=self._shape.slots,
            lease_ms=self._shape.lease_ms,
            heartbeat_ms=self._shape.heartbeat_ms,
            drain_ms=self._shape.drain_ms,
            stall_ms=0,
        )
        self._worker = _SimWorker(config, self._registry(), self, process)
        try:
            self._worker.run(Event())
        except KafkaException:
            # The cluster was away for as long as a worker waits at its start; its supervisor starts another.
            self._world.saw("worker gave up")
        else:
            self._world.saw("worker hurried" if self._worker.is_hurried else "worker drained")

    def ports(self, process: Process, rest: Rest) -> WorkerPorts:
        """The world of one life."""
        producer = partial(SimProducer, process, self._broker)
        lease = self._shape.lease_ms * 1000
        return WorkerPorts(
            clock=_Clock(process),
            incarnation=lambda: process.name,
            consumer=lambda options: SimGroupConsumer(process, self._broker, options, rest),  # type: ignore[arg-type, return-value]  # what is used of a consumer
            producer=lambda _: producer(),
            beat_producer=lambda _: producer(in_order=False, expiry=lease, twice=lambda: self.duplicates),  # type: ignore[arg-type, return-value]  # what is used of a producer
            session_ms=lambda _: self._shape.session_timeout_ms,
            runner=lambda _registry, _slots: SimExecutor(process, self._ledger, rest),
            measures=lambda slots: _Measures(slots, self._world),
        )


class _Clock:
    """The clocks of a simulated process."""

    def __init__(self, process: Process) -> None:
        self._clock = process.clock
        self.wall_ms = process.clock.wall_ms

    def monotonic(self) -> float:
        return self._clock.mono_ms() / 1000

    def pause(self, seconds: float) -> None:
        self._clock.pause(round(seconds * 1000))


class _Measures(Measures):
    """Counts what became of offers as rare paths."""

    def __init__(self, slots: int, world: World) -> None:
        super().__init__(slots)
        self._world = world

    def offers(self, outcome: str, number: int) -> None:
        self._world.saw(f"offer {outcome}")


class _SimWorker(Worker):
    """The real worker, which may die before it says something, and of which the run notes what it hears."""

    def __init__(self, config: WorkerConfig, registry: Registry, node: WorkerNode, process: Process) -> None:
        self._process = process
        self._rest = Rest(process, self._longest_s)
        super().__init__(config, registry, node.ports(process, self._rest))

    @property
    def is_hurried(self) -> bool:
        return self._hurried.is_set()

    def drain(self) -> None:
        super().drain()
        self._rest.ring()

    def hurry(self) -> None:
        super().hurry()
        self._rest.ring()

    def _longest_s(self) -> float:
        """For how long turns of the loop would find nothing, unless something comes."""
        holdings = self._holdings
        is_unsettled = self._offers is not None and self._offers.has_unsettled
        if holdings.held or holdings.awaiting or is_unsettled or self._state is not WorkerState.RUNNING:
            return _TICK_S
        if holdings.attempts:
            return max(0.0, min(1.0, self._beat_at - self._clock.monotonic()))
        return _IDLE_S

    def _send(self, role: str, record: Any) -> None:
        self._process.point("report")
        super()._send(role, record)

    def _decoded(self, messages: list[Any], expected: Any) -> list[Any]:
        records = super()._decoded(messages, expected)
        for record in records:
            if isinstance(record, ClaimRefused) and record.incarnation == self.incarnation:
                self._process.world.saw("claim refused")
            elif isinstance(record, CancelAttempt) and record.incarnation == self.incarnation:
                self._process.world.saw(f"attempt stopped: {record.reason}")
        return records
