"""A job from end to end on a broker that enforces access, each process with the ACLs that are printed for its role."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from mainspring.local import EmbeddedKafka
from mainspring.topics import Connection, Role, admin
from tests.proof import jobs
from tests.proof.site import COMMAND, Site, a_site, environment, settings_of

pytestmark = pytest.mark.broker
PREFIX = "secured."
TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """An installation whose every process has a principal of its own."""

    kafka: EmbeddedKafka
    site: Site


def login(role: Role) -> dict[str, Any]:
    return {"kafka.sasl_username": role.value, "kafka.sasl_password": password(role)}


def password(role: Role) -> str:
    return f"{role.value}-password"


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    users = {role.value: password(role) for role in Role}
    kafka_section = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": Role.CLIENT.value,
        "sasl_password": password(Role.CLIENT),
    }
    changes = {"kafka": kafka_section}
    with EmbeddedKafka(sasl=True, users=users) as kafka:
        path, settings = settings_of(tmp_path, kafka.bootstrap, PREFIX, changes)
        obey(AdminClient(kafka.client_options()), printed(path))
        admin.apply(as_role(kafka, Role.OPERATOR), settings.topology())
        with a_site(kafka.bootstrap, PREFIX, tmp_path, changes, make_topics=False) as site:
            yield Secured(kafka=kafka, site=site)


def as_role(kafka: EmbeddedKafka, role: Role) -> Connection:
    options = kafka.client_options(role.value)
    return Connection(str(options.pop("bootstrap.servers")), options)


def printed(settings_file: Path) -> list[str]:
    """What `mainspring topics acls` prints, comments left out."""
    command = [*COMMAND, "--config", str(settings_file), "topics", "acls", "--principal", "User:{role}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S, env=environment())
    return [line for line in ran.stdout.splitlines() if line.startswith("kafka-acls ")]


def obey(root: AdminClient, commands: list[str]) -> None:
    """Does what Kafka's own `kafka-acls --add` does with these arguments."""
    bindings = [binding for command in commands for binding in bindings_of(shlex.split(command)[1:])]
    for future in root.create_acls(bindings).values():
        future.result(TIMEOUT_S)


def bindings_of(arguments: list[str]) -> list[AclBinding]:
    kinds = {
        "--topic": ResourceType.TOPIC,
        "--group": ResourceType.GROUP,
        "--transactional-id": ResourceType.TRANSACTIONAL_ID,
    }
    resource, name, pattern, principal = ResourceType.BROKER, "kafka-cluster", "literal", ""
    operations: list[str] = []
    rest = iter(arguments)
    for flag in rest:
        match flag:
            case "--add" | "--cluster":
                pass
            case "--operation":
                operations.append(next(rest))
            case "--allow-principal":
                principal = next(rest)
            case "--resource-pattern-type":
                pattern = next(rest)
            case "--bootstrap-server":
                next(rest)
            case _:
                resource, name = kinds[flag], next(rest)
    assert principal
    assert operations
    return [
        AclBinding(
            resource,
            name,
            ResourcePatternType[pattern.upper()],
            principal,
            "*",
            AclOperation[re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()],
            AclPermissionType.ALLOW,
        )
        for operation in operations
    ]


def test_with_exactly_the_printed_acls_a_job_runs_from_submit_to_view_and_a_worker_cannot_forge_an_event(
    secured: Secured,
) -> None:
    site = secured.site

    # given every role under its own principal
    site.scheduler("s1", **login(Role.SCHEDULER))
    site.worker("w1", **login(Role.WORKER))
    site.projector(**login(Role.PROJECTOR))

    # when a client submits, with nothing but its own rights
    handle = site.client.submit(jobs.nap.job(0.01), job_id="secured")

    # then
    assert handle.result(TIMEOUT_S) == "rested"
    assert site.client.cancel("secured").took_effect is False
    assert handle.get(TIMEOUT_S).attempts == 1

    # and the worker's login gives no right to decide
    refused: list[KafkaError | None] = []
    forger = Producer(as_role(secured.kafka, Role.WORKER).producer_config(log_level=0))
    forger.produce(site.topology.events.name, b"forged", b"secured", on_delivery=lambda error, _: refused.append(error))
    assert forger.flush(TIMEOUT_S) == 0
    assert refused[0] is not None
    assert refused[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    # and an auditor may read everything that it needs
    ran = subprocess.run(
        site.command("log", "verify", "-o", "json", **login(Role.OBSERVER)),
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
        env=environment(),
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
