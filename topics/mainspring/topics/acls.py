"""What each role must be allowed in a cluster with access control, derived from the topics themselves."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from mainspring.topics.topic import Role
from mainspring.topics.topology import Topology

__all__ = ["Grant", "Operation", "Resource", "grants"]

_GROUPS = {
    Role.CLIENT: ("client",),
    Role.SCHEDULER: ("scheduler",),
    Role.WORKER: ("worker",),
    Role.PROJECTOR: ("projector",),
    # `log` is what `mainspring log` reads with.
    Role.OBSERVER: ("observer", "log"),
    Role.OPERATOR: (),
}
_WRITERS = (Role.CLIENT, Role.SCHEDULER, Role.WORKER, Role.PROJECTOR)


class Resource(StrEnum):
    """What a grant is about."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"
    CLUSTER = "cluster"


class Operation(StrEnum):
    """What may be done, in the words of `kafka-acls`."""

    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    ALTER = "Alter"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"
    ALTER_CONFIGS = "AlterConfigs"
    IDEMPOTENT_WRITE = "IdempotentWrite"


_KAFKA_RESOURCE = {
    Resource.TOPIC: ResourceType.TOPIC,
    Resource.GROUP: ResourceType.GROUP,
    Resource.TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID,
    Resource.CLUSTER: ResourceType.BROKER,
}
_KAFKA_OPERATION = {
    Operation.READ: AclOperation.READ,
    Operation.WRITE: AclOperation.WRITE,
    Operation.CREATE: AclOperation.CREATE,
    Operation.ALTER: AclOperation.ALTER,
    Operation.DESCRIBE: AclOperation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS: AclOperation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS: AclOperation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE: AclOperation.IDEMPOTENT_WRITE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One role may do `operations` on the resource called `name`, or on all whose names begin with it (`prefixed`)."""

    role: Role
    resource: Resource
    name: str
    prefixed: bool
    operations: tuple[Operation, ...]
    why: str

    def command(self, principal: str, bootstrap: str) -> str:
        """The `kafka-acls` command that gives this grant to a principal, such as `User:worker`."""
        words = ["kafka-acls", "--bootstrap-server", bootstrap, "--add", "--allow-principal", principal]
        for operation in self.operations:
            words += ["--operation", operation.value]
        if self.resource is Resource.CLUSTER:
            words.append("--cluster")
        else:
            words += [f"--{self.resource.value}", self.name]
            words += ["--resource-pattern-type", "prefixed" if self.prefixed else "literal"]
        return shlex.join(words)

    def bindings(self, principal: str) -> list[AclBinding]:
        """The same for confluent-kafka's `AdminClient.create_acls`."""
        pattern = ResourcePatternType.PREFIXED if self.prefixed else ResourcePatternType.LITERAL
        resource = _KAFKA_RESOURCE[self.resource]
        return [
            AclBinding(
                resource, self.name, pattern, principal, "*", _KAFKA_OPERATION[operation], AclPermissionType.ALLOW
            )
            for operation in self.operations
        ]


def grants(topology: Topology) -> tuple[Grant, ...]:
    """Everything that each role needs, and no more: nobody but the scheduler may write `events`."""
    return tuple(grant for role in Role for grant in _grants_of(role, topology))


def _grants_of(role: Role, topology: Topology) -> Iterator[Grant]:
    if role is Role.OPERATOR:
        yield from _operator(topology)
        return
    if role in _WRITERS:
        yield Grant(
            role=role,
            resource=Resource.CLUSTER,
            name="kafka-cluster",
            prefixed=False,
            operations=(Operation.IDEMPOTENT_WRITE,),
            why="idempotent producers; brokers since 3.0 do not ask for it",
        )
    yield from _topics(role, topology)
    for group in _GROUPS[role]:
        yield Grant(
            role=role,
            resource=Resource.GROUP,
            name=topology.group(group),
            prefixed=True,
            operations=(Operation.READ, Operation.DESCRIBE),
            why="to join its own groups and commit their offsets",
        )
    if role is Role.SCHEDULER:
        yield Grant(
            role=role,
            resource=Resource.TRANSACTIONAL_ID,
            name=topology.transactional_id(""),
            prefixed=True,
            operations=(Operation.WRITE, Operation.DESCRIBE),
            why="its transactions, and to fence those of a dead scheduler",
        )


def _topics(role: Role, topology: Topology) -> Iterator[Grant]:
    """One grant per topic, but one for all work topics together: queues come and go."""
    work = f"{topology.prefix}work."
    granted: set[str] = set()
    for topic in topology.all():
        name = work if topic.name.startswith(work) else topic.name
        reads, writes = role in topic.readers, role in topic.writers
        if name in granted or not (reads or writes):
            continue
        granted.add(name)
        operations = [
            operation for operation, allowed in ((Operation.READ, reads), (Operation.WRITE, writes)) if allowed
        ]
        yield Grant(
            role=role,
            resource=Resource.TOPIC,
            name=name,
            prefixed=name == work,
            operations=(*operations, Operation.DESCRIBE),
            why=topic.why,
        )


def _operator(topology: Topology) -> Iterator[Grant]:
    yield Grant(
        role=Role.OPERATOR,
        resource=Resource.TOPIC,
        name=topology.prefix,
        prefixed=True,
        operations=(
            Operation.CREATE,
            Operation.DESCRIBE,
            Operation.ALTER,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        ),
        why="`topics plan` and `topics apply`: to make topics, change their settings and add partitions",
    )
