"""The producers of a client, apart from any broker."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from mainspring.client import outbox
from mainspring.client.outbox import BulkOutbox, Outbox


class BrokenProducer:
    """One that met a fatal error: the client library raises it again from every call, `close` among them."""

    def __init__(self, _config: dict[str, Any]) -> None:
        self.closes = 0

    def close(self) -> None:
        self.closes += 1
        raise KafkaException(KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "fatal"))


@pytest.mark.parametrize("make", [Outbox, BulkOutbox])
def test_closing_a_client_whose_producer_broke_raises_nothing(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[dict[str, Any], str], Outbox | BulkOutbox]
) -> None:
    made: list[BrokenProducer] = []

    def make_producer(config: dict[str, Any]) -> BrokenProducer:
        made.append(BrokenProducer(config))
        return made[-1]

    monkeypatch.setattr(outbox, "Producer", make_producer)
    box = make({}, "commands")
    box.close()
    assert [producer.closes for producer in made] == [1]
