"""Several nodes, and nodes that ask who you are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from mainspring.local import EmbeddedKafka
from mainspring.local.security import ClientOptions

pytestmark = pytest.mark.broker
TIMEOUT_S = 30.0


def _create(options: ClientOptions, topic: str, replicas: int) -> None:
    admin = AdminClient(options)
    admin.create_topics([NewTopic(topic, 1, replicas)])[topic].result(TIMEOUT_S)


def _send(options: ClientOptions, topic: str, **extra: str | int) -> str | None:
    """Produce one record; the name of the error, or None."""
    outcomes: list[str | None] = []
    producer = Producer({**options, **extra, "log_level": 0})
    producer.produce(topic, b"one", on_delivery=lambda error, _: outcomes.append(error.name() if error else None))
    producer.flush(TIMEOUT_S)
    return outcomes[0]


@pytest.mark.slow
def test_three_nodes_keep_taking_records_when_one_is_killed() -> None:
    with EmbeddedKafka(3) as kafka:
        # given
        _create(kafka.client_options(), "replicated", replicas=3)

        # when
        kafka.kill(2)

        # then two in-sync replicas are enough
        assert _send(kafka.client_options(), "replicated", acks="all") is None

        # and the third comes back
        kafka.restart(2)
        assert sorted(kafka.pids) == [1, 2, 3]


@pytest.fixture
def secured() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(sasl=True, users={"writer": "writer-secret"}) as kafka:
        _create(kafka.client_options(), "guarded", replicas=1)
        yield kafka


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_user_may_do_only_what_an_acl_allows(secured: EmbeddedKafka, mechanism: str) -> None:
    # given a user that nothing was allowed to
    login = {**secured.client_options("writer"), "sasl.mechanism": mechanism}
    assert _send(login, "guarded") == "TOPIC_AUTHORIZATION_FAILED"

    # when
    resource = (ResourceType.TOPIC, "guarded", ResourcePatternType.LITERAL)
    allowed = AclBinding(*resource, "User:writer", "*", AclOperation.WRITE, AclPermissionType.ALLOW)
    admin = AdminClient(secured.client_options())
    for creation in admin.create_acls([allowed]).values():
        creation.result(TIMEOUT_S)

    # then
    assert _send(login, "guarded") is None


def test_a_wrong_password_gets_nowhere(secured: EmbeddedKafka) -> None:
    # given
    login = {**secured.client_options("writer"), "sasl.password": "guessed"}

    # when
    outcome = _send(login, "guarded", **{"message.timeout.ms": 2000})

    # then
    assert outcome == "_MSG_TIMED_OUT"


def test_a_user_that_cannot_be_written_down_is_refused() -> None:
    with pytest.raises(ValueError, match="letters, digits"):
        EmbeddedKafka(users={'quo"te': "secret"})
