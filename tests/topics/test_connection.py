"""Client configurations: what they promise, what users may change, what they may not."""

import logging
import time

import pytest
from confluent_kafka import Consumer, Producer

from mainspring.topics import PROTECTED_OPTIONS, Connection, ProtectedOptionError
from mainspring.topics.lines import Repeats

SILENT = {"log_level": 0}


@pytest.mark.parametrize("option", PROTECTED_OPTIONS)
def test_an_option_that_a_guarantee_rests_on_is_refused_with_its_reason(option: str) -> None:
    with pytest.raises(ProtectedOptionError) as refused:
        Connection("127.0.0.1:9092", {option: "anything"})

    assert repr(option) in str(refused.value)
    assert PROTECTED_OPTIONS[option] in str(refused.value)


def test_a_producer_is_idempotent_acknowledged_by_all_and_partitioned_as_java_does() -> None:
    config = Connection("127.0.0.1:9092").producer_config()

    assert config["bootstrap.servers"] == "127.0.0.1:9092"
    assert config["acks"] == "all"
    assert config["enable.idempotence"] is True
    assert config["partitioner"] == "murmur2_random"


def test_a_consumer_reads_committed_records_and_commits_nothing_by_itself() -> None:
    config = Connection("127.0.0.1:9092").consumer_config(**{"group.id": "g"})

    assert config["isolation.level"] == "read_committed"
    assert config["enable.auto.commit"] is False
    assert config["enable.auto.offset.store"] is False
    assert config["auto.offset.reset"] == "error"
    assert config["group.id"] == "g"


def test_options_of_the_user_win_over_those_of_a_part_and_those_over_the_defaults() -> None:
    connection = Connection("127.0.0.1:9092", {"linger.ms": 50})

    config = connection.producer_config(**{"linger.ms": 5, "message.max.bytes": 7})

    assert config["linger.ms"] == 50
    assert config["message.max.bytes"] == 7


def test_options_for_the_other_kind_of_client_stay_out() -> None:
    connection = Connection("h:1", {"linger.ms": 5, "fetch.min.bytes": 1, "socket.timeout.ms": 9})

    assert connection.producer_config().keys() >= {"linger.ms", "socket.timeout.ms"}
    assert "fetch.min.bytes" not in connection.producer_config()
    assert "linger.ms" not in connection.consumer_config()
    assert connection.admin_config().keys() == {"bootstrap.servers", "logger", "socket.timeout.ms"}


def test_librdkafka_takes_the_configurations_as_they_are(capfd: pytest.CaptureFixture[str]) -> None:
    connection = Connection("127.0.0.1:1", {"linger.ms": 5, "fetch.min.bytes": 1, "client.id": "me"})

    Producer(connection.producer_config(**SILENT, **{"transactional.id": "t"}))
    Consumer(connection.consumer_config(**SILENT, **{"group.id": "g"})).close()

    assert "CONFWARN" not in capfd.readouterr().err


def test_what_librdkafka_has_to_say_goes_to_the_log_of_the_process(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    # given an address where nobody listens
    producer = Producer(Connection("127.0.0.1:1").producer_config())

    # when
    deadline = time.monotonic() + 30
    while not caplog.records and time.monotonic() < deadline:
        producer.poll(0.1)

    # then
    assert {record.name for record in caplog.records} == {"mainspring.librdkafka"}
    assert "rdkafka" not in capfd.readouterr().err


def test_what_librdkafka_repeats_is_said_once() -> None:
    repeats = Repeats()

    def is_said(line: str) -> bool:
        return repeats.filter(
            logging.LogRecord("librdkafka", logging.ERROR, "", 0, "%s [%s] %s", ("F", "c", line), None)
        )

    assert is_said("a:9: refused (after 0ms in state CONNECT)")
    assert not is_said("a:9: refused (after 1ms in state CONNECT)")
    assert is_said("b:9: refused (after 0ms in state CONNECT)")


def test_options_do_not_show() -> None:
    connection = Connection("127.0.0.1:9092", {"sasl.password": "s3cr3t"})

    assert "s3cr3t" not in repr(connection)
