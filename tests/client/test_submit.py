"""A submit returns once the command is in the log, complete, or says why it is not."""

from __future__ import annotations

import base64
import os
import threading
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Consumer, TopicPartition

from mainspring.client import Client, InvalidJobError, NotDeliveredError, Submission
from mainspring.jobs.options import JobOptions
from mainspring.schemas import Codec, SubmitJob
from mainspring.schemas.bounds import PAYLOAD_MAX_BYTES
from mainspring.topics import Topology, partition_for

pytestmark = pytest.mark.broker


def read_commands(bootstrap: str, topology: Topology) -> list[tuple[SubmitJob, int, dict[str, bytes]]]:
    """Every command in the log with its partition and headers."""
    codec = Codec.embedded()
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "test",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(topology.commands.name, p, 0) for p in range(topology.partitions)])
    found: list[tuple[SubmitJob, int, dict[str, bytes]]] = []
    ends = 0
    while ends < topology.partitions:
        message = consumer.poll(10)
        assert message is not None, "the broker fell silent"
        if message.error() is not None:
            ends += 1
        else:
            command = codec.decode(message.value() or b"")
            assert isinstance(command, SubmitJob)
            headers = {name: value for name, value in dict(message.headers() or []).items() if isinstance(value, bytes)}
            found.append((command, message.partition() or 0, headers))
    consumer.close()
    return found


def test_a_submitted_command_is_in_the_log_complete_and_on_its_partition(
    client: Client, kafka: str, topology: Topology
) -> None:
    # when
    handle = client.submit("send", {"to": "bob"}, job_id="a/b", delay=5, reason="because")

    # then
    ((command, partition, headers),) = read_commands(kafka, topology)
    assert command.spec.job_id == handle.job_id == "a/b"
    assert command.spec.payload == b'{"to":"bob"}'
    assert command.spec.delay_ms == 5000
    assert command.actor == "ada@host"
    assert command.reason == "because"
    assert abs(command.requested_at_ms / 1000 - datetime.now(UTC).timestamp()) < 60
    assert partition == partition_for(b"a/b", topology.partitions)
    assert headers["ce_id"].decode() == command.command_id
    assert headers["ce_type"] == b"mainspring.SubmitJob"
    assert headers["ce_source"] == b"/ada@host"


def test_many_jobs_are_in_the_log_when_submit_many_returns(client: Client, kafka: str, topology: Topology) -> None:
    # given
    own = JobOptions(job_id="own", queue="other")
    jobs = [Submission("send", {"n": n}) for n in range(2000)]

    # when
    handles = client.submit_many([*jobs, Submission("send", options=own)], queue="q", tags=("bulk",))

    # then
    commands = {command.spec.job_id: command for command, *_ in read_commands(kafka, topology)}
    assert len(commands) == 2001
    assert [commands[handle.job_id].spec.payload for handle in handles[:3]] == [b'{"n":0}', b'{"n":1}', b'{"n":2}']
    assert {command.spec.queue for command in commands.values()} == {"q", "other"}
    assert commands["own"].spec.tags == ("bulk",)
    assert len({command.command_id for command in commands.values()}) == 2001


def test_of_many_jobs_none_is_sent_when_one_is_invalid(client: Client, kafka: str, topology: Topology) -> None:
    # when
    with pytest.raises(InvalidJobError) as caught:
        client.submit_many([Submission("send"), Submission("send", options=JobOptions(job_id="bad\x00id"))])

    # then
    assert caught.value.field == "job_id"
    assert read_commands(kafka, topology) == []


def test_threads_may_share_a_client(client: Client, kafka: str, topology: Topology) -> None:
    # given
    ids: list[str] = []

    def submit_some() -> None:
        ids.extend(client.submit("send").job_id for _ in range(50))

    threads = [threading.Thread(target=submit_some) for _ in range(8)]

    # when
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    # then
    assert len(ids) == 400
    assert {command.spec.job_id for command, *_ in read_commands(kafka, topology)} == set(ids)


@pytest.mark.parametrize(
    "payload",
    ["a" * 1_048_576, "é" * 300_000, "😀" * 150_000, base64.b64encode(os.urandom(786_432)).decode()],
    ids=["ascii", "two bytes", "four bytes", "base64"],
)
def test_a_payload_over_the_limit_is_refused_by_its_encoded_size(unreachable: Client, payload: str) -> None:
    # when
    with pytest.raises(InvalidJobError) as caught:
        unreachable.submit("send", {"text": payload})

    # then
    assert caught.value.code == "PAYLOAD_TOO_LARGE"
    assert caught.value.field == "payload"


def test_a_payload_at_the_limit_is_sent_after_one_that_was_over_it(
    client: Client, kafka: str, topology: Topology
) -> None:
    # given
    most = PAYLOAD_MAX_BYTES - len('{"text":""}')

    # when
    with pytest.raises(InvalidJobError):
        client.submit("send", {"text": "a" * (most + 1)})
    client.submit("send", {"text": "a" * most})

    # then
    ((command, *_),) = read_commands(kafka, topology)
    assert len(command.spec.payload) == PAYLOAD_MAX_BYTES


def test_a_nul_is_refused_in_an_id_and_carried_in_a_payload(client: Client, kafka: str, topology: Topology) -> None:
    # when
    with pytest.raises(InvalidJobError) as caught:
        client.submit("send", job_id="j\x00b")
    client.submit("send", {"a": "x\x00y"})

    # then
    assert caught.value.field == "job_id"
    ((command, *_),) = read_commands(kafka, topology)
    assert command.spec.payload == b'{"a":"x\\u0000y"}'


def test_a_delay_beyond_32_bits_of_milliseconds_arrives_unchanged(
    client: Client, kafka: str, topology: Topology
) -> None:
    # given
    delays_ms = [2_147_483_647, 2_147_483_648, 4_294_967_296]

    # when
    for delay_ms in delays_ms:
        client.submit("send", delay=timedelta(milliseconds=delay_ms))

    # then
    assert sorted(command.spec.delay_ms or 0 for command, *_ in read_commands(kafka, topology)) == delays_ms


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        ({"delay": -1}, "delay_ms"),
        ({"delay": float("nan")}, "delay"),
        ({"delay": float("inf")}, "delay"),
        ({"run_at": datetime(2030, 1, 1)}, "run_at"),  # noqa: DTZ001 - naive on purpose
        ({"delay": 1, "run_at": datetime(2030, 1, 1, tzinfo=UTC)}, "delay_ms"),
        ({"timeout": 0}, "timeout_ms"),
        ({"job_id": ""}, "job_id"),
        ({"job_id": "x" * 256}, "job_id"),
        ({"job_id": "\ud800"}, "job_id"),
        ({"depends_on": ("a",)}, "depends_on"),
        ({"reason": "r" * 2000}, "reason"),
    ],
    ids=str,
)
def test_what_the_scheduler_would_refuse_is_refused_before_it_is_sent(
    unreachable: Client, terms: dict[str, object], field: str
) -> None:
    # when: a client that reaches nobody would fail with another error if it tried to send
    with pytest.raises(InvalidJobError) as caught:
        unreachable.submit("send", **terms)  # type: ignore[arg-type] # wrong on purpose

    # then
    assert caught.value.field == field


def test_an_id_of_any_printable_kind_is_the_key_byte_for_byte(client: Client, kafka: str, topology: Topology) -> None:
    # given: separators, an escape, one letter in two normal forms, a digit of another script, the longest, two cases
    ids = ["a:b", "a/b", "a b", "..", "%2F", "\u00e9", "e\u0301", "\u0661", "x" * 255, "A", "a"]

    # when
    for job_id in ids:
        client.submit("send", job_id=job_id)

    # then
    found = {command.spec.job_id: partition for command, partition, _ in read_commands(kafka, topology)}
    assert found == {job_id: partition_for(job_id.encode(), topology.partitions) for job_id in ids}


def test_a_broker_that_cannot_be_reached_is_named_with_what_to_do_next(unreachable: Client) -> None:
    # when
    with pytest.raises(NotDeliveredError) as caught:
        unreachable.submit("send", job_id="lost")

    # then
    assert caught.value.job_ids == ("lost",)
    assert "if_exists='return'" in str(caught.value)


def test_many_jobs_that_cannot_be_delivered_are_all_named(unreachable: Client) -> None:
    # given
    jobs = [Submission("send", options=JobOptions(job_id=f"lost-{n}")) for n in range(10)]

    # when
    with pytest.raises(NotDeliveredError) as caught:
        unreachable.submit_many(jobs)

    # then
    assert sorted(caught.value.job_ids) == [f"lost-{n}" for n in range(10)]


def test_a_wish_for_known_ids_that_nobody_knows_is_refused_before_anything_is_sent(client: Client) -> None:
    with pytest.raises(InvalidJobError, match="if_exists must be 'raise' or 'return', not 'retrun'"):
        client.submit("ok", if_exists="retrun")  # type: ignore[arg-type]  # what is tested
    with pytest.raises(InvalidJobError, match="if_exists"):
        client.submit_many([Submission("ok")], if_exists="")  # type: ignore[arg-type]  # what is tested
