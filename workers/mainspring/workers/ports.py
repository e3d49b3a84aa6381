"""What a worker needs of the world: clocks, clients of Kafka, and something that runs code.

Narrow enough that a simulated world can take their place; who makes a worker need not know of them.
"""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from confluent_kafka import Consumer, Producer

from mainspring.topics import Connection
from mainspring.topics.session import shortest_session_ms
from mainspring.workers.attempt import Attempt
from mainspring.workers.executors import JobExecutor
from mainspring.workers.holdings import Executor
from mainspring.workers.measures import Measures
from mainspring.workers.outbox import RawProducer
from mainspring.workers.registry import Registry

__all__ = ["REAL_PORTS", "Clock", "Runner", "SystemClock", "WorkerPorts"]


class Clock(Protocol):
    """Both clocks of a process."""

    def monotonic(self) -> float:
        """Seconds that only ever go on."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since 1970, which somebody may set."""
        ...

    def pause(self, seconds: float) -> None:
        """Waits."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall_ms(self) -> int:
        return int(time.time() * 1000)

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)


class Runner(Executor, Protocol):
    """What the loop uses of `JobExecutor`, beyond what its holdings do."""

    peak_running: int
    overdue: int

    def start(self) -> None:
        """Makes ready to run."""

    def collect(self, wait_s: float = 0.0) -> list[Attempt]:
        """What has ended; waits so long for the first."""
        ...

    def shutdown(self, patience_s: float) -> None:
        """Ends what can be ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPorts:
    """The world as it is, unless another is given.

    `consumer`, `producer` and `beat_producer` make clients from options of librdkafka; `session_ms` tells how long the
    group waits for a silent member; `incarnation` names a life of a worker.
    """

    clock: Clock = field(default_factory=SystemClock)
    incarnation: Callable[[], str] = lambda: uuid.uuid4().hex
    consumer: Callable[[dict[str, Any]], Consumer] = Consumer
    producer: Callable[[dict[str, Any]], RawProducer] = Producer
    beat_producer: Callable[[dict[str, Any]], Producer] = Producer
    session_ms: Callable[[Connection], int] = lambda connection: shortest_session_ms(connection.admin_config())
    runner: Callable[[Registry, int], Runner] = JobExecutor
    measures: Callable[[int], Measures] = Measures


REAL_PORTS = WorkerPorts()
