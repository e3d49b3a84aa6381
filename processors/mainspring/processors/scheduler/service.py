"""A scheduler process: one engine over the partitions that the group gives it, started anew when it cannot go on."""

import signal
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from types import FrameType

from mainspring.processors.engine.errors import FatalKafkaError, NoProducerError
from mainspring.processors.engine.garbage import QuietCollector
from mainspring.processors.engine.kafka import ClientOptions, ConfluentKafka, SystemClock, SystemRandomness
from mainspring.processors.engine.loop import Engine
from mainspring.processors.engine.options import EngineStatus
from mainspring.processors.engine.ports import Clock, Kafka, Randomness
from mainspring.processors.engine.slot import Slot, hold_slot, slot_of
from mainspring.processors.engine.tables import MemoryTables, Tables
from mainspring.processors.scheduler.config import SchedulerConfig
from mainspring.processors.scheduler.measures import measure
from mainspring.processors.scheduler.partition import SchedulerPartition
from mainspring.processors.scheduler.program import SchedulerProgram
from mainspring.schemas import MainspringError
from mainspring.telemetry import get_logger

__all__ = ["EXIT_CONFIGURATION", "EXIT_FATAL", "EXIT_OK", "Scheduler", "SchedulerStatus", "run_scheduler"]

_log = get_logger(__name__)

EXIT_OK = 0
EXIT_FATAL = 70
"""The process cannot go on, and a new one may."""
EXIT_CONFIGURATION = 78
"""Somebody must change something first."""

_STEP_MS = 200
_RESTARTS = 5
_RESTART_WINDOW_MS = 60_000
_MEASURE_EVERY_MS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerStatus:
    """What a scheduler is at. Times are monotonic milliseconds."""

    slot: str | None
    owned: tuple[int, ...]
    ready: tuple[int, ...]
    restoring: tuple[int, ...]
    last_loop_ms: int
    last_commit_ms: int | None
    transactions: int
    restarts: int
    has_joined: bool
    """Whether the loop has come round since the engine was built."""
    lost_s: float
    """For how many seconds no broker has been connected."""

    @property
    def is_ready(self) -> bool:
        """Whether every partition that it owns decides.

        One that owns none is ready too: there may be more processes than partitions.
        """
        return self.has_joined and not self.restoring


class Scheduler:
    """Decides for a share of the partitions. `run` does it until told to stop; `build` gives the bare engine."""

    def __init__(
        self,
        config: SchedulerConfig,
        *,
        kafka: Callable[[str], Kafka] | None = None,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        self._config = config
        self._clock = clock or SystemClock()
        self._randomness = randomness or SystemRandomness()
        self._kafka = kafka or self._confluent
        self._engine: Engine | None = None
        self._slot: Slot | None = None
        self._restarts: list[int] = []
        self._began_ms = 0
        self._measure_at_ms = 0

    def run(self, stop: threading.Event, *, own_process: bool = False) -> None:
        """Runs until `stop` is set: finishes its transaction, leaves the group, returns.

        `own_process`: nothing else of weight runs in this process, so its garbage collection may be tuned for the loop.
        An engine that cannot go on (fenced, evicted with a transaction open) is thrown away and built anew from what is
        committed, and so is one that the brokers are away from, as often as it takes. Raises `FatalKafkaError` when the
        former happens again and again, `ConfigurationError` at once.
        """
        exact = self._config.slot is not None
        with hold_slot(self._config.slot_name, self._config.lock_dir, exact=exact) as slot:
            self._slot = slot
            try:
                with QuietCollector(self._clock) if own_process else nullcontext() as collector:
                    while not stop.is_set():
                        self._run_engine(slot, stop, collector)
            finally:
                self._slot = None

    def build(self, slot: str) -> Engine:
        """An engine under a slot that the caller has to himself."""
        config = self._config
        transactional_id = config.topology.transactional_id(slot)
        program = SchedulerProgram(
            topology=config.topology,
            codec=config.codec,
            rules=config.rules,
            recorded_by=transactional_id,
            cache_rows=config.cached_rows,
            window_jobs=config.window_jobs,
        )
        tables = self._tables(slot)
        try:
            return Engine(
                program=program,
                kafka=self._kafka(slot),
                tables=tables,
                clock=self._clock,
                randomness=self._randomness,
                transactional_id=transactional_id,
                options=config.engine_options(),
            )
        except BaseException:
            # Else the next try would find them in use.
            tables.close()
            raise

    def fence_dead(self, pid: int) -> None:
        """Ends whatever transaction a dead process of this configuration and machine left open."""
        slot = slot_of(pid, self._config.lock_dir)
        if slot is None:
            return
        with slot:
            self._kafka(slot.name).fence(self._config.topology.transactional_id(slot.name))

    def status(self) -> SchedulerStatus:
        """A snapshot for health checks; from any thread."""
        engine, slot = self._engine, self._slot
        status = EngineStatus() if engine is None else engine.status()
        return SchedulerStatus(
            slot=None if slot is None else slot.name,
            owned=status.owned,
            ready=status.ready,
            restoring=status.restoring,
            # Between two engines, since the newer one was begun: to wait for a broker is no reason to be killed.
            last_loop_ms=status.last_loop_ms or self._began_ms,
            last_commit_ms=status.last_commit_ms,
            transactions=status.transactions,
            restarts=len(self._restarts),
            has_joined=status.last_loop_ms > 0,
            lost_s=status.lost_s,
        )

    def _run_engine(self, slot: Slot, stop: threading.Event, collector: QuietCollector | None) -> None:
        engine: Engine | None = None
        self._began_ms = self._clock.mono_ms()
        try:
            engine = self._engine = self.build(slot.name)
            while not stop.is_set():
                engine.step(_STEP_MS)
                self._look_after(engine, collector)
        except NoProducerError as error:
            _log.warning("waits for the brokers; it goes on by itself when they are back", why=str(error))
        except FatalKafkaError as error:
            self._count_restart(error)
        finally:
            self._engine = None
            if engine is not None:
                engine.close()

    def _look_after(self, engine: Engine, collector: QuietCollector | None) -> None:
        if collector is not None:
            collector.look()
        now_ms = self._clock.mono_ms()
        if now_ms >= self._measure_at_ms:
            self._measure_at_ms = now_ms + _MEASURE_EVERY_MS
            programs = engine.programs().values()
            cores = [program.core for program in programs if isinstance(program, SchedulerPartition)]
            measure(cores, engine.lags(), self._config.topology.group("scheduler"))

    def _count_restart(self, error: FatalKafkaError) -> None:
        now_ms = self._clock.mono_ms()
        recent = [at_ms for at_ms in self._restarts if now_ms - at_ms < _RESTART_WINDOW_MS]
        self._restarts.append(now_ms)
        if len(recent) >= _RESTARTS:
            raise error
        _log.error("the engine cannot go on and is built anew", why=str(error), restarts=len(recent) + 1)
        self._clock.pause(200 << len(recent))

    def _confluent(self, slot: str) -> Kafka:
        config, topology = self._config, self._config.topology
        name = topology.transactional_id(slot)
        options = ClientOptions(
            group=topology.group("scheduler"),
            changelog=topology.scheduler_changelog.name,
            client_id=name,
            session_timeout_ms=config.session_timeout_ms,
            transaction_timeout_ms=config.transaction_timeout_ms,
            group_instance_id=name if config.static_member else None,
        )
        return ConfluentKafka(config.connection, options)

    def _tables(self, slot: str) -> Tables:
        if self._config.state_dir is None:
            return MemoryTables()
        # Here and not above: a scheduler with its tables in memory needs no RocksDB on the machine.
        from mainspring.processors.engine.tables.rocks import RocksTables

        return RocksTables(self._config.lock_dir / slot)


def run_scheduler(config: SchedulerConfig, stop: threading.Event | None = None) -> int:
    """Runs one scheduler in this process until SIGTERM or SIGINT (or `stop`), and returns its exit code."""
    stopping = stop or threading.Event()
    if threading.current_thread() is threading.main_thread():

        def on_signal(_number: int, _frame: FrameType | None) -> None:
            stopping.set()

        signal.signal(signal.SIGTERM, on_signal)
        signal.signal(signal.SIGINT, on_signal)
    try:
        Scheduler(config).run(stopping, own_process=True)
    except FatalKafkaError as error:
        _log.error("scheduler cannot go on", why=str(error))
        return EXIT_FATAL
    except MainspringError as error:
        _log.error("scheduler stopped; somebody must look at this", why=str(error), kind=type(error).__name__)
        return EXIT_CONFIGURATION
    return EXIT_OK
