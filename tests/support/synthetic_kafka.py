"""Where a synthetic log is written on a real broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from confluent_kafka import Producer

from mainspring.schemas import Codec
from mainspring.topics import Connection, Topic, Topology
from tests.support.scheduler_double import SchedulerDouble
from tests.support.topics import make_topics


class KafkaSink:
    """Writes to a real broker; what a scheduler writes goes through a transactional producer."""

    def __init__(self, connection: Connection, topology: Topology) -> None:
        plain = {"partitioner": "murmur2_random", "linger.ms": 0, "log_level": 0}
        self._plain = Producer(connection.producer_config(**plain))
        self._in_transaction = Producer(
            connection.producer_config(**plain, **{"transactional.id": topology.transactional_id("double")})
        )
        self._in_transaction.init_transactions(30)
        self._active = self._plain

    def append(self, topic: Topic, partition: int, key: bytes | None, value: bytes | None, time_ms: int) -> int:
        offsets: list[int] = []

        def delivered(error: Any, message: Any) -> None:
            assert error is None, error
            offsets.append(message.offset())

        self._active.produce(topic.name, value, key, partition, on_delivery=delivered)
        if self._active is self._plain:
            assert self._active.flush(30) == 0
            return offsets[0]
        return -1

    def begin(self) -> None:
        self._in_transaction.begin_transaction()
        self._active = self._in_transaction

    def commit(self) -> None:
        self._in_transaction.commit_transaction(30)
        self._active = self._plain

    def abort(self) -> None:
        assert self._in_transaction.flush(30) == 0
        self._in_transaction.abort_transaction(30)
        self._active = self._plain


@dataclass(frozen=True, kw_only=True)
class SyntheticCluster:
    """The topics of one installation on a real broker, and a double that writes them."""

    connection: Connection
    topology: Topology
    codec: Codec
    sink: KafkaSink
    double: SchedulerDouble

    @classmethod
    def new(cls, bootstrap: str, prefix: str, codec: Codec) -> Self:
        """One with two partitions and empty topics."""
        connection = Connection(bootstrap)
        topology = Topology(prefix=prefix, partitions=2, queues=("default", "bulk"))
        make_topics(
            connection,
            [
                topology.commands,
                topology.followups,
                topology.attempts,
                topology.events,
                topology.scheduler_changelog,
                topology.dead_letters,
                topology.logs,
            ],
        )
        sink = KafkaSink(connection, topology)
        double = SchedulerDouble(topology, codec, sink)
        return cls(connection=connection, topology=topology, codec=codec, sink=sink, double=double)
