"""Whether a client is connected to any broker."""

import time

import pytest
from confluent_kafka import Consumer

from mainspring.local import EmbeddedKafka
from mainspring.topics import Connection
from mainspring.topics.contact import Contact

PATIENCE_S = 60.0


def test_contact_is_lost_from_the_first_word_of_no_connection_until_one_is_there_again() -> None:
    now = 100.0
    contact = Contact(lambda: now)

    # given nothing was told yet
    assert contact.lost_s == 0.0

    # when one of two brokers is connected, and then none
    contact.take('{"brokers": {"a:1/1": {"state": "UP"}, "b:1/2": {"state": "DOWN"}}}')
    assert contact.lost_s == 0.0
    contact.take('{"brokers": {"a:1/1": {"state": "TRY_CONNECT"}, "b:1/2": {"state": "DOWN"}}}')
    now = 107.0
    contact.take('{"brokers": {"a:1/1": {"state": "DOWN"}, "b:1/2": {"state": "DOWN"}}}')

    # then it counts from the first word of it, and no longer when there is one
    assert contact.lost_s == 7.0
    contact.take('{"brokers": {"a:1/1": {"state": "UPDATE"}, "b:1/2": {"state": "DOWN"}}}')
    assert contact.lost_s == 0.0


@pytest.mark.broker
def test_a_client_tells_that_its_broker_is_gone_and_that_it_is_back(broker: EmbeddedKafka) -> None:
    contact = Contact()
    quick = {**contact.options, "statistics.interval.ms": 100, "reconnect.backoff.max.ms": 500}
    consumer = Consumer(Connection(broker.bootstrap).consumer_config(**{"group.id": "g", **quick}))

    def until(*, lost: bool) -> None:
        ends_at = time.monotonic() + PATIENCE_S
        while (contact.lost_s > 0) != lost:
            assert time.monotonic() < ends_at
            consumer.poll(0.05)

    try:
        consumer.subscribe(["nothing"])
        until(lost=False)

        broker.kill()
        until(lost=True)

        broker.restart()
        until(lost=False)
    finally:
        consumer.close()
