"""The ACLs on a broker that enforces them: each role can do its work, and nothing else."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient

from mainspring.local import EmbeddedKafka
from mainspring.schemas import Priority
from mainspring.topics import Connection, Role, Topic, Topology, admin

pytestmark = pytest.mark.broker
TIMEOUT_S = 30.0
TOPOLOGY = Topology(prefix="secured.", partitions=1, work_partitions=1)
ROLES = [role for role in Role if role is not Role.OPERATOR]
# One lane stands for all four: they share one grant.
TOPICS = [
    topic
    for topic in TOPOLOGY.all()
    if not topic.growable or topic.name == TOPOLOGY.work("default", Priority.HIGH).name
]


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedKafka]:
    """A broker with a user per role, each with the grants of its role, and the topics made by the operator."""
    with EmbeddedKafka(sasl=True, users={role.value: f"{role.value}-password" for role in Role}) as kafka:
        root = AdminClient(kafka.client_options())
        bindings = [each for grant in admin.acls(TOPOLOGY) for each in grant.bindings(f"User:{grant.role}")]
        for future in root.create_acls(bindings).values():
            future.result(TIMEOUT_S)
        admin.apply(connection(kafka, Role.OPERATOR), TOPOLOGY)
        yield kafka


def connection(kafka: EmbeddedKafka, role: Role) -> Connection:
    options = kafka.client_options(role.value)
    return Connection(str(options.pop("bootstrap.servers")), options)


def write_error(producer: Producer, topic: Topic) -> int | None:
    """Writes one record; the code of the error, None if it was taken."""
    errors: list[KafkaError | None] = []
    producer.produce(topic.name, b"value", b"key", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    return errors[0].code() if errors[0] else None


def allowed(kafka: EmbeddedKafka, role: Role, topic: Topic) -> set[AclOperation]:
    """What the broker says that a role may do with a topic; nothing if it may not even know of it."""
    client = AdminClient(connection(kafka, role).admin_config(log_level=0))
    asked = client.describe_topics(TopicCollection([topic.name]), include_authorized_operations=True)
    try:
        return set(asked[topic.name].result(TIMEOUT_S).authorized_operations)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise
        return set()


@pytest.mark.parametrize("role", ROLES)
def test_the_broker_lets_a_role_read_and_write_its_topics_and_no_other(secured: EmbeddedKafka, role: Role) -> None:
    for topic in TOPICS:
        operations = allowed(secured, role, topic)

        assert (AclOperation.READ in operations) == (role in topic.readers), topic.role
        assert (AclOperation.WRITE in operations) == (role in topic.writers), topic.role


@pytest.mark.parametrize("role", ROLES)
def test_every_role_can_check_its_topics_at_its_start(secured: EmbeddedKafka, role: Role) -> None:
    admin.verify(connection(secured, role), TOPOLOGY, role)


def test_a_worker_writes_reports_and_cannot_forge_an_event(secured: EmbeddedKafka) -> None:
    producer = Producer(connection(secured, Role.WORKER).producer_config(log_level=0))

    assert write_error(producer, TOPOLOGY.attempts) is None
    assert write_error(producer, TOPOLOGY.events) == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_client_writes_commands_and_nothing_that_the_scheduler_trusts(secured: EmbeddedKafka) -> None:
    producer = Producer(connection(secured, Role.CLIENT).producer_config(log_level=0))

    assert write_error(producer, TOPOLOGY.commands) is None
    for topic in (TOPOLOGY.followups, TOPOLOGY.attempts, TOPOLOGY.events, TOPOLOGY.scheduler_changelog):
        assert write_error(producer, topic) == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_client_reads_events_in_a_group_of_its_own(secured: EmbeddedKafka) -> None:
    own: dict[str, Any] = {"group.id": TOPOLOGY.group("client.test"), "enable.partition.eof": True}
    consumer = Consumer(connection(secured, Role.CLIENT).consumer_config(**own))
    consumer.assign([TopicPartition(TOPOLOGY.events.name, 0, 0)])

    message = consumer.poll(TIMEOUT_S)
    consumer.close()

    assert message is not None
    error = message.error()
    assert error is None or error.code() == KafkaError._PARTITION_EOF


def test_the_scheduler_may_use_its_transactional_ids(secured: EmbeddedKafka) -> None:
    transactional_id = {"transactional.id": TOPOLOGY.transactional_id("host-0")}
    producer = Producer(connection(secured, Role.SCHEDULER).producer_config(**transactional_id))

    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce(TOPOLOGY.events.name, b"value", b"key")
    producer.commit_transaction(TIMEOUT_S)


def test_a_worker_may_not_fence_the_scheduler(secured: EmbeddedKafka) -> None:
    own = {"transactional.id": TOPOLOGY.transactional_id("host-0"), "log_level": 0}
    producer = Producer(connection(secured, Role.WORKER).producer_config(**own))

    with pytest.raises(KafkaException) as refused:
        producer.init_transactions(TIMEOUT_S)

    assert refused.value.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_a_worker_may_not_look_into_the_group_of_the_schedulers(secured: EmbeddedKafka) -> None:
    client = AdminClient(connection(secured, Role.WORKER).admin_config(log_level=0))
    group = TOPOLOGY.group("scheduler")

    with pytest.raises(KafkaException) as refused:
        client.describe_consumer_groups([group])[group].result(TIMEOUT_S)

    assert refused.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED


def test_the_operator_sees_that_there_is_nothing_to_do(secured: EmbeddedKafka) -> None:
    assert admin.plan(connection(secured, Role.OPERATOR), TOPOLOGY).is_empty
