"""Topics made and compared on a real broker."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from mainspring.topics import Connection, Role, TopicMismatchError, Topology, TopologyError, admin

pytestmark = pytest.mark.broker
TIMEOUT_S = 30.0


@pytest.fixture
def topology(prefix: str) -> Topology:
    """A small installation."""
    return Topology(prefix=prefix, partitions=2, work_partitions=2)


@pytest.fixture
def connection(kafka: str) -> Connection:
    """The way to the shared broker."""
    return Connection(kafka)


def partitions(connection: Connection, name: str) -> int:
    topics = AdminClient(connection.admin_config()).list_topics(timeout=TIMEOUT_S).topics
    return len(topics[name].partitions) if name in topics else 0


def wait_until(condition: Callable[[], bool]) -> None:
    """Asks again until the condition holds; each time is a round trip to the broker."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline


def test_topics_are_planned_made_and_then_there_is_nothing_to_do(connection: Connection, topology: Topology) -> None:
    # given a cluster without them
    assert len(admin.plan(connection, topology).steps) == len(topology.all())

    # when
    done = admin.apply(connection, topology)

    # then
    assert len(done.steps) == len(topology.all())
    assert admin.plan(connection, topology).is_empty
    assert admin.apply(connection, topology).is_empty
    assert all(partitions(connection, topic.name) == topic.partitions for topic in topology.all())
    admin.verify(connection, topology)


def test_commands_and_events_carry_the_time_of_the_broker_whatever_their_writer_says(
    connection: Connection, topology: Topology
) -> None:
    # given
    admin.apply(connection, topology)
    producer = Producer(connection.producer_config())
    stamps: list[tuple[int, int]] = []
    long_ago_ms = 1_000

    # when
    for topic in (topology.commands, topology.events):
        producer.produce(
            topic.name,
            b"x",
            b"k",
            timestamp=long_ago_ms,
            on_delivery=lambda _, message: stamps.append(message.timestamp()),
        )
    assert producer.flush(TIMEOUT_S) == 0

    # then
    assert [kind for kind, _ in stamps] == [TIMESTAMP_LOG_APPEND_TIME] * 2
    assert min(at_ms for _, at_ms in stamps) > long_ago_ms


def test_what_is_missing_is_told_with_what_to_do(connection: Connection, topology: Topology) -> None:
    with pytest.raises(TopicMismatchError, match=r"missing: .*\.commands.*topics plan"):
        admin.verify(connection, topology)


def test_a_count_that_differs_from_the_settings_is_told_at_a_start(connection: Connection, topology: Topology) -> None:
    admin.apply(connection, topology)

    with pytest.raises(TopicMismatchError, match=r"events has 2 partitions, the settings say 3"):
        admin.verify(connection, replace(topology, partitions=3))


def test_a_role_does_not_miss_the_topics_of_others(connection: Connection, topology: Topology) -> None:
    # given only what a projector reads and writes
    client = AdminClient(connection.admin_config())
    own = [topology.events, topology.logs, topology.dead_letters]
    for future in client.create_topics([NewTopic(topic.name, topic.partitions, 1) for topic in own]).values():
        future.result(TIMEOUT_S)
    wait_until(lambda: all(partitions(connection, topic.name) == topic.partitions for topic in own))

    admin.verify(connection, topology, Role.PROJECTOR)
    with pytest.raises(TopicMismatchError, match="missing"):
        admin.verify(connection, topology, Role.CLIENT)


def test_a_count_that_does_not_match_stops_everything_before_anything_is_made(
    connection: Connection, topology: Topology
) -> None:
    # given a topic that somebody made by hand
    client = AdminClient(connection.admin_config())
    client.create_topics([NewTopic(topology.events.name, 5, 1)])[topology.events.name].result(TIMEOUT_S)
    wait_until(lambda: partitions(connection, topology.events.name) == 5)

    with pytest.raises(TopicMismatchError, match="has 5 partitions and should have 2"):
        admin.apply(connection, topology)

    assert partitions(connection, topology.commands.name) == 0
    assert partitions(connection, topology.events.name) == 5


def test_a_setting_changed_by_hand_is_set_again_and_a_foreign_one_stays(
    connection: Connection, topology: Topology
) -> None:
    # given
    admin.apply(connection, topology)
    client = AdminClient(connection.admin_config())
    by_hand = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in (("retention.ms", "1000"), ("segment.jitter.ms", "77"))
    ]
    resource = ConfigResource(ResourceType.TOPIC, topology.events.name, incremental_configs=by_hand)
    client.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
    # the controller has it; the broker, which is asked, learns of it a moment later
    wait_until(lambda: not admin.plan(connection, topology).is_empty)

    # when
    planned = admin.plan(connection, topology)
    admin.apply(connection, topology)

    # then
    assert str(planned) == f"change {topology.events}: retention.ms 1000 → -1"
    assert admin.plan(connection, topology).is_empty
    described = client.describe_configs([ConfigResource(ResourceType.TOPIC, topology.events.name)])
    (config,) = (future.result(TIMEOUT_S) for future in described.values())
    assert config["segment.jitter.ms"].value == "77"


class Forgetful(AdminClient):
    """Asks a broker that has not heard of a topic yet when it is asked for the settings the first time."""

    def __init__(self, connection: Connection, topic: str) -> None:
        super().__init__(connection.admin_config())
        self.forgets = topic

    def describe_configs(self, *arguments: Any, **options: Any) -> Any:
        answers: dict[ConfigResource, Future[Any]] = super().describe_configs(*arguments, **options)
        (asked,) = [resource for resource in answers if resource.name == self.forgets] or (None,)
        if asked is None:
            return answers
        self.forgets = ""
        unknown: Future[Any] = Future()
        unknown.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
        return {**answers, asked: unknown}


def test_a_broker_that_has_not_heard_of_a_new_topic_yet_is_asked_again(
    connection: Connection, topology: Topology, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgetful = Forgetful(connection, topology.commands.name)
    monkeypatch.setattr(admin, "_client", lambda _: forgetful)

    done = admin.apply(connection, topology)

    assert forgetful.forgets == "", "void: nobody asked for its settings"
    assert len(done.steps) == len(topology.all())
    assert admin.plan(connection, topology).is_empty


def test_a_new_queue_and_more_workers_per_lane_are_made_in_place(connection: Connection, topology: Topology) -> None:
    # given
    admin.apply(connection, topology)

    # when
    larger = replace(topology, queues=("default", "mail"), work_partitions=3)
    admin.apply(connection, larger)

    # then
    assert {partitions(connection, topic.name) for topic in larger.all() if topic.growable} == {3}
    assert admin.plan(connection, larger).is_empty
    # and a queue that is no longer declared keeps its topics
    admin.apply(connection, replace(larger, queues=("default",)))
    assert partitions(connection, f"{topology.prefix}work.mail.low") == 3


def test_more_copies_than_there_are_brokers_is_refused_in_kafkas_words(
    connection: Connection, topology: Topology
) -> None:
    with pytest.raises(TopologyError, match="create"):
        admin.apply(connection, replace(topology, replication=9))


def test_a_cluster_that_does_not_answer_is_named() -> None:
    nowhere = Connection("127.0.0.1:1", {"socket.connection.setup.timeout.ms": 1000})

    with pytest.raises(TopologyError, match=r"127\.0\.0\.1:1 did not answer within 1 s"):
        admin.plan(nowhere, Topology(), timeout_s=1.0)
