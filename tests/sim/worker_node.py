"""A machine that runs a worker: the real holdings, leases, outbox and heartbeat in a loop of the simulation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mainspring.processors.engine.ports import Mark, Place
from mainspring.schemas import CancelAttempt, ClaimRefused, Codec, Priority, Signal, StartConfirmed, WorkOffered
from mainspring.topics import Connection, Topology, partition_for
from mainspring.workers.attempt import StopReason
from mainspring.workers.beat import Beater
from mainspring.workers.config import WorkerConfig
from mainspring.workers.holdings import Holdings
from mainspring.workers.outbox import Outbox
from mainspring.workers.registry import Registry
from mainspring.workers.reports import Reporter
from tests.sim.executor import Ledger, SimExecutor
from tests.sim.kafka import Link, SimBroker
from tests.sim.kafka.fetcher import Fetcher
from tests.sim.kafka.membership import Membership
from tests.sim.kafka.plain_producer import SimProducer
from tests.sim.node import Node
from tests.sim.process import Process
from tests.sim.world import SECOND, Future, World

__all__ = ["WorkerNode", "WorkerShape"]

_READ_MAX = 500
_TICK = 100_000
_COMMIT_EVERY = 500_000
_IDLE = 10 * SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerShape:
    """How a worker is set up."""

    slots: int = 4
    lease_ms: int = 10_000
    heartbeat_ms: int = 3_000
    session_timeout_ms: int = 10_000


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
        self._life: _Life | None = None

    def stop(self) -> None:
        if self._life is not None:
            self._life.drain()

    def _reset(self) -> None:
        self._life = None

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
            stall_ms=0,
        )
        self._life = _Life(process, self._broker, config, self._registry(), self._ledger, self)
        self._life.run(self._shape.session_timeout_ms)


class _Life:
    """One life of a worker's process."""

    def __init__(
        self,
        process: Process,
        broker: SimBroker,
        config: WorkerConfig,
        registry: Registry,
        ledger: Ledger,
        node: WorkerNode,
    ) -> None:
        self._process = process
        self._world = process.world
        self._broker = broker
        self._config = config
        self._codec = config.codec
        self._node = node
        self._attempts = config.topology.attempts
        self._reporter = Reporter(config.worker_id, f"{process.name}", process.clock.wall_ms)
        self._fetcher = Fetcher(process, broker)
        self._executor = SimExecutor(process, ledger, self._fetcher)
        self._link = Link(process, broker)
        self._outbox = Outbox(config.connection, lambda _: SimProducer(process, broker))
        lease = config.lease_ms * 1000
        self._beater = Beater(
            config,
            self._reporter,
            lambda _: SimProducer(process, broker, in_order=False, expiry=lease, twice=lambda: node.duplicates),  # type: ignore[arg-type, return-value]  # what is used of a producer
            self._now,
        )
        self._unsettled: list[tuple[int, dict[Place, int]]] = []
        self._draining = False
        self._commit_at = 0
        self._beat_at = 0
        self._holdings = Holdings(
            config=config,
            registry=registry,
            reporter=self._reporter,
            executor=self._executor,
            send=self._send,
            count=lambda outcome, number: self._world.saw(f"offer {outcome}"),
        )

    def run(self, session_timeout_ms: int) -> None:
        """Until it has drained."""
        topology = self._config.topology
        signals = topology.signals
        mine = (signals.name, partition_for(self._config.worker_id.encode(), signals.partitions))
        ended: Future[int] = self._link.call(lambda: self._broker.log(mine).end)
        self._process.wait(ended, 1 << 50)
        self._signals = mine
        self._fetcher.add(mine, ended.result(), active=True, committed=True)
        lanes = tuple(topology.work(queue, lane).name for queue in topology.queues for lane in Priority)
        self._membership = Membership(
            self._process,
            self._broker,
            topology.group("worker"),
            lanes,
            session_ms=session_timeout_ms,
            heartbeat_ms=1_000,
            rebalance_ms=300_000,
            ask=self._fetcher.ask,
            application=self,
        )
        until: int | None = None
        while True:
            self._turn()
            if self._draining:
                holdings = self._holdings
                if until is None:
                    until = self._world.now + 5 * SECOND
                    holdings.drain()
                    self._process.wait(self._membership.leave(), SECOND)
                if not holdings.attempts and not holdings.awaiting:
                    break
                if self._world.now >= until:
                    holdings.stop_all(StopReason.DRAINING)
                    self._process.sleep(SECOND)
                    self._turn()
                    self._executor.stop_everything()
                    holdings.release_rest()
                    break
        self._world.saw("worker drained")
        while self._outbox.pending:
            self._process.sleep(50_000)
            self._outbox.turn()

    def drain(self) -> None:
        """Takes nothing more."""
        self._draining = True

    def gained(self, places: frozenset[Place]) -> None:
        for place in sorted(places):
            self._fetcher.add(place, 0, active=False, committed=False)
        wanted = sorted(places)
        group = self._broker.groups.get(self._config.topology.group("worker"))
        self._link.call(lambda: group.fetch(wanted, stable=False)).then(self._positioned)

    def gone(self, places: frozenset[Place], *, lost: bool) -> None:
        for place in sorted(places):
            self._fetcher.remove(place)

    def _positioned(self, done: "Future[dict[Place, Mark | None]]") -> None:
        for place, mark in done.result().items():
            if place in self._fetcher.owned:
                self._fetcher.seek(place, 0 if mark is None else mark.offset)

    # One turn of the loop.

    def _turn(self) -> None:
        holdings = self._holdings
        self._outbox.turn()
        self._beater.turn()
        read = self._fetcher.read(_READ_MAX, self._wait())
        now = self._now()
        offers: list[WorkOffered] = []
        positions: dict[Place, int] = {}
        for record in read.records:
            place = (record.topic(), record.partition())
            decoded: Any = self._codec.decode(record.value() or b"")
            if place == self._signals:
                if decoded.worker_id == self._config.worker_id:
                    self._hear(decoded, now)
            else:
                offers.append(decoded)
                positions[place] = record.offset() + 1
        ended = self._executor.collect()
        if ended:
            holdings.ended(ended, now)
        if offers:
            holdings.offered(offers, now)
            self._unsettled.append((self._outbox.sent, positions))
        self._settle()
        self._beater.turn()
        holdings.tick(now)
        if self._world.now >= self._beat_at:
            self._beat_at = self._world.now + self._config.heartbeat_ms * 1000
            self._beater.beat(holdings.attempts.values(), now)

    def _wait(self) -> int:
        holdings, now = self._holdings, self._world.now
        if holdings.held or self._unsettled or self._draining:
            return _TICK
        if holdings.attempts:
            return max(0, min(SECOND, self._beat_at - now))
        return _IDLE

    def _hear(self, signal: Signal, now: float) -> None:
        holdings = self._holdings
        if signal.incarnation != self._reporter.incarnation:
            return
        if isinstance(signal, StartConfirmed):
            holdings.clock_ahead_ms = self._process.clock.wall_ms() - signal.confirmed_at_ms
            holdings.confirmed(signal.starts, now)
        elif isinstance(signal, ClaimRefused):
            self._world.saw("claim refused")
            holdings.refused(signal.job_id, signal.attempt, now)
        elif isinstance(signal, CancelAttempt):
            self._world.saw(f"attempt stopped: {signal.reason}")
            holdings.cancelled(signal.job_id, signal.attempt, signal.reason, now)

    def _now(self) -> float:
        return self._process.clock.mono_ms() / 1000

    # What it writes.

    def _send(self, role: str, record: Any) -> None:
        if role == "attempts":
            self._process.point("report")
            self._outbox.send(self._attempts.name, record.job_id.encode(), self._codec.encode(record))

    def _settle(self) -> None:
        """Commits offers that were dealt with, once what was said about them has arrived."""
        if not self._unsettled or self._world.now < self._commit_at:
            return
        self._commit_at = self._world.now + _COMMIT_EVERY
        marks: dict[Place, Mark] = {}
        acknowledged = self._outbox.sent - self._outbox.pending
        while self._unsettled and self._unsettled[0][0] <= acknowledged:
            for place, offset in self._unsettled.pop(0)[1].items():
                if place in self._fetcher.owned:
                    marks[place] = Mark(offset=offset)
        if marks:
            token = self._membership.token()
            group = self._broker.groups.get(token.group)
            self._link.call(lambda: group.commit(marks, token.member_id, token.generation))
