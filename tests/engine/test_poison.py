"""Records that cannot be read or applied: put aside, and the partition moves on."""

import struct
from typing import Any

import pytest
from confluent_kafka import Producer

from mainspring.processors.core import PartitionCore
from mainspring.processors.engine.errors import FaultKind
from mainspring.schemas import (
    AttemptSucceeded,
    CancelJob,
    CommandRejected,
    DeadLetter,
    ForwardedCommand,
    JobCompleted,
    JobFailed,
    JobStarted,
    JobSubmitted,
    StartConfirmed,
)
from mainspring.topics import Topic, partition_for
from mainspring.topics.topology import INTERNAL_MAX_BYTES
from tests.engine.fake_worker import FakeWorker
from tests.engine.faults import Faults, FaultyOutput, failing, faulty
from tests.engine.support import CODEC, Installation, installation, submit

pytestmark = pytest.mark.broker

UNKNOWN_SCHEMA = b"\x00" + struct.pack(">i", 2_000_000_000) + b"\x02"


def letters(here: Installation) -> list[DeadLetter]:
    return here.records(here.topology.dead_letters)


@pytest.mark.parametrize("name", ["commands", "followups", "attempts"])
def test_poison_in_an_input_topic_goes_to_dead_letters_with_its_bytes_and_the_partition_moves_on(
    kafka: str, prefix: str, name: str
) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        here.engine()
        here.helpers.append(FakeWorker(here.connection, here.topology))
        topic: Topic = getattr(here.topology, name)
        out_of_place = CODEC.encode(StartConfirmed(worker_id="w", incarnation="w-1", confirmed_at_ms=0, starts=()))
        poison = [b"", b"not Avro at all", UNKNOWN_SCHEMA, CODEC.encode(submit("cut"))[:-5], out_of_place, None]

        here.submit(["before"])
        for value in poison:
            here.produce(topic, b"poison", value)
        here.submit(["after"])
        here.until(lambda: len(here.events(JobCompleted)) == 2)

        found = letters(here)
        assert [letter.value for letter in found] == poison
        assert [letter.offset for letter in found] == list(range(found[0].offset, found[0].offset + len(poison)))
        assert {(letter.topic, letter.partition, letter.key) for letter in found} == {(topic.name, 0, b"poison")}
        cut = "UNDECODABLE" if name == "commands" else found[3].reason
        assert [letter.reason for letter in found] == [
            "UNDECODABLE",
            "UNDECODABLE",
            "UNKNOWN_TYPE",
            cut,
            "UNEXPECTED_TYPE",
            "UNDECODABLE",
        ]
        assert all(letter.detail for letter in found)


@pytest.mark.parametrize("key", [None, b"", b"another", b"\xff\xfe"], ids=["none", "empty", "another", "not text"])
def test_a_command_whose_key_is_not_its_job_id_is_refused_where_its_verdict_is_looked_for(
    kafka: str, prefix: str, key: bytes | None
) -> None:
    with installation(kafka, prefix, partitions=3) as here:
        here.engine()
        for partition in range(3):
            here.produce(here.topology.commands, key, submit("job"), partition)
        here.flush()
        here.until(lambda: len(here.events(CommandRejected)) == 3)

        home = partition_for(b"job", 3)
        for message in here.messages(here.topology.events):
            event: Any = CODEC.decode(message.value())
            assert (message.partition(), event.job_id, event.reject_code) == (home, "job", "BAD_KEY")


def test_a_command_on_the_wrong_partition_is_forwarded_and_applied_once(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix, partitions=3) as here:
        here.engine()
        here.helpers.append(FakeWorker(here.connection, here.topology))
        home = partition_for(b"job", 3)

        here.produce(here.topology.commands, b"job", submit("job"), (home + 1) % 3)
        here.flush()
        here.until(lambda: here.events(JobCompleted))

        assert here.life("job") == ["JobSubmitted", "JobStarted", "JobCompleted"]
        (followup,) = here.messages(here.topology.followups)
        assert followup.partition() == home
        assert isinstance(CODEC.decode(followup.value()), ForwardedCommand)


def test_a_command_without_a_job_id_is_put_aside(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        here.engine()
        nameless = CancelJob(job_id="", command_id="c", actor="test", requested_at_ms=0)

        here.produce(here.topology.commands, b"", nameless)
        here.submit(["after"])
        here.until(lambda: here.events(JobSubmitted))

        assert [letter.reason for letter in letters(here)] == ["BAD_KEY"]


def test_a_forwarded_command_that_is_none_is_put_aside(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix, partitions=2) as here:
        here.engine()
        home = partition_for(b"job", 2)
        inner = [b"garbage", CODEC.encode(StartConfirmed(worker_id="w", incarnation="i", confirmed_at_ms=0, starts=()))]
        for value in [*inner, CODEC.encode(submit("job"))]:
            forwarded = ForwardedCommand(key="job", topic="commands", partition=0, offset=0, value=value)
            here.produce(here.topology.followups, b"job", forwarded, 1 - home)
        here.submit(["after"])
        here.until(lambda: here.events(JobSubmitted) and len(letters(here)) == 3)

        assert [letter.reason for letter in letters(here)] == ["UNDECODABLE", "UNEXPECTED_TYPE", "BAD_KEY"]


def test_a_record_that_makes_the_rules_fail_is_put_aside_and_its_job_closed(
    kafka: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = PartitionCore.apply

    def fail_on_poison(self: PartitionCore, record: Any, *arguments: Any) -> None:
        if isinstance(record, AttemptSucceeded) and record.job_id == "poison":
            raise ZeroDivisionError("a defect in the rules")
        apply(self, record, *arguments)

    monkeypatch.setattr(PartitionCore, "apply", fail_on_poison)
    with installation(kafka, prefix, partitions=1) as here:
        here.engine()
        here.helpers.append(FakeWorker(here.connection, here.topology))

        here.submit(["one", "poison", "two"])
        here.until(lambda: len(here.events(JobCompleted)) == 2 and here.events(JobFailed))

        (letter,) = letters(here)
        assert (letter.reason, letter.key) == ("UNPROCESSABLE", b"poison")
        assert "ZeroDivisionError: a defect in the rules" in letter.detail
        assert here.life("poison") == ["JobSubmitted", "JobStarted", "JobFailed"]
        assert {event.job_id for event in here.events(JobStarted)} == {"one", "two", "poison"}


def test_a_batch_that_cannot_be_written_is_halved_until_the_record_at_fault_is_found(kafka: str, prefix: str) -> None:
    jobs = [f"job-{number}" for number in range(37)]
    poison = jobs[17].encode()
    with installation(kafka, prefix, partitions=1) as here:
        faults = Faults()
        here.engine(kafka=faulty(here.connection, here.topology, faults), linger_ms=200, burst=1)
        events = here.topology.events.name

        def too_large(output: FaultyOutput) -> None:
            if (events, poison) in faults.produced:
                failing(FaultKind.RECORD, "MSG_SIZE_TOO_LARGE")(output)

        faults.before["flush"] = too_large
        here.ready()
        here.submit(jobs)
        here.until(lambda: len(here.events(JobSubmitted)) == len(jobs) - 1)

        (letter,) = letters(here)
        assert (letter.key, letter.offset, letter.reason) == (poison, 17, "UNPROCESSABLE")
        assert "MSG_SIZE_TOO_LARGE" in letter.detail
        assert [event.job_id for event in here.all_events()] == [job for job in jobs if job.encode() != poison]
        assert faults.calls.count("begin") < 20


def test_a_record_that_the_broker_refuses_is_found_although_the_client_does_not_say_which(
    kafka: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mainspring.processors.scheduler.program import SchedulerProgram

    encode_events = SchedulerProgram._events

    def misdirect(self: SchedulerProgram, outputs: Any, txn_id: int, send: Any) -> None:
        encode_events(self, outputs, txn_id, send)
        for _, output in outputs:
            if any(event.job_id == "poison" for event in output.events):
                send("no topic may be called so!", b"x", b"poison", -1)

    monkeypatch.setattr(SchedulerProgram, "_events", misdirect)
    with installation(kafka, prefix, partitions=1) as here:
        here.engine()
        here.submit(["one", "poison", "two"])
        here.until(lambda: {event.job_id for event in here.events(JobSubmitted)} == {"one", "two"})

        (letter,) = letters(here)
        assert (letter.key, letter.reason) == (b"poison", "UNPROCESSABLE")


def test_a_key_as_large_as_a_record_leaves_room_for_its_letter(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        here.engine()
        key = b"k" * (INTERNAL_MAX_BYTES - 2_000)
        own = {"message.max.bytes": 2 * INTERNAL_MAX_BYTES}
        producer = Producer(here.connection.producer_config(**own))
        producer.produce(here.topology.attempts.name, b"no Avro at all", key, 0)
        assert producer.flush() == 0
        here.submit(["after"])
        here.until(lambda: here.events(JobSubmitted) and letters(here))

        (letter,) = letters(here)
        assert letter.reason == "UNDECODABLE"
        assert letter.key is not None
        assert len(letter.key) < len(key)
        assert key.startswith(letter.key)
