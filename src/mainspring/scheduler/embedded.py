"""The processors of an embedded scheduler: a Kafka if none is given, the scheduler and one worker, in this process."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mainspring.jobs.base import Job
from mainspring.jobs.handler import Handler, for_class
from mainspring.jobs.spec import Submittable
from mainspring.scheduler.errors import ProcessorDiedError
from mainspring.schemas import Codec
from mainspring.topics import Connection, Topology
from mainspring.workers import Registry

if TYPE_CHECKING:
    from mainspring.local import EmbeddedKafka
    from mainspring.processors.core.strategies import SchedulingStrategy
    from mainspring.workers import Worker

__all__ = ["EmbeddedOptions", "EmbeddedProcessors", "handler_of"]

LOOK_S = 0.01
FOR_EVER_MS = 10 * 366 * 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedOptions:
    """What an embedded scheduler is made of. See `JobScheduler`."""

    bootstrap: str | None = None
    data_dir: Path | None = None
    prefix: str = "mainspring."
    partitions: int = 4
    strategy: "SchedulingStrategy | None" = None
    max_concurrency: int = 10
    history_limit: int = 10_000
    lease_ms: int = 10_000
    ready_s: float = 90.0
    options: dict[str, str] = field(default_factory=dict)

    def topology(self) -> Topology:
        """The topics of this installation."""
        return Topology(prefix=self.prefix, partitions=self.partitions, work_partitions=1)


class EmbeddedProcessors:
    """Starts and stops the parts. The methods block; `on_death` hears of a part that ended on its own."""

    def __init__(self, options: EmbeddedOptions, registry: Registry, on_death: Callable[[BaseException], None]) -> None:
        self.topology = options.topology()
        self._options = options
        self._registry = registry
        self._on_death = on_death
        self._kafka: EmbeddedKafka | None = None
        self._worker: Worker | None = None
        self._threads: dict[str, tuple[threading.Thread, threading.Event]] = {}
        self._failure: BaseException | None = None

    @property
    def worker_id(self) -> str | None:
        """The id of the worker; None before it is started."""
        return None if self._worker is None else self._worker.status().worker_id

    @property
    def peak_running(self) -> int:
        """The most attempts that ran at once so far."""
        return 0 if self._worker is None else self._worker.status().peak_running

    def start_kafka(self) -> Connection:
        """A broker with the topics: the one that was given, else one of our own."""
        bootstrap = self._options.bootstrap
        if bootstrap is None:
            from mainspring.local import EmbeddedKafka

            data_dir = self._options.data_dir
            self._kafka = EmbeddedKafka(data_dir=None if data_dir is None else data_dir / "kafka")
            self._kafka.start()
            bootstrap = self._kafka.bootstrap
        from mainspring.topics.admin import apply

        connection = Connection(bootstrap, dict(self._options.options))
        apply(connection, self.topology)
        return connection

    def start(self, connection: Connection) -> None:
        """The scheduler and the worker; returns when both are at work."""
        from mainspring.processors.core import QueueRules, Rules
        from mainspring.processors.core.strategies import PriorityStrategy
        from mainspring.processors.scheduler import Scheduler, SchedulerConfig
        from mainspring.workers import Worker, WorkerConfig

        options, topology, codec = self._options, self.topology, Codec.embedded()
        rules = Rules(
            queues={"default": QueueRules(strategy=options.strategy or PriorityStrategy())},
            partitions=options.partitions,
            lease_ms=options.lease_ms,
            history_max_count=options.history_limit,
        )
        scheduler = Scheduler(SchedulerConfig(connection=connection, topology=topology, codec=codec, rules=rules))
        worker = self._worker = Worker(
            WorkerConfig(
                connection=connection,
                topology=topology,
                codec=codec,
                slots=options.max_concurrency,
                lease_ms=options.lease_ms,
                heartbeat_ms=max(1, options.lease_ms * 3 // 10),
                # How long running work may take is for the caller of `stop` to say, not for a clock.
                drain_ms=FOR_EVER_MS,
            ),
            self._registry,
        )
        self._run("scheduler", scheduler.run)
        self._run("worker", worker.run)
        self._await(
            "scheduler", lambda: scheduler.status().is_ready and len(scheduler.status().ready) == options.partitions
        )
        self._await("worker", lambda: worker.status().partitions > 0)

    def stop_worker(self) -> None:
        """Take no new work, and return when what runs has ended and is reported."""
        self._end("worker")

    def stop_scheduler(self) -> None:
        """Finish the open transaction and stop deciding."""
        self._end("scheduler")

    def stop_kafka(self) -> None:
        """Stop the broker, if it is ours."""
        if self._kafka is not None:
            self._kafka.stop()

    def _run(self, part: str, run: Callable[[threading.Event], object]) -> None:
        stop = threading.Event()

        def body() -> None:
            try:
                run(stop)
            except BaseException as error:  # noqa: BLE001 - whatever ended it, the facade must hear
                self._died(part, error)
            else:
                if not stop.is_set():
                    self._died(part, None)

        thread = threading.Thread(target=body, name=f"mainspring-{part}", daemon=True)
        self._threads[part] = thread, stop
        thread.start()

    def _died(self, part: str, cause: BaseException | None) -> None:
        error = ProcessorDiedError(part)
        error.__cause__ = cause
        self._failure = error
        self._on_death(error)

    def _await(self, part: str, is_ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._options.ready_s
        while not is_ready():
            if self._failure is not None:
                raise self._failure
            if time.monotonic() > deadline:
                raise TimeoutError(f"the embedded {part} was not ready within {self._options.ready_s:g} s")
            self._threads[part][0].join(LOOK_S)

    def _end(self, part: str) -> None:
        running = self._threads.pop(part, None)
        if running is not None:
            thread, stop = running
            stop.set()
            thread.join()


def handler_of(job: Submittable) -> Handler | None:
    """What runs a job that is given as an object; None for a bare name."""
    if isinstance(job, str):
        return None
    if isinstance(job, Job):
        return type(job).registered_handler or for_class(type(job))
    return job if isinstance(job, Handler) else job.handler
