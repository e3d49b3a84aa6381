"""What each role may do, and above all what it may not."""

import shlex

import pytest
from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType

from mainspring.topics import Role, Topology, admin
from mainspring.topics.acls import Grant, Operation, Resource

TOPOLOGY = Topology(queues=("default", "mail"))
GRANTS = admin.acls(TOPOLOGY)


def allows(role: Role, operation: Operation, resource: Resource, name: str) -> bool:
    """Whether the grants let a role do this."""
    return any(
        grant.role is role
        and grant.resource is resource
        and operation in grant.operations
        and (name.startswith(grant.name) if grant.prefixed else name == grant.name)
        for grant in GRANTS
    )


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.OPERATOR])
def test_a_role_may_read_and_write_exactly_the_topics_that_name_it(role: Role) -> None:
    for topic in TOPOLOGY.all():
        assert allows(role, Operation.READ, Resource.TOPIC, topic.name) == (role in topic.readers), topic.name
        assert allows(role, Operation.WRITE, Resource.TOPIC, topic.name) == (role in topic.writers), topic.name


def test_nobody_but_the_scheduler_may_write_events_or_use_its_transactional_ids() -> None:
    for role in Role:
        is_scheduler = role is Role.SCHEDULER
        assert allows(role, Operation.WRITE, Resource.TOPIC, TOPOLOGY.events.name) == is_scheduler
        transactional_id = TOPOLOGY.transactional_id("host-0")
        assert allows(role, Operation.WRITE, Resource.TRANSACTIONAL_ID, transactional_id) == is_scheduler


def test_a_role_may_only_join_groups_of_its_own_name() -> None:
    for role in Role:
        for other in Role:
            allowed = allows(role, Operation.READ, Resource.GROUP, TOPOLOGY.group(other.value))
            assert allowed == (role is other and role is not Role.OPERATOR)


def test_the_operator_makes_topics_and_touches_no_record() -> None:
    for topic in TOPOLOGY.all():
        assert allows(Role.OPERATOR, Operation.CREATE, Resource.TOPIC, topic.name)
        assert not allows(Role.OPERATOR, Operation.READ, Resource.TOPIC, topic.name)
        assert not allows(Role.OPERATOR, Operation.WRITE, Resource.TOPIC, topic.name)


def test_nothing_is_granted_on_the_topics_groups_and_ids_of_another_installation() -> None:
    assert all(grant.name.startswith(TOPOLOGY.prefix) for grant in GRANTS if grant.resource is not Resource.CLUSTER)


def test_a_grant_is_printed_as_a_kafka_acls_command_that_a_shell_takes() -> None:
    grant = next(grant for grant in GRANTS if grant.role is Role.WORKER and grant.prefixed)

    words = shlex.split(grant.command("User:CN=worker one", "kafka:9092"))

    expected = "kafka-acls --bootstrap-server kafka:9092 --add --allow-principal"
    expected_rest = "--operation Read --operation Describe --topic mainspring.work. --resource-pattern-type prefixed"
    assert words == [*expected.split(), "User:CN=worker one", *expected_rest.split()]


def test_the_grant_on_the_cluster_names_no_resource() -> None:
    grant = next(grant for grant in GRANTS if grant.resource is Resource.CLUSTER)

    assert grant.command("User:x", "h:1").endswith("--operation IdempotentWrite --cluster")


@pytest.mark.parametrize("grant", GRANTS, ids=lambda grant: f"{grant.role}-{grant.resource}-{grant.name}")
def test_a_grant_is_one_binding_per_operation(grant: Grant) -> None:
    bindings = grant.bindings("User:x")

    assert [binding.operation for binding in bindings] == [
        getattr(AclOperation, operation.name) for operation in grant.operations
    ]
    for binding in bindings:
        assert binding.name == grant.name
        assert (binding.resource_pattern_type is ResourcePatternType.PREFIXED) == grant.prefixed
        assert (binding.restype is ResourceType.BROKER) == (grant.resource is Resource.CLUSTER)
