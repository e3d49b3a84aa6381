"""The difference between what an installation needs and what a cluster has, without a cluster."""

from dataclasses import replace

import pytest

from mainspring.topics import Topology
from mainspring.topics.plan import ChangeConfig, CreateTopic, GrowTopic, Present, compare
from mainspring.topics.topic import Topic

TOPOLOGY = Topology(replication=3, min_isr=2)


def present(topic: Topic) -> Present:
    """A topic as a cluster has it after it was made: with more settings than were asked for."""
    return Present(
        partitions=topic.partitions, replication=topic.replication, config={**topic.config, "preallocate": "false"}
    )


EVERYTHING = {topic.name: present(topic) for topic in TOPOLOGY.all()}
WORK = TOPOLOGY.all()[4]


def test_an_empty_cluster_needs_every_topic() -> None:
    plan = compare(TOPOLOGY, {})

    assert [step.topic for step in plan.steps if isinstance(step, CreateTopic)] == list(TOPOLOGY.all())
    assert not plan.is_empty


def test_a_cluster_that_has_everything_needs_nothing_and_topics_of_others_do_not_matter() -> None:
    others = {"other.commands": Present(partitions=1, replication=1, config={})}

    plan = compare(TOPOLOGY, EVERYTHING | others)

    assert plan.is_empty
    assert str(plan) == "nothing to do"


def test_a_setting_that_differs_is_changed_back_and_others_are_left_alone() -> None:
    events = EVERYTHING[TOPOLOGY.events.name]
    there = replace(events, config={**events.config, "retention.ms": "1000", "preallocate": "true"})

    plan = compare(TOPOLOGY, EVERYTHING | {TOPOLOGY.events.name: there})

    assert plan.steps == (ChangeConfig(topic=TOPOLOGY.events, changes={"retention.ms": ("1000", "-1")}),)
    assert str(plan) == "change mainspring.events: retention.ms 1000 → -1"


@pytest.mark.parametrize("partitions", [11, 13])
@pytest.mark.parametrize("topic", [topic for topic in TOPOLOGY.all() if not topic.growable and topic.partitions > 1])
def test_another_partition_count_of_a_topic_with_keys_is_a_mismatch_in_both_directions(
    topic: Topic, partitions: int
) -> None:
    plan = compare(TOPOLOGY, EVERYTHING | {topic.name: replace(present(topic), partitions=partitions)})

    assert plan.steps == ()
    assert f"{topic.name} has {partitions} partitions and should have 12" in plan.mismatches[0].message
    assert "topics.partitions" in str(plan)


def test_work_topics_may_grow_but_not_shrink() -> None:
    fewer = compare(TOPOLOGY, EVERYTHING | {WORK.name: replace(present(WORK), partitions=3)})
    more = compare(TOPOLOGY, EVERYTHING | {WORK.name: replace(present(WORK), partitions=99)})

    assert fewer.steps == (GrowTopic(topic=WORK, present=3),)
    assert "partitions cannot be removed" in more.mismatches[0].message


def test_fewer_copies_than_wanted_are_a_mismatch_and_more_are_fine() -> None:
    fewer = compare(TOPOLOGY, EVERYTHING | {WORK.name: replace(present(WORK), replication=1)})
    more = compare(TOPOLOGY, EVERYTHING | {WORK.name: replace(present(WORK), replication=5)})

    assert "kafka-reassign-partitions" in fewer.mismatches[0].message
    assert more.is_empty
