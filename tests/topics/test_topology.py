"""What the topics are, and what a topology refuses to be."""

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.schemas import DeadLetter, Priority, Record
from mainspring.schemas.bounds import PREFIX_MAX_CHARS, QUEUE_MAX_CHARS
from mainspring.topics import INTERNAL_MAX_BYTES, RESERVED_ROLES, Role, Topology, TopologyError, UnknownQueueError

TOPOLOGY = Topology(queues=("default", "mail"))
KAFKA_TOPIC_MAX_CHARS = 249


def test_every_topic_has_a_name_of_its_own_under_the_prefix() -> None:
    names = [topic.name for topic in TOPOLOGY.all()]

    assert len(set(names)) == len(names)
    assert all(topic.name == f"mainspring.{topic.role}" for topic in TOPOLOGY.all())


def test_every_record_of_the_language_has_a_topic() -> None:
    carried = {kind for topic in TOPOLOGY.all() for kind in topic.values}

    assert carried == set(get_args(Record))


def test_the_topics_that_the_scheduler_owns_together_have_one_count() -> None:
    together = {topic.role: topic.partitions for topic in replace(TOPOLOGY, partitions=7).all() if topic.copartitioned}

    assert together == dict.fromkeys(("commands", "followups", "attempts", "events", "scheduler-changelog"), 7)


def test_only_the_scheduler_writes_events_and_only_it_decides() -> None:
    assert TOPOLOGY.events.writers == {Role.SCHEDULER}
    written_by_workers = {topic.role for topic in TOPOLOGY.all() if Role.WORKER in topic.writers}
    assert written_by_workers == {"attempts", "logs", "dead-letters"}
    assert {topic.role for topic in TOPOLOGY.all() if Role.CLIENT in topic.writers} == {"commands"}
    assert {topic.role for topic in TOPOLOGY.all() if Role.OBSERVER in topic.writers} == set()


def test_events_are_kept_for_ever_unless_told_otherwise() -> None:
    assert TOPOLOGY.events.config["retention.ms"] == "-1"
    assert replace(TOPOLOGY, events_retention_ms=1000).events.config["retention.ms"] == "1000"


def test_whatever_fits_into_commands_fits_twice_into_every_other_topic() -> None:
    sizes = {topic.role: int(topic.config["max.message.bytes"]) for topic in TOPOLOGY.all()}

    assert sizes.pop("commands") * 2 == INTERNAL_MAX_BYTES
    assert set(sizes.values()) == {INTERNAL_MAX_BYTES}


def test_only_the_changelog_is_compacted() -> None:
    compacted = {topic.role for topic in TOPOLOGY.all() if topic.config["cleanup.policy"] != "delete"}

    assert compacted == {"scheduler-changelog"}


def test_each_queue_has_four_lanes_most_urgent_first() -> None:
    lanes = [topic.role for topic in TOPOLOGY.all() if topic.role.startswith("work.mail.")]

    assert lanes == ["work.mail.critical", "work.mail.high", "work.mail.medium", "work.mail.low"]
    assert TOPOLOGY.work("mail", Priority.LOW).name == "mainspring.work.mail.low"


def test_a_queue_that_is_not_declared_is_refused_with_those_that_are() -> None:
    with pytest.raises(UnknownQueueError, match="default, mail"):
        TOPOLOGY.work("post", Priority.LOW)


def test_reserved_topics_are_not_made() -> None:
    assert not {topic.role for topic in TOPOLOGY.all()} & set(RESERVED_ROLES)


def test_groups_and_transactional_ids_follow_the_prefix() -> None:
    other = Topology(prefix="billing.")

    assert other.group("worker") == "billing.worker"
    assert other.transactional_id("host-0") == "billing.scheduler.host-0"


@given(queue=st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9_-]{0,126}[A-Za-z0-9])?", fullmatch=True))
def test_every_allowed_queue_and_prefix_make_topic_names_that_kafka_takes(queue: str) -> None:
    topology = Topology(prefix="p" * PREFIX_MAX_CHARS, queues=(queue,))

    assert all(len(topic.name) <= KAFKA_TOPIC_MAX_CHARS for topic in topology.all())


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("prefix", "", "prefix"),
        ("prefix", "a/b", "prefix"),
        ("prefix", "ä.", "prefix"),
        ("prefix", "p" * (PREFIX_MAX_CHARS + 1), "prefix"),
        ("queues", (), "at least one"),
        ("queues", ("a", "a"), "each once"),
        ("queues", ("a.b",), "queue must be"),
        ("queues", ("-a",), "queue must be"),
        ("queues", ("",), "queue must have"),
        ("queues", ("q" * (QUEUE_MAX_CHARS + 1),), "queue must have at most"),
        ("partitions", 0, "partitions must be at least 1"),
        ("work_partitions", 0, "work_partitions must be at least 1"),
        ("min_isr", 2, "no write could ever succeed"),
    ],
)
def test_a_topology_that_no_cluster_could_hold_is_refused(field: str, value: Any, says: str) -> None:
    with pytest.raises(TopologyError, match=says):
        replace(TOPOLOGY, **{field: value})


def test_subjects_are_topic_and_record_name() -> None:
    assert ("mainspring.dead-letters-mainspring.DeadLetter", DeadLetter) in TOPOLOGY.subjects()
    assert len(dict(TOPOLOGY.subjects())) == len(TOPOLOGY.subjects())
