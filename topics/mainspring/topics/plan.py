"""The difference between the topics that an installation needs and those that a cluster has, as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mainspring.topics.topic import Topic
from mainspring.topics.topology import Topology

__all__ = ["ChangeConfig", "CreateTopic", "GrowTopic", "Mismatch", "Plan", "Present", "Step", "compare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """A topic as the cluster has it."""

    partitions: int
    replication: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic:
    """A topic is missing."""

    topic: Topic

    def __str__(self) -> str:
        partitions = _some(self.topic.partitions, "partition", "partitions")
        return f"create {self.topic}: {partitions}, {_some(self.topic.replication, 'copy', 'copies')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeConfig:
    """Settings of a topic differ. `changes` has the value there is and the value there shall be, by name."""

    topic: Topic
    changes: Mapping[str, tuple[str | None, str]]

    def __str__(self) -> str:
        changes = ", ".join(f"{name} {there} → {wanted}" for name, (there, wanted) in self.changes.items())
        return f"change {self.topic}: {changes}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowTopic:
    """A topic that may grow has fewer partitions than wanted."""

    topic: Topic
    present: int

    def __str__(self) -> str:
        return f"grow {self.topic}: {self.present} → {self.topic.partitions} partitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """A topic differs in what cannot be changed in place."""

    topic: Topic
    message: str

    def __str__(self) -> str:
        return self.message


Step: TypeAlias = CreateTopic | ChangeConfig | GrowTopic


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What has to be done, in order, and what stands in the way. Nothing is ever deleted."""

    steps: tuple[Step, ...] = ()
    mismatches: tuple[Mismatch, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the cluster is as it should be."""
        return not self.steps and not self.mismatches

    def __str__(self) -> str:
        lines = [f"problem: {mismatch}" for mismatch in self.mismatches] + [str(step) for step in self.steps]
        return "\n".join(lines) if lines else "nothing to do"


def compare(topology: Topology, present: Mapping[str, Present]) -> Plan:
    """The plan that turns what is `present` (by topic name) into the topology. Topics of others do not matter."""
    steps: list[Step] = []
    mismatches: list[Mismatch] = []
    for topic in topology.all():
        there = present.get(topic.name)
        if there is None:
            steps.append(CreateTopic(topic=topic))
            continue
        problem = _partitions_problem(topic, there) or _replication_problem(topic, there)
        if problem is not None:
            mismatches.append(Mismatch(topic=topic, message=problem))
            continue
        if there.partitions < topic.partitions:
            steps.append(GrowTopic(topic=topic, present=there.partitions))
        changes = {
            name: (there.config.get(name), wanted)
            for name, wanted in topic.config.items()
            if there.config.get(name) != wanted
        }
        if changes:
            steps.append(ChangeConfig(topic=topic, changes=changes))
    return Plan(steps=tuple(steps), mismatches=tuple(mismatches))


def _some(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _partitions_problem(topic: Topic, there: Present) -> str | None:
    if there.partitions == topic.partitions or (topic.growable and there.partitions < topic.partitions):
        return None
    setting = "topics.work_partitions" if topic.growable else "topics.partitions"
    why = "partitions cannot be removed" if topic.growable else "keys would move to other partitions than their history"
    return (
        f"{topic} has {there.partitions} partitions and should have {topic.partitions}, which cannot be changed "
        f"({why}). Set {setting} to the count that is there, or use another topics.prefix"
    )


def _replication_problem(topic: Topic, there: Present) -> str | None:
    if there.replication >= topic.replication:
        return None
    return (
        f"{topic} has {there.replication} copies and should have {topic.replication}. "
        "Add copies with Kafka's own kafka-reassign-partitions, or lower topics.replication"
    )
