"""Reports on their way: nothing is dropped that could still arrive."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from mainspring.topics import Connection
from mainspring.workers.outbox import Outbox


class FakeMessage:
    """What a delivery callback is given."""

    def __init__(self, topic: str, value: bytes, key: bytes) -> None:
        self._parts = (topic, value, key)

    def topic(self) -> str:
        return self._parts[0]

    def value(self) -> bytes:
        return self._parts[1]

    def key(self) -> bytes:
        return self._parts[2]


class FakeProducer:
    """A producer with room for a few records, which fails as the test says."""

    def __init__(self, room: int = 2) -> None:
        self.room = room
        self.queued: list[tuple[FakeMessage, Callable[[Any, Any], None]]] = []
        self.delivered: list[bytes] = []
        self.error: KafkaError | None = None
        self.fatal = False
        self.purged = False

    def __len__(self) -> int:
        return len(self.queued)

    def produce(self, topic: str, value: bytes, key: bytes, *, on_delivery: Callable[[Any, Any], None]) -> None:
        if self.fatal:
            raise KafkaException(KafkaError(KafkaError._FATAL, "fatal", fatal=True))
        if len(self.queued) >= self.room:
            raise BufferError("queue full")
        self.queued.append((FakeMessage(topic, value, key), on_delivery))

    def poll(self, timeout: float) -> int:
        return 0

    def flush(self, timeout: float) -> int:
        queued, self.queued = self.queued, []
        for message, on_delivery in queued:
            if self.error is None and not self.purged:
                self.delivered.append(message.value())
            else:
                on_delivery(self.error or KafkaError(KafkaError._PURGE_QUEUE), message)
        return 0

    def purge(self) -> None:
        self.purged = True


def an_outbox(*producers: FakeProducer) -> Outbox:
    supply = iter(producers)
    return Outbox(Connection("nowhere:1"), lambda config: next(supply))


def test_what_finds_no_room_waits_and_keeps_its_order() -> None:
    producer = FakeProducer(room=2)
    outbox = an_outbox(producer)
    for n in range(7):
        outbox.send("t", b"k", b"%d" % n)
    assert outbox.pending == 7
    assert outbox.flush(5.0) == 0
    assert producer.delivered == [b"%d" % n for n in range(7)]


def test_what_was_not_delivered_is_sent_again() -> None:
    producer = FakeProducer(room=10)
    outbox = an_outbox(producer)
    producer.error = KafkaError(KafkaError._MSG_TIMED_OUT)
    outbox.send("t", b"k", b"report")
    producer.flush(0)
    assert outbox.pending == 1
    producer.error = None
    assert outbox.flush(5.0) == 0
    assert producer.delivered == [b"report"]


@pytest.mark.parametrize("code", [KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD])
def test_what_no_broker_will_ever_take_is_dropped_and_holds_up_nothing(code: int) -> None:
    producer = FakeProducer(room=10)
    outbox = an_outbox(producer)
    producer.error = KafkaError(code)
    outbox.send("t", b"k", b"hopeless")
    producer.flush(0)
    assert outbox.pending == 0
    producer.error = None
    outbox.send("t", b"k", b"next")
    assert outbox.flush(5.0) == 0
    assert producer.delivered == [b"next"]


def test_a_fatal_error_replaces_the_producer_and_loses_nothing() -> None:
    first, second = FakeProducer(room=10), FakeProducer(room=10)
    outbox = an_outbox(first, second)
    outbox.send("t", b"k", b"in flight")
    first.fatal = True
    outbox.send("t", b"k", b"refused")
    assert outbox.flush(5.0) == 0
    assert first.delivered == []
    assert sorted(second.delivered) == [b"in flight", b"refused"]


def test_a_flush_that_cannot_finish_says_how_much_is_left() -> None:
    producer = FakeProducer(room=1)
    outbox = an_outbox(producer)
    producer.error = KafkaError(KafkaError._MSG_TIMED_OUT)
    outbox.send("t", b"k", b"a")
    outbox.send("t", b"k", b"b")
    assert outbox.flush(0.0) == 2
