"""A broker that was away: a client that lived through it goes on."""

from collections.abc import Iterator

import pytest

from mainspring.client import Client, ClientConfig
from mainspring.local import EmbeddedKafka
from mainspring.schemas import Codec
from mainspring.topics import Connection, Topology
from mainspring.topics.admin import apply

pytestmark = pytest.mark.broker


@pytest.fixture
def client(broker: EmbeddedKafka) -> Iterator[Client]:
    topology = Topology(partitions=1, work_partitions=1)
    connection = Connection(broker.bootstrap)
    apply(connection, topology)
    config = ClientConfig(connection=connection, topology=topology, codec=Codec.embedded(), actor="test")
    with Client(config=config) as made:
        yield made


def test_a_job_is_asked_about_after_the_broker_was_started_again(broker: EmbeddedKafka, client: Client) -> None:
    handle = client.submit("any", job_id="one")
    before = handle.status()

    broker.kill()
    broker.restart()

    assert handle.status() == before
