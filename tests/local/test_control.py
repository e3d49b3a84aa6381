"""A broker in the background: it outlives who started it, and is found and ended by its data directory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from mainspring.local import AlreadyRunningError, LocalKafkaError, control
from mainspring.local.ports import free_ports
from tests.support.processes import ended

pytestmark = pytest.mark.broker
START = """
import sys
from pathlib import Path
from mainspring.local import control
print(control.start(Path(sys.argv[1]), port=int(sys.argv[2])).pids[0])
"""


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    control.stop(tmp_path)


def test_it_outlives_who_started_it_until_it_is_stopped(data_dir: Path) -> None:
    # given a process that starts it and ends
    (port,) = free_ports(1)
    starter = subprocess.run(
        [sys.executable, "-c", START, str(data_dir), str(port)], capture_output=True, text=True, check=True
    )
    pid = int(starter.stdout)

    # when
    found = control.status(data_dir)

    # then it serves
    assert found is not None
    assert found.pids == (pid,)
    assert found.bootstrap == f"127.0.0.1:{port}"
    assert AdminClient({"bootstrap.servers": found.bootstrap}).list_topics(timeout=10).brokers

    # and goes when told to
    assert control.stop(data_dir)
    assert ended(pid)
    assert control.status(data_dir) is None
    assert not control.stop(data_dir)


def test_a_second_start_names_the_first(data_dir: Path) -> None:
    # given
    ports = free_ports(2)
    first = control.start(data_dir, port=ports[0])

    # when
    with pytest.raises(AlreadyRunningError) as refusal:
        control.start(data_dir, port=ports[1])

    # then
    assert first.bootstrap in str(refusal.value)
    assert "local kafka stop" in str(refusal.value)


def test_a_taken_port_is_named_before_anything_starts(data_dir: Path, broker_port: int) -> None:
    with pytest.raises(LocalKafkaError, match=f"port {broker_port} is taken"):
        control.start(data_dir, port=broker_port)


def test_a_process_id_that_belongs_to_somebody_else_is_left_alone(data_dir: Path) -> None:
    # given the record of a broker that is long gone, its process id taken over by a stranger
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        record: dict[str, object] = {"bootstrap": "127.0.0.1:9092", "pids": [stranger.pid], "data_dir": str(data_dir)}
        record |= {"kafka_version": "4.3.1", "started_at": 0.0}
        (data_dir / "background.json").write_text(json.dumps(record), encoding="utf-8")

        # when
        stopped = control.stop(data_dir)

        # then
        assert not stopped
        assert stranger.poll() is None
        stranger.communicate(b"\n")


@pytest.fixture
def broker_port(kafka: str) -> int:
    return int(kafka.split(",", maxsplit=1)[0].rpartition(":")[2])
