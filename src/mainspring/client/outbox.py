"""Commands on their way into the log: an idempotent producer and the thread that hears of its deliveries."""

import threading
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from mainspring.client.errors import ClientClosedError, NotDeliveredError
from mainspring.client.steps import fail, fulfil
from mainspring.topics.headers import Headers

__all__ = ["BulkOutbox", "Envelope", "Outbox", "OutboxFullError"]

POLL_S = 0.2


class OutboxFullError(Exception):
    """Too much is on its way already; `room` is done when some of it has arrived."""

    def __init__(self, room: Future[None]) -> None:
        super().__init__("the queue of unsent commands is full")
        self.room = room


@dataclass(frozen=True, slots=True)
class Envelope:
    """One encoded command; `job_id` is only for the error message."""

    job_id: str
    key: bytes
    value: bytes
    headers: Headers


class Outbox:
    """Sends single commands with little delay. `send` may be called from any thread and never blocks."""

    def __init__(self, config: dict[str, Any], topic: str) -> None:
        self._producer = Producer(config)
        self._topic = topic
        self._changed = threading.Condition()
        self._outstanding = 0
        self._wanting_room: list[Future[None]] = []
        self._closed = False
        self._thread: threading.Thread | None = None

    def send(self, envelope: Envelope) -> Future[None]:
        """Done when all in-sync replicas have the command; fails with `NotDeliveredError`.

        Raises `OutboxFullError` when nothing more fits; the command was not taken then.
        """
        future: Future[None] = Future()

        def delivered(error: KafkaError | None, _: Message) -> None:
            with self._changed:
                self._outstanding -= 1
                wanting, self._wanting_room = self._wanting_room, []
            for room in wanting:
                fulfil(room, None)
            if error is None:
                fulfil(future, None)
            else:
                fail(future, NotDeliveredError((envelope.job_id,), error.str()))

        with self._changed:
            if self._closed:
                raise ClientClosedError
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="mainspring-commands", daemon=True)
                self._thread.start()
            self._outstanding += 1
            try:
                self._producer.produce(
                    self._topic, envelope.value, envelope.key, on_delivery=delivered, headers=list(envelope.headers)
                )
            except BufferError:
                self._outstanding -= 1
                room: Future[None] = Future()
                self._wanting_room.append(room)
                raise OutboxFullError(room) from None
            except KafkaException as error:
                self._outstanding -= 1
                fail(future, NotDeliveredError((envelope.job_id,), str(error)))
            self._changed.notify_all()
        return future

    def close(self) -> None:
        """Wait for what is on its way, then stop."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()
        _let_go(self._producer)

    def _serve(self) -> None:
        while True:
            with self._changed:
                while not self._outstanding and not self._closed:
                    self._changed.wait()
                if self._closed and not self._outstanding:
                    return
            self._producer.poll(POLL_S)


class BulkOutbox:
    """Sends many commands in large batches and waits for all of them. Callers from several threads take turns."""

    def __init__(self, config: dict[str, Any], topic: str) -> None:
        # Only failures are reported: a report for each of a million successes would cost more than sending them.
        self._producer = Producer({**config, "delivery.report.only.error": True})
        self._topic = topic
        self._lock = threading.Lock()
        self._failed: list[tuple[bytes, str]] = []
        self._closed = False

    def send(self, envelopes: Iterable[Envelope]) -> None:
        """Returns when all in-sync replicas have every command; raises `NotDeliveredError` with those that failed."""
        with self._lock:
            if self._closed:
                raise ClientClosedError
            self._failed = []
            produce, poll, topic, failed = self._producer.produce, self._producer.poll, self._topic, self._note
            for envelope in envelopes:
                while True:
                    try:
                        produce(topic, envelope.value, envelope.key, on_delivery=failed, headers=list(envelope.headers))
                        break
                    except BufferError:
                        poll(POLL_S)
                    except KafkaException as error:
                        self._failed.append((envelope.key, str(error)))
                        break
            while self._producer.flush(POLL_S):
                pass
            if self._failed:
                ids = tuple(key.decode() for key, _ in self._failed)
                raise NotDeliveredError(ids, self._failed[0][1])

    def _note(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed.append((message.key() or b"", error.str()))

    def close(self) -> None:
        """Refuse further calls, after the running one."""
        with self._lock:
            self._closed = True
            _let_go(self._producer)


def _let_go(producer: Producer) -> None:
    # Every command has had its answer by now: what breaks a producer that is let go concerns nobody.
    with suppress(KafkaException):
        producer.close()
