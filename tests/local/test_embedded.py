"""A real broker of one node: it serves, it comes back, it goes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from mainspring.local import BrokerStartError, EmbeddedKafka
from mainspring.local.scratch import Scratch
from tests.support.processes import ended, wait_until_ended

pytestmark = pytest.mark.broker
_TIMEOUT_S = 30.0
# A process that starts a broker from a thread that ends, says its pid, and is then killed.
_ORPHANING_PARENT = """
import os, signal, threading
from mainspring.local import EmbeddedKafka
kafka = EmbeddedKafka()
starter = threading.Thread(target=kafka.start)
starter.start()
starter.join()
print(kafka.pid(), kafka.data_dir, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def _create(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(_TIMEOUT_S)


def _topics(bootstrap: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=_TIMEOUT_S).topics)


def test_the_shared_broker_takes_a_record(kafka: str, prefix: str) -> None:
    # given
    _create(kafka, f"{prefix}records")
    delivered: list[object] = []

    # when
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce(f"{prefix}records", b"one", on_delivery=lambda error, _: delivered.append(error))
    producer.flush(_TIMEOUT_S)

    # then
    assert delivered == [None]


def test_a_topic_is_never_made_by_mentioning_it(kafka: str, prefix: str) -> None:
    # given
    admin = AdminClient({"bootstrap.servers": kafka})

    # when
    found = admin.list_topics(f"{prefix}mentioned", timeout=_TIMEOUT_S).topics[f"{prefix}mentioned"]

    # then
    assert found.error is not None


def test_a_killed_node_comes_back_with_its_address_and_data(broker: EmbeddedKafka) -> None:
    # given
    address, pid = broker.bootstrap, broker.pid()
    _create(address, "kept")

    # when
    broker.kill()
    broker.restart()

    # then
    assert broker.bootstrap == address
    assert broker.pid() != pid
    assert "kept" in _topics(address)


def test_a_paused_node_goes_on_where_it_was(broker: EmbeddedKafka) -> None:
    # given
    pid = broker.pid()
    broker.pause()

    # when
    broker.resume()

    # then
    assert broker.pid() == pid
    assert _topics(broker.bootstrap) is not None


def test_stop_leaves_neither_process_nor_temporary_data() -> None:
    # given
    kafka = EmbeddedKafka()
    kafka.start()
    pid, directory = kafka.pid(), kafka.data_dir

    # when
    kafka.stop()

    # then
    assert ended(pid)
    assert not directory.exists()
    with pytest.raises(BrokerStartError, match="has not been started"):
        kafka.pid()


def test_a_given_directory_is_found_again(tmp_path: Path) -> None:
    # given
    with EmbeddedKafka(data_dir=tmp_path) as first:
        _create(first.bootstrap, "kept")

    # when
    with EmbeddedKafka(data_dir=tmp_path) as second:
        found = _topics(second.bootstrap)

    # then
    assert "kept" in found


def test_the_broker_dies_with_its_parent_and_not_with_the_thread_that_started_it() -> None:
    # given a parent whose starting thread ends first, and that is then killed
    parent = subprocess.run([sys.executable, "-c", _ORPHANING_PARENT], capture_output=True, text=True, check=False)
    pid, directory = parent.stdout.split()

    # when
    gone = wait_until_ended(int(pid), _TIMEOUT_S)

    # then
    assert gone

    # and what it left is removed by the next one, once it is old enough to be nobody's
    os.utime(Path(directory) / "owner.lock", (0, 0))
    own = Scratch()
    assert not Path(directory).exists()
    own.remove()


def test_nobody_removes_the_directory_of_a_living_process() -> None:
    # given
    first = Scratch()
    os.utime(first.path / "owner.lock", (0, 0))

    # when
    second = Scratch()

    # then
    assert first.path.exists()
    second.remove()
    first.remove()
    assert not first.path.exists()


def test_a_broker_that_cannot_start_shows_the_end_of_its_log() -> None:
    # given
    kafka = EmbeddedKafka(settings={"authorizer.class.name": "no.such.Authorizer"})

    # when
    with pytest.raises(BrokerStartError) as failure:
        kafka.start()

    # then
    assert "ended before it was ready" in str(failure.value)
    assert "no.such.Authorizer" in str(failure.value)


def test_a_setting_that_kafka_refuses_is_named() -> None:
    # given
    kafka = EmbeddedKafka(settings={"log.retention.bytes": "plenty"})

    # when
    with pytest.raises(BrokerStartError) as failure:
        kafka.start()

    # then
    assert "could not be formatted" in str(failure.value)
    assert "plenty" in str(failure.value)


def test_a_cluster_of_none_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one node"):
        EmbeddedKafka(0)
