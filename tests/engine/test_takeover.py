"""Partitions that change hands in good order, and states of affairs that nobody may go on from."""

import time

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from structlog.testing import capture_logs

from mainspring.processors.engine.errors import BrokenPromiseError, OffsetOutOfRangeError
from mainspring.processors.engine.kafka import ConfluentKafka
from mainspring.schemas import JobCompleted, JobSubmitted
from tests.engine.fake_worker import FakeWorker
from tests.engine.faults import client_options
from tests.engine.support import Installation, installation, txns_are_whole

pytestmark = pytest.mark.broker


def set_committed(here: Installation, place: TopicPartition) -> None:
    asked = ConsumerGroupTopicPartitions(here.topology.group("scheduler"), [place])
    for answer in here.admin.alter_consumer_group_offsets([asked]).values():
        answer.result(10)


def test_two_schedulers_share_the_partitions_and_hand_them_over(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix, partitions=4) as here:
        here.helpers.append(FakeWorker(here.connection, here.topology))
        first = here.engine("a")
        here.submit([f"alone-{number}" for number in range(20)])
        here.until(lambda: len(here.events(JobCompleted)) == 20)

        second = here.engine("b")
        here.ready()
        assert len(first.status().ready) == len(second.status().ready) == 2
        here.submit([f"together-{number}" for number in range(20)])
        here.until(lambda: len(here.events(JobCompleted)) == 40)

        here.drop(first)
        here.ready()
        here.submit([f"left-{number}" for number in range(20)])
        here.until(lambda: len(here.events(JobCompleted)) == 60)

        events = here.all_events()
        assert len(events) == 180
        assert txns_are_whole(events)
        assert second.status().ready == (0, 1, 2, 3)


def test_a_new_owner_has_left_its_name_before_its_first_transaction(kafka: str, prefix: str) -> None:
    # Given an owner of both partitions that has decided something for each
    with installation(kafka, prefix) as here:
        first = here.engine("a")
        here.submit([f"job-{number}" for number in range(20)])
        here.until(lambda: len(here.events(JobSubmitted)) == 20)

        # When another one takes one of them over, and decides nothing
        second = here.engine("b")
        here.ready()

        # Then the name beside its offset is its own: should it die now, nobody would end the transactions of the first
        (kept,), (given,) = first.status().ready, second.status().ready
        assert _marks(here)[kept].metadata == here.topology.transactional_id("a")
        assert _marks(here)[given].metadata == here.topology.transactional_id("b")
        assert len(here.all_events()) == 20


def test_a_takeover_that_outlasts_the_poll_limit_of_the_group_keeps_its_partition(kafka: str, prefix: str) -> None:
    poll_limit_ms = 2_500
    with installation(kafka, prefix, partitions=1) as here:
        first = here.engine("first")
        here.submit(["one"])
        here.until(lambda: here.events(JobSubmitted))
        here.drop(first)
        # Given rows that cannot be read to their end: somebody's transaction is open in front of it
        options = {"transactional.id": f"{prefix}slow", "transaction.timeout.ms": 60_000}
        slow = Producer(here.connection.producer_config(**options))
        slow.init_transactions(10)
        slow.begin_transaction()
        slow.produce(here.topology.scheduler_changelog.name, b"never committed", b"Jghost", 0)
        slow.flush()

        # When the takeover lasts twice as long as a member may go without a poll
        with capture_logs() as lines:
            limits = client_options(here.topology, "heir", max_poll_interval_ms=poll_limit_ms)
            heir = here.engine("heir", kafka=lambda _: ConfluentKafka(here.connection, limits))
            here.until(lambda: heir.status().restoring == (0,))
            over_s = time.monotonic() + 2 * poll_limit_ms / 1_000
            here.until(lambda: time.monotonic() > over_s)
            assert heir.status().restoring == (0,)
            slow.abort_transaction(10)
            here.ready()

        # Then the group never gave up on it
        assert [line["event"] for line in lines if "evicted" in line["event"]] == []


def test_a_partition_that_comes_back_is_taken_over_again(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix) as here:
        here.helpers.append(FakeWorker(here.connection, here.topology))
        here.engine("a")
        here.ready()
        second = here.engine("b")
        here.ready()
        here.submit([f"one-{number}" for number in range(10)])
        here.until(lambda: len(here.events(JobCompleted)) == 10)
        here.drop(second)
        here.ready()
        here.submit([f"two-{number}" for number in range(10)])
        here.until(lambda: len(here.events(JobCompleted)) == 20)

        assert len(here.all_events()) == 60


def test_commands_that_came_before_the_first_scheduler_are_not_skipped(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix) as here:
        here.submit(["early"])

        here.engine()
        here.until(lambda: here.events(JobSubmitted))

        assert here.life("early") == ["JobSubmitted"]


def test_a_scheduler_that_dies_before_its_first_transaction_leaves_a_first_start_behind(
    kafka: str, prefix: str
) -> None:
    with installation(kafka, prefix) as here:
        first = here.engine("a")
        here.ready()
        here.drop(first)
        here.submit(["later"])

        here.engine("b")
        here.until(lambda: here.events(JobSubmitted))


def test_a_committed_offset_that_was_changed_by_hand_stops_the_takeover_loudly(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        first = here.engine("a")
        here.submit(["one", "two"])
        here.until(lambda: len(here.events(JobSubmitted)) == 2)
        here.drop(first)
        set_committed(here, TopicPartition(here.topology.commands.name, 0, 1))

        here.engine("b")
        with pytest.raises(BrokenPromiseError, match="has committed offset 1, the changelog says 2"):
            here.until(lambda: False)


def test_offsets_that_have_expired_are_taken_from_the_position_row(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        first = here.engine("a")
        here.submit(["one", "two"])
        here.until(lambda: len(here.events(JobSubmitted)) == 2)
        here.drop(first)
        group = here.topology.group("scheduler")
        here.until(lambda: _is_empty(here, group))
        here.admin.delete_consumer_groups([group])[group].result(10)
        here.submit(["three"])

        here.engine("b")
        here.until(lambda: len(here.events(JobSubmitted)) == 3)

        assert [event.job_id for event in here.all_events()] == ["one", "two", "three"]


def test_a_changelog_that_was_deleted_stops_the_takeover_loudly(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        first = here.engine("a")
        here.submit(["one"])
        here.until(lambda: here.events(JobSubmitted))
        here.drop(first)
        name = here.topology.scheduler_changelog.name
        here.make_again(name)

        here.engine("b")
        with pytest.raises(BrokenPromiseError, match="changelog is empty"):
            here.until(lambda: False)


def test_commands_that_were_deleted_unread_stop_the_scheduler_loudly(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        first = here.engine("a")
        here.submit(["one"])
        here.until(lambda: here.events(JobSubmitted))
        here.drop(first)
        here.submit(["two", "three"])
        place = TopicPartition(here.topology.commands.name, 0, 2)
        for answer in here.admin.delete_records([place]).values():
            answer.result(10)

        here.engine("b")
        with pytest.raises(OffsetOutOfRangeError, match="deleted before they were processed"):
            here.until(lambda: False)


def test_the_committed_offsets_carry_the_name_of_the_owner(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        here.engine("a")
        here.submit(["one"])
        here.until(lambda: here.events(JobSubmitted))

        inputs = (here.topology.commands, here.topology.followups, here.topology.attempts)
        committed = _committed(here, [TopicPartition(topic.name, 0) for topic in inputs])

        assert [(place.offset, place.metadata) for place in committed] == [
            (1, f"{prefix}scheduler.a"),
            (0, f"{prefix}scheduler.a"),
            (0, f"{prefix}scheduler.a"),
        ]


def _committed(here: Installation, places: list[TopicPartition]) -> list[TopicPartition]:
    own = {"bootstrap.servers": here.connection.bootstrap, "group.id": here.topology.group("scheduler")}
    reader = Consumer(own)
    try:
        return reader.committed(places, timeout=10)
    finally:
        reader.close()


def _marks(here: Installation) -> dict[int, TopicPartition]:
    topic = here.topology.commands
    found = _committed(here, [TopicPartition(topic.name, number) for number in range(topic.partitions)])
    return {place.partition: place for place in found}


def _is_empty(here: Installation, group: str) -> bool:
    return not here.admin.describe_consumer_groups([group])[group].result(10).members
