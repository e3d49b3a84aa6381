"""An installation in a simulated world: a cluster, schedulers, workers, users, and the oracle beside them."""

from dataclasses import dataclass, field

from mainspring.processors.core import QueueRules, Rules
from mainspring.processors.core.strategies import (
    AgingPriorityStrategy,
    EarliestDeadlineFirstStrategy,
    FIFOStrategy,
    PriorityStrategy,
)
from mainspring.processors.engine.options import EngineOptions
from mainspring.schemas import Codec
from mainspring.topics import Topology
from mainspring.workers.registry import Registry
from tests.sim.executor import Ledger
from tests.sim.jobs import KNOWN, LATER, registry
from tests.sim.kafka import BrokerSettings, ClientSettings, SimBroker
from tests.sim.load import Load, LoadShape
from tests.sim.node import Node
from tests.sim.oracle import Oracle
from tests.sim.process import Process
from tests.sim.projector_node import ProjectorNode
from tests.sim.recurring import QUIET, Recurring, RecurringShape
from tests.sim.scheduler_node import SchedulerNode
from tests.sim.worker_node import WorkerNode, WorkerShape
from tests.sim.world import EPOCH_MS, FOR_EVER, SECOND, World

__all__ = ["CODEC", "Site", "SiteShape"]

CODEC = Codec.embedded()
_MIDDLING = 20
_HISTORY_FOR_EVER = 100_000
_REGISTRIES = {True: registry(KNOWN, LATER), False: registry(KNOWN)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteShape:
    """How large an installation is, and how it is tuned."""

    partitions: int = 4
    work_partitions: int = 4
    schedulers: int = 2
    workers: int = 2
    on_disk: bool = True
    standby: bool = False
    """Whether schedulers follow each other's partitions; only with their tables on disk."""
    worker: WorkerShape = field(default_factory=WorkerShape)
    load: LoadShape = field(default_factory=LoadShape)
    recurring: RecurringShape | None = None
    has_projector: bool = False
    epoch_ms: int = EPOCH_MS
    """What a right wall clock shows at the beginning."""
    deployed_at: int = 60 * SECOND
    """When workers begin to know the later name."""
    history_max_count: int = _HISTORY_FOR_EVER
    max_batch: int = 4_000
    commit_inputs_ms: int = 60_000
    patience_ms: int = 20_000
    transaction_timeout_ms: int = 3_000
    session_timeout_ms: int = 6_000
    txn_sweep: int = SECOND
    rebalance_delay: int = 0


class Site:
    """Everything of one run."""

    def __init__(self, world: World, shape: SiteShape) -> None:
        self.world = world
        self.shape = shape
        self.topology = Topology(
            prefix="sim.",
            queues=("default", "fifo"),
            partitions=shape.partitions,
            work_partitions=shape.work_partitions,
        )
        self.settings = BrokerSettings(world=world, txn_sweep=shape.txn_sweep, rebalance_delay=shape.rebalance_delay)
        self.broker = SimBroker(world, self.settings)
        for topic in self.topology.all():
            self.broker.create_topic(topic.name, topic.partitions)
        self.ledger = Ledger()
        self.oracle = Oracle(
            world, self.broker, self.topology, CODEC, forgets=shape.history_max_count < _HISTORY_FOR_EVER
        )
        self.ledger.on_start.append(self.oracle.see_run)
        self.load = Load(world, self.broker, self.topology, CODEC, shape.load)
        self.recurring = None if shape.recurring is None else Recurring(world, self.load, shape.recurring)
        self.schedulers = [self._scheduler(chr(ord("a") + number)) for number in range(shape.schedulers)]
        self.workers = [self._worker(f"worker-{number}") for number in range(shape.workers)]
        self.projector = ProjectorNode(world, self.broker, self.topology, CODEC) if shape.has_projector else None
        self.nodes: list[Node] = [*self.schedulers, *self.workers, *self._projectors]

    def survivors(self) -> list[Node]:
        """One machine of each role: no more than it takes."""
        return [self.schedulers[-1], self.workers[-1], *self._projectors]

    @property
    def _projectors(self) -> list[Node]:
        return [] if self.projector is None else [self.projector]

    def start(self) -> None:
        """Everything begins, in no particular order."""
        for node in self.nodes:
            self.world.after(self.world.rng.randrange(2 * SECOND), node.start)
        self.load.start()
        if self.recurring is not None:
            self.recurring.start()

    @property
    def last_due_ms(self) -> int:
        """The latest time that was asked for."""
        asked = self.load.last_due_ms
        return asked if self.recurring is None else max(asked, self.recurring.last_due_ms)

    def be_quiet(self) -> None:
        """Nothing goes wrong any more: when what is away has come back, every schedule is served in time."""
        self.oracle.schedules.be_quiet(self.world.true_ms + QUIET * 2 // 3 // 1000)
        self.world.after(QUIET * 5 // 6, self.oracle.schedules.check_present)

    def _scheduler(self, slot: str) -> SchedulerNode:
        shape, rng = self.shape, self.world.rng
        strategies = [PriorityStrategy(), AgingPriorityStrategy(age_rate=0.1), EarliestDeadlineFirstStrategy()]
        rules = Rules(
            queues={
                "default": QueueRules(strategy=strategies[self.world.seed % len(strategies)]),
                "fifo": QueueRules(strategy=FIFOStrategy(), tenant_weights={"a": 2.0}),
            },
            partitions=shape.partitions,
            lease_ms=shape.worker.lease_ms,
            history_max_count=shape.history_max_count,
            unknown_name_after_ms=30_000,
        )
        del rng
        return SchedulerNode(
            self.world,
            self.broker,
            self.topology,
            CODEC,
            rules,
            slot,
            settings=ClientSettings(
                group=self.topology.group("scheduler"),
                changelog=self.topology.scheduler_changelog.name,
                session_timeout_ms=shape.session_timeout_ms,
                transaction_timeout_ms=shape.transaction_timeout_ms,
            ),
            options=EngineOptions(
                max_batch=shape.max_batch,
                # Where batches are of a middling size, a single follow-up is too much for a transaction, too.
                max_decided_bytes=1 if shape.max_batch == _MIDDLING else 16 << 20,
                commit_inputs_ms=shape.commit_inputs_ms,
                patience_ms=shape.patience_ms,
                standby=range(shape.partitions) if shape.standby and shape.on_disk else (),
            ),
            on_disk=shape.on_disk,
        )

    def _worker(self, name: str) -> WorkerNode:
        node = WorkerNode(
            self.world,
            self.broker,
            self.topology,
            CODEC,
            name,
            shape=self.shape.worker,
            ledger=self.ledger,
            registry=self._registry,
        )
        node.on_born.append(self._watch_silence)
        return node

    def _registry(self) -> Registry:
        return _REGISTRIES[self.world.now >= self.shape.deployed_at]

    def _watch_silence(self, process: Process) -> None:
        """Notes when a worker is out of contact, for the overlaps that this excuses."""
        book = self.ledger.silences.setdefault(process.name, [])
        is_silent = False

        def begun() -> None:
            nonlocal is_silent
            if not is_silent:
                is_silent = True
                book.append((self.world.now, FOR_EVER))

        def over() -> None:
            nonlocal is_silent
            if is_silent:
                is_silent = False
                book[-1] = (book[-1][0], self.world.now)

        process.on_silence.append(begun)
        process.on_return.append(over)
        process.on_death.append(over)
