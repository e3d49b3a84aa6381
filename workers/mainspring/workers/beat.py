"""Heartbeats: sent apart from the reports, so that a result on its way never delays them."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from confluent_kafka import KafkaException, Producer

from mainspring.schemas.codec import HEADER_BYTES
from mainspring.topics import Connection, partition_for
from mainspring.workers import leases
from mainspring.workers.attempt import Attempt
from mainspring.workers.config import WorkerConfig
from mainspring.workers.reports import Reporter
from mainspring.workers.stall import FEED_S, StallGuard

__all__ = ["Beater", "beat_config"]

log = logging.getLogger(__name__)


def beat_config(connection: Connection, lease_ms: int) -> dict[str, Any]:
    """A producer for records that are worth nothing when they are late, and harmless when they come twice."""
    return connection.producer_config(
        **{"linger.ms": 5, "message.timeout.ms": lease_ms, "enable.idempotence": False, "acks": "all"}
    )


class Beater:
    """Renews the leases of what a worker holds, and learns from the broker which renewals have arrived."""

    def __init__(
        self,
        config: WorkerConfig,
        reporter: Reporter,
        make: Callable[[dict[str, Any]], Producer] = Producer,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._codec = config.codec
        self._topic = config.topology.attempts
        self._reporter = reporter
        self._key = reporter.worker_id.encode()
        options = beat_config(config.connection, config.lease_ms)
        self._producer = make(options)
        self._monotonic = monotonic
        self._guard = _guard(config, reporter, options) if config.stall_ms and StallGuard.works_here() else None
        self._lease_s = config.lease_ms / 1000
        self._watch_at = 0.0
        self.contact_at: float | None = None

    def start(self) -> None:
        """Starts the side process, in the thread that lives as long as the worker."""
        if self._guard is not None:
            self._guard.start()

    def beat(self, attempts: Iterable[Attempt], now: float) -> None:
        """Renews the leases of the attempts."""
        beats = self._beats(attempts, now)
        for partition, held in beats:
            self._send(partition, self._codec.encode(self._reporter.heartbeat(held)), held, now)
        if self._guard is not None:
            self._guard.feed(beats, always=True)

    def watch(self, attempts: Iterable[Attempt], now: float) -> None:
        """Keeps the side process informed between two heartbeats."""
        if self._guard is not None and now >= self._watch_at:
            self._watch_at = now + FEED_S
            self._guard.feed(self._beats(attempts, now), always=False)

    def turn(self) -> None:
        """Serves the acknowledgements."""
        self._producer.poll(0)
        if self._guard is not None:
            self._guard.turn()

    def close(self) -> None:
        """Gives up what is on its way: nobody renews the leases of a worker that ends."""
        if self._guard is not None:
            self._guard.close()
        self._producer.purge()
        self._producer.flush(1.0)

    def _beats(self, attempts: Iterable[Attempt], now: float) -> list[tuple[int, list[Attempt]]]:
        return list(leases.beats(attempts, young_s=FEED_S, now=now, partition_of=self._partition_of))

    def _partition_of(self, job_id: str) -> int:
        return partition_for(job_id.encode(), self._topic.partitions)

    def _send(self, partition: int, value: bytes, held: Sequence[Attempt], now: float) -> None:
        try:
            self._producer.produce(
                self._topic.name, value, self._key, partition=partition, on_delivery=self._delivered(held, now)
            )
        except (BufferError, KafkaException) as error:
            log.warning("a heartbeat could not be sent: %s", error)

    def _delivered(self, held: Sequence[Attempt], sent_at: float) -> Callable[[Any, Any], None]:
        produced_at = self._monotonic()

        def delivered(error: Any, message: Any) -> None:
            if error is None:
                self.contact_at = self._monotonic()
                # As the client library's own thread saw it: this one may have been kept from looking.
                latency_s = message.latency()
                arrived_at = self.contact_at if latency_s is None else produced_at + latency_s
                leases.renew(held, sent_at, arrived_at, self._lease_s)

        return delivered


def _guard(config: WorkerConfig, reporter: Reporter, options: dict[str, Any]) -> StallGuard | None:
    # The side process has no log of its own; what its connection meets, that of the worker tells.
    plain = {name: value for name, value in options.items() if name != "logger"} | {"log_level": 0}
    setup = {
        "worker_id": reporter.worker_id,
        "incarnation": reporter.incarnation,
        "topic": config.topology.attempts.name,
        "header": config.codec.encode(reporter.heartbeat([]))[:HEADER_BYTES].hex(),
        "heartbeat_ms": config.heartbeat_ms,
        "stall_ms": config.stall_ms,
        "producer": plain,
    }
    try:
        return StallGuard(setup, config.lease_ms / 1000)
    except TypeError:
        log.warning(
            "an option of the connection is a Python object, which no side process can have: a handler that holds the "
            "interpreter for long will cost other attempts their leases"
        )
        return None
