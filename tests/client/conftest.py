"""A client on a scripted scheduler, and one on the real thing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mainspring.client import Client, ClientConfig
from mainspring.schemas import Codec
from mainspring.topics import Connection, Topology
from tests.client.fake_scheduler import FakeScheduler
from tests.support.topics import make_topics


@pytest.fixture
def topology(kafka: str, prefix: str) -> Topology:
    made = Topology(prefix=prefix, partitions=4, work_partitions=1)
    make_topics(Connection(kafka), [made.commands, made.events])
    return made


@pytest.fixture
def config(kafka: str, topology: Topology) -> ClientConfig:
    return ClientConfig(connection=Connection(kafka), topology=topology, codec=Codec.embedded(), actor="ada@host")


@pytest.fixture
def scheduler(kafka: str, topology: Topology) -> Iterator[FakeScheduler]:
    with FakeScheduler(kafka, topology) as fake:
        yield fake


@pytest.fixture
def client(config: ClientConfig) -> Iterator[Client]:
    with Client(config=config) as made:
        yield made


@pytest.fixture
def unreachable() -> Iterator[Client]:
    """A client whose broker does not exist, and that soon gives up."""
    nowhere = Connection("127.0.0.1:1")
    config = ClientConfig(
        connection=nowhere, topology=Topology(), codec=Codec.embedded(), actor="ada@host", delivery_s=1.0
    )
    with Client(config=config) as made:
        yield made
