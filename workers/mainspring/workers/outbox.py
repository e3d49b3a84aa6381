"""What a worker has to say, on its way to Kafka: nothing is dropped, and nobody waits for it."""

import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from confluent_kafka import KafkaError, KafkaException, Producer

from mainspring.topics import Connection

__all__ = ["Outbox", "RawProducer"]

log = logging.getLogger(__name__)

LINGER_MS = 2
"""Reports of one turn of the loop share a batch; more would only add to the latency of a start."""
_HOPELESS = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD})


class RawProducer(Protocol):
    """What is used of a Kafka producer."""

    def produce(self, topic: str, value: bytes, key: bytes, *, on_delivery: Callable[[Any, Any], None]) -> None:
        """Queues a record. Raises BufferError when the queue is full."""

    def poll(self, timeout: float) -> int:
        """Serves callbacks."""

    def flush(self, timeout: float) -> int:
        """Waits for what is queued."""

    def purge(self) -> None:
        """Gives up what is queued; the callbacks tell."""

    def __len__(self) -> int: ...


class _Letter(NamedTuple):
    topic: str
    key: bytes
    value: bytes


class Outbox:
    """An idempotent producer that keeps what it cannot send yet. One thread uses it."""

    def __init__(
        self,
        connection: Connection,
        make: Callable[[dict[str, Any]], RawProducer] = Producer,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = connection.producer_config(
            **{
                "linger.ms": LINGER_MS,
                # A report is tried for as long as the worker lives: the log must learn how an attempt ended.
                "message.timeout.ms": 0,
                "queue.buffering.max.messages": 500_000,
                # Without it every delivered record would cost a call into Python.
                "delivery.report.only.error": True,
            }
        )
        self._make = make
        self._monotonic = monotonic
        self._producer = make(self._config)
        self._backlog: deque[_Letter] = deque()
        self._broken = False
        self.sent = 0

    @property
    def pending(self) -> int:
        """How many records are still on their way."""
        return len(self._producer) + len(self._backlog)

    def send(self, topic: str, key: bytes, value: bytes) -> None:
        """Hands a record over; returns at once."""
        self.sent += 1
        letter = _Letter(topic, key, value)
        if self._backlog or not self._try(letter):
            self._backlog.append(letter)

    def turn(self) -> None:
        """Serves callbacks and sends what had to wait. Call it once per turn of the loop."""
        self._producer.poll(0)
        if self._broken:
            self._replace()
        while self._backlog:
            if not self._try(self._backlog[0]):
                return
            self._backlog.popleft()

    def flush(self, timeout_s: float) -> int:
        """Waits until everything is acknowledged, or for so long; returns how many records are not."""
        ends = self._monotonic() + timeout_s
        while True:
            self.turn()
            left = max(0.0, ends - self._monotonic())
            self._producer.flush(min(left, 0.5))
            if self.pending == 0 or left == 0.0:
                return self.pending

    def _try(self, letter: _Letter) -> bool:
        try:
            self._producer.produce(letter.topic, letter.value, letter.key, on_delivery=self._undelivered)
        except BufferError:
            return False
        except KafkaException as error:
            if error.args[0].fatal():
                self._broken = True
                return False
            log.exception("a report cannot be sent to %s and is dropped", letter.topic)
        return True

    def _undelivered(self, error: Any, message: Any) -> None:
        """What librdkafka gave up goes back in line, unless nothing can help it."""
        if error is None:
            return
        if error.code() in _HOPELESS:
            log.error("a report was refused by the broker and is dropped (%s): %s", message.topic(), error)
            return
        if error.fatal():
            self._broken = True
        self._backlog.append(_Letter(message.topic(), message.key(), message.value()))

    def _replace(self) -> None:
        """A fatal error ends a producer for good: only a new one can go on, and repeating beats losing."""
        log.warning("the producer of reports met a fatal error and is replaced")
        self._broken = False
        self._producer.purge()
        self._producer.flush(1.0)
        self._producer = self._make(self._config)
