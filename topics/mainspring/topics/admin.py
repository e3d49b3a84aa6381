"""Compares the topics of an installation with those of a cluster, and makes the difference. Never deletes."""

import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
    TopicMetadata,
)

from mainspring.topics.acls import Grant, grants
from mainspring.topics.connection import Connection
from mainspring.topics.errors import TopicMismatchError, TopologyError
from mainspring.topics.plan import ChangeConfig, CreateTopic, GrowTopic, Plan, Present, compare
from mainspring.topics.topic import Role
from mainspring.topics.topology import Topology

__all__ = ["Grant", "Plan", "acls", "apply", "plan", "verify"]

TIMEOUT_S = 30.0
_LOOK_AGAIN_S = 0.05


def plan(connection: Connection, topology: Topology, *, timeout_s: float = TIMEOUT_S) -> Plan:
    """What is missing or different in the cluster. Raises `TopologyError` if the cluster does not answer in time."""
    return compare(topology, _present(_client(connection), topology, connection, timeout_s))


def apply(connection: Connection, topology: Topology, *, timeout_s: float = TIMEOUT_S) -> Plan:
    """Makes what is missing or different, waits until the brokers have it, and returns what was done.

    Raises `TopicMismatchError`, before anything is changed, for what cannot be changed in place, and `TopologyError`
    for what Kafka refuses. Several may apply at once: a topic that another made meanwhile counts as made.
    """
    client = _client(connection)
    wanted = compare(topology, _present(client, topology, connection, timeout_s))
    if wanted.mismatches:
        raise TopicMismatchError("; ".join(str(mismatch) for mismatch in wanted.mismatches))
    _create(client, [step for step in wanted.steps if isinstance(step, CreateTopic)], timeout_s)
    _grow(client, [step for step in wanted.steps if isinstance(step, GrowTopic)], timeout_s)
    _change(client, [step for step in wanted.steps if isinstance(step, ChangeConfig)], timeout_s)
    if wanted.steps:
        _await_all(client, topology, connection, timeout_s)
    return wanted


def verify(
    connection: Connection, topology: Topology, role: Role | None = None, *, timeout_s: float = TIMEOUT_S
) -> None:
    """For the start of a process: `TopicMismatchError` where a topic is missing or has another number of partitions.

    `role` leaves out what that role neither reads nor writes, and may not even see. Settings are not compared: to read
    them is a right of the operator.
    """
    client = _client(connection)
    metadata = _metadata(client, connection, timeout_s)
    topics = [topic for topic in topology.all() if role is None or role in topic.readers | topic.writers]
    missing = [topic.name for topic in topics if topic.name not in metadata or not metadata[topic.name].partitions]
    problems = [
        f"{topic} has {len(metadata[topic.name].partitions)} partitions, the settings say {topic.partitions}"
        for topic in topics
        if topic.name not in missing and len(metadata[topic.name].partitions) != topic.partitions
    ]
    if missing:
        problems.append(f"missing: {', '.join(missing)}")
    if problems:
        raise TopicMismatchError("; ".join(problems) + ". `mainspring topics plan` says what to do")


def acls(topology: Topology) -> tuple[Grant, ...]:
    """What each role must be allowed where the cluster has access control."""
    return grants(topology)


def _client(connection: Connection) -> AdminClient:
    return AdminClient(connection.admin_config())


def _metadata(client: AdminClient, connection: Connection, timeout_s: float) -> Mapping[str, TopicMetadata]:
    try:
        return client.list_topics(timeout=timeout_s).topics
    except KafkaException as error:
        reason = error.args[0].str()
        raise TopologyError(
            f"the cluster at {connection.bootstrap} did not answer within {timeout_s:g} s ({reason}). "
            "Is the address right, and do the security options fit the listener?"
        ) from error


def _present(client: AdminClient, topology: Topology, connection: Connection, timeout_s: float) -> dict[str, Present]:
    metadata = _metadata(client, connection, timeout_s)
    names = [topic.name for topic in topology.all() if topic.name in metadata and metadata[topic.name].partitions]
    configs = _configs(client, names, timeout_s)
    return {
        name: Present(
            partitions=len(metadata[name].partitions),
            replication=min(len(partition.replicas) for partition in metadata[name].partitions.values()),
            config=configs[name],
        )
        for name in names
        if name in configs
    }


def _configs(client: AdminClient, names: list[str], timeout_s: float) -> dict[str, dict[str, str]]:
    """Settings by topic, without topics that the broker that is asked has not heard of, though another one has."""
    if not names:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    futures = client.describe_configs(resources, request_timeout=timeout_s)
    described = {
        resource.name: _result(future, f"read the settings of {resource.name}", unless=KafkaError.UNKNOWN_TOPIC_OR_PART)
        for resource, future in futures.items()
    }
    return {
        name: {entry.name: entry.value for entry in entries.values() if entry.value is not None}
        for name, entries in described.items()
        if entries is not None
    }


def _create(client: AdminClient, steps: list[CreateTopic], timeout_s: float) -> None:
    if not steps:
        return
    topics = [
        NewTopic(
            step.topic.name,
            num_partitions=step.topic.partitions,
            replication_factor=step.topic.replication,
            config=dict(step.topic.config),
        )
        for step in steps
    ]
    for name, future in client.create_topics(topics, operation_timeout=timeout_s, request_timeout=timeout_s).items():
        _result(future, f"create {name}", unless=KafkaError.TOPIC_ALREADY_EXISTS)


def _grow(client: AdminClient, steps: list[GrowTopic], timeout_s: float) -> None:
    if steps:
        wanted = [NewPartitions(step.topic.name, step.topic.partitions) for step in steps]
        for name, future in client.create_partitions(wanted, request_timeout=timeout_s).items():
            _result(future, f"add partitions to {name}")


def _change(client: AdminClient, steps: list[ChangeConfig], timeout_s: float) -> None:
    if not steps:
        return
    resources = [
        ConfigResource(
            ResourceType.TOPIC,
            step.topic.name,
            incremental_configs=[
                ConfigEntry(name, wanted, incremental_operation=AlterConfigOpType.SET)
                for name, (_, wanted) in step.changes.items()
            ],
        )
        for step in steps
    ]
    for resource, future in client.incremental_alter_configs(resources, request_timeout=timeout_s).items():
        _result(future, f"change the settings of {resource.name}")


def _await_all(client: AdminClient, topology: Topology, connection: Connection, timeout_s: float) -> None:
    """Waits for the brokers.

    A topic exists before its leaders do, and the controller knows a setting before the brokers: whoever went on at once
    would meet errors that pass by themselves.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        metadata = _metadata(client, connection, timeout_s)
        waiting = [topic.name for topic in topology.all() if not _is_led(metadata.get(topic.name), topic.partitions)]
        if not waiting:
            left = compare(topology, _present(client, topology, connection, timeout_s))
            if left.is_empty:
                return
            waiting = [str(step) for step in (*left.mismatches, *left.steps)]
        if time.monotonic() > deadline:
            raise TopologyError(f"not done after {timeout_s:g} s: {'; '.join(waiting)}. Are all brokers up?")
        time.sleep(_LOOK_AGAIN_S)


def _is_led(topic: TopicMetadata | None, partitions: int) -> bool:
    if topic is None or topic.error is not None or len(topic.partitions) < partitions:
        return False
    return all(partition.leader >= 0 for partition in topic.partitions.values())


def _result(future: Future[Any], what: str, unless: int | None = None) -> Any:
    try:
        return future.result()
    except KafkaException as error:
        if error.args[0].code() == unless:
            return None
        raise TopologyError(f"Kafka did not {what}: {error.args[0].str()}") from error
