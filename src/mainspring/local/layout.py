"""What a node is told: its `server.properties`, as text, from a description of the cluster. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mainspring.local.ports import LOOPBACK
from mainspring.local.security import Sasl


@dataclass(frozen=True)
class NodePorts:
    """The loopback ports of one node: where clients connect, and where its controller listens."""

    broker: int
    controller: int


@dataclass(frozen=True)
class ClusterLayout:
    """A whole cluster: every node is broker and controller at once. Node ids count from 1."""

    cluster_id: str
    ports: Sequence[NodePorts]
    sasl: Sasl | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        """The addresses that clients are given, comma-separated."""
        return ",".join(f"{LOOPBACK}:{ports.broker}" for ports in self.ports)

    @property
    def node_ids(self) -> range:
        """The ids of the nodes, from 1."""
        return range(1, len(self.ports) + 1)


def server_properties(layout: ClusterLayout, node: int, data: Path) -> str:
    """The `server.properties` of one node; what the caller of the cluster has set wins over ours."""
    properties = {
        **_identity(layout, node, data),
        **_replication(len(layout.ports)),
        **_FAST_AND_SMALL,
        **(layout.sasl.broker_properties() if layout.sasl else {}),
        **layout.settings,
    }
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def _identity(layout: ClusterLayout, node: int, data: Path) -> dict[str, str]:
    own = layout.ports[node - 1]
    protocol = "SASL_PLAINTEXT" if layout.sasl else "PLAINTEXT"
    voters = ((n, layout.ports[n - 1].controller) for n in layout.node_ids)
    return {
        "process.roles": "broker,controller",
        "node.id": str(node),
        "controller.quorum.voters": ",".join(f"{n}@{LOOPBACK}:{port}" for n, port in voters),
        "listeners": f"CLIENT://{LOOPBACK}:{own.broker},CONTROLLER://{LOOPBACK}:{own.controller}",
        "advertised.listeners": f"CLIENT://{LOOPBACK}:{own.broker}",
        "listener.security.protocol.map": f"CLIENT:{protocol},CONTROLLER:{protocol}",
        "inter.broker.listener.name": "CLIENT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(data),
    }


def _replication(nodes: int) -> dict[str, str]:
    factor, in_sync = (1, 1) if nodes == 1 else (min(nodes, 3), min(nodes, 3) - 1)
    return {
        "default.replication.factor": str(factor),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(factor),
        "transaction.state.log.replication.factor": str(factor),
        "transaction.state.log.min.isr": str(in_sync),
        "share.coordinator.state.topic.replication.factor": str(factor),
        "share.coordinator.state.topic.min.isr": str(in_sync),
    }


# Each differs from the broker's default for a reason.
_FAST_AND_SMALL = {
    # A missing topic is a mistake to hear of; Kafka would make one with the wrong partition count.
    "auto.create.topics.enable": "false",
    # Internal topics: as few partitions as still spread over several coordinators.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    # A first member need not wait for others (3 s by default).
    "group.initial.rebalance.delay.ms": "0",
    # Tests notice a dead member within a second (6 s is the default minimum).
    "group.min.session.timeout.ms": "1000",
    # An open transaction of a dead process blinds readers until this sweep has passed (10 s by default).
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    # A node that was killed is let in again when the session of its former life has ended (9 s by default).
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # Two cores carry this broker, the schedulers and the workers.
    "num.network.threads": "2",
    "num.io.threads": "4",
    # Sparse files, two for each partition: tests make many partitions.
    "log.index.size.max.bytes": "2097152",
    # A deleted topic's files go at once (60 s by default).
    "file.delete.delay.ms": "1000",
}
