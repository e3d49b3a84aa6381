"""The compose file and the image: what they promise, read from the files themselves."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from mainspring.local.layout import ClusterLayout, NodePorts, server_properties
from mainspring.local.runtime import KAFKA_VERSION

REPOSITORY = Path(__file__).parents[2]
COMPOSE = REPOSITORY / "docker-compose.yml"
SERVICES = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
ROLES = ["scheduler", "worker", "projector"]
# What a broker of the compose file and an embedded one must agree on, for the same promises to hold.
SHARED_SETTINGS = [
    "offsets.topic.replication.factor",
    "offsets.topic.num.partitions",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "transaction.state.log.num.partitions",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
    "share.coordinator.state.topic.num.partitions",
    "group.initial.rebalance.delay.ms",
    "group.min.session.timeout.ms",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    "auto.create.topics.enable",
]


def test_every_part_is_there() -> None:
    assert set(SERVICES) == {"kafka", "topics", *ROLES}


def test_the_file_needs_no_version_line() -> None:
    assert "version" not in yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))


def test_kafka_is_the_version_that_the_tests_run_on() -> None:
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{KAFKA_VERSION}"


def test_kafka_has_the_settings_of_the_embedded_one() -> None:
    # given
    layout = ClusterLayout("cluster", [NodePorts(broker=1, controller=2)])
    embedded = dict(line.split("=", 1) for line in server_properties(layout, 1, Path("data")).splitlines())

    # when
    environment = SERVICES["kafka"]["environment"]
    composed = {name: environment["KAFKA_" + name.upper().replace(".", "_")] for name in SHARED_SETTINGS}

    # then
    assert composed == {name: embedded[name] for name in SHARED_SETTINGS}


@pytest.mark.parametrize("name", SERVICES)
def test_nothing_is_open_to_other_machines(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))


@pytest.mark.parametrize("name", ["topics", *ROLES])
def test_our_containers_have_no_privileges(name: str) -> None:
    assert SERVICES[name]["cap_drop"] == ["ALL"]
    assert SERVICES[name]["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("name", ROLES)
def test_a_role_waits_for_the_topics_and_says_how_it_is(name: str) -> None:
    assert SERVICES[name]["depends_on"] == {"topics": {"condition": "service_completed_successfully"}}
    assert "/readyz" in str(SERVICES[name]["healthcheck"]["test"])


def test_workers_can_be_many() -> None:
    # given
    worker: dict[str, Any] = SERVICES["worker"]

    # then nothing in it can be had only once
    assert not {"ports", "container_name", "hostname"} & set(worker)


def test_the_image_runs_as_nobody_special() -> None:
    # given
    lines = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8").splitlines()

    # then
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users
    assert all(user.partition(":")[0] not in {"0", "root"} for user in users)


def _answers(command: list[str]) -> bool:
    found = shutil.which(command[0])
    return found is not None and subprocess.run([*command, "version"], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("command", [["docker", "compose"], ["docker-compose"]], ids=" ".join)
def test_compose_itself_finds_no_fault(command: list[str]) -> None:
    # given no engine, only the program where there is one
    if not _answers(command):
        pytest.skip(f"{' '.join(command)} is not installed")

    # when
    checked = subprocess.run(
        [*command, "-f", str(COMPOSE), "config", "-q"], capture_output=True, text=True, check=False
    )

    # then
    assert checked.returncode == 0, checked.stderr
