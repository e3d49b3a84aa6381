"""Heartbeats: sent apart from the reports, so that a result on its way never delays them."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from confluent_kafka import KafkaException, Producer

from mainspring.schemas.codec import Codec
from mainspring.topics import Connection, Topic, partition_for
from mainspring.workers import leases
from mainspring.workers.attempt import Attempt
from mainspring.workers.reports import Reporter

__all__ = ["Beater", "beat_config"]

log = logging.getLogger(__name__)

YOUNG_MS = 1_000
"""The claim has just granted a lease to attempts younger than this, and most are over before it is worth renewing."""


def beat_config(connection: Connection, lease_ms: int) -> dict[str, Any]:
    """A producer for records that are worth nothing when they are late, or when they come twice."""
    return connection.producer_config(
        **{"linger.ms": 5, "message.timeout.ms": lease_ms, "enable.idempotence": False, "acks": "all"}
    )


class Beater:
    """Renews the leases of what a worker holds, and learns from the broker which renewals have arrived."""

    def __init__(
        self, *, connection: Connection, codec: Codec, topic: Topic, reporter: Reporter, lease_ms: int
    ) -> None:
        self._codec = codec
        self._topic = topic
        self._reporter = reporter
        self._key = reporter.worker_id.encode()
        self._producer = Producer(beat_config(connection, lease_ms))
        self.contact_at: float | None = None

    def beat(self, attempts: Iterable[Attempt], now: float) -> list[tuple[int, bytes]]:
        """Sends heartbeats for the attempts; returns them as (partition of `attempts`, encoded record)."""
        sent: list[tuple[int, bytes]] = []
        for partition, held in leases.beats(
            attempts, young_s=YOUNG_MS / 1000, now=now, partition_of=self._partition_of
        ):
            value = self._codec.encode(self._reporter.heartbeat(held))
            sent.append((partition, value))
            self._send(partition, value, held, now)
        return sent

    def turn(self) -> None:
        """Serves the acknowledgements."""
        self._producer.poll(0)

    def close(self) -> None:
        """Gives up what is on its way: nobody renews the leases of a worker that ends."""
        self._producer.purge()
        self._producer.flush(1.0)

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
        def delivered(error: Any, _message: Any) -> None:
            if error is not None:
                return
            self.contact_at = time.monotonic()
            for attempt in held:
                attempt.lease_from = max(attempt.lease_from, sent_at)

        return delivered
