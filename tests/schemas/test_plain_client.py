"""The example without the package writes what the package reads, where the scheduler expects it."""

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from examples.plain_client import submit

from mainspring.schemas import Codec, JobSpec, SubmitJob
from mainspring.schemas.avro_types import newest
from mainspring.schemas.limits import check_command
from mainspring.schemas.lock import locked
from mainspring.topics import Connection, Topology, admin, partition_for

FILE = newest()["SubmitJob"]
SCHEMA_ID = locked()[FILE.path].id
SCHEMA_PATH = Path(sys.modules["mainspring.schemas"].__path__[0]) / "avro" / FILE.path
READ_TIMEOUT_S = 30.0


def test_the_example_imports_nothing_of_mainspring() -> None:
    tree = ast.parse(Path(submit.__file__).read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    assert not {name for name in imported if name.startswith("mainspring")}
    assert {"confluent_kafka", "fastavro"} <= imported


def test_its_record_is_a_submit_that_every_check_lets_pass() -> None:
    job: dict[str, Any] = {"job_id": "job-é", "name": "hello", "payload": b'{"who": "world"}', "tags": ["a"]}

    key, value = submit.submit_record(json.loads(FILE.text), SCHEMA_ID, job, actor="me")

    command = Codec.embedded().decode(value)
    assert key == "job-é".encode()
    assert isinstance(command, SubmitJob)
    assert command.spec == JobSpec(job_id="job-é", name="hello", payload=b'{"who": "world"}', tags=("a",))
    assert check_command(command) is None


def test_the_documented_schema_id_is_the_one_of_the_lock() -> None:
    for text in (submit.__doc__ or "", Path(submit.__file__).with_name("README.md").read_text(encoding="utf-8")):
        assert f"--schema-id {SCHEMA_ID} " in text


@pytest.mark.broker
def test_its_record_arrives_on_the_partition_of_its_job(
    kafka: str, prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # given
    topology = Topology(prefix=prefix, partitions=7, work_partitions=1)
    connection = Connection(kafka)
    admin.apply(connection, topology)

    # when
    arguments = ["--bootstrap", kafka, "--topic", topology.commands.name, "--schema", str(SCHEMA_PATH)]
    submit.main([*arguments, "--schema-id", str(SCHEMA_ID), "--name", "hello", "--job-id", "job-1", "--delay-ms", "5"])

    # then
    assert capsys.readouterr().out == "job-1\n"
    consumer = Consumer(connection.consumer_config(**{"group.id": topology.group("observer.test")}))
    consumer.assign([TopicPartition(topology.commands.name, partition_for(b"job-1", 7), 0)])
    message = consumer.poll(READ_TIMEOUT_S)
    consumer.close()
    assert message is not None
    assert message.error() is None
    command = Codec.embedded().decode(message.value() or b"")
    assert isinstance(command, SubmitJob)
    assert (command.spec.job_id, command.spec.delay_ms) == ("job-1", 5)
