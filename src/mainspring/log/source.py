"""Where a log is read from: a live cluster or an exported file, behind one narrow interface."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from mainspring.topics import Topic, Topology

__all__ = ["Header", "LogSource", "Place", "Raw", "Span", "capture"]

Header = tuple[str, bytes | None]


class Raw(NamedTuple):
    """One record as its bytes. `timestamp_ms` is −1 where the broker keeps none."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A range of offsets of one partition: `start` is the first that is still there, `end` the one after the last."""

    start: int
    end: int

    @property
    def offsets(self) -> int:
        """How many offsets lie in it; records are fewer where control records or aborted ones lie between."""
        return max(0, self.end - self.start)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """Where a record stands."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"


class LogSource(Protocol):
    """A log that can be read again and again."""

    @property
    def topology(self) -> Topology:
        """The topics of the installation whose log this is."""

    @property
    def is_live(self) -> bool:
        """Whether the log may grow between two calls of `spans`."""

    def spans(self, topics: Sequence[Topic]) -> dict[tuple[str, int], Span]:
        """What is there now, by topic name and partition, of all these topics at about the same moment."""

    def read(self, topic: Topic, partition: int, span: Span) -> Iterator[Sequence[Raw]]:
        """The records of the span in order, in batches; memory stays flat. Raises LogError."""

    def at_time(self, topic: Topic, time_ms: int) -> Mapping[int, int | None]:
        """By partition, the first offset whose record is not older than the time, None when there is none.

        A hint that spares reading: a source that cannot tell returns nothing.
        """


def capture(source: LogSource) -> dict[tuple[str, int], Span]:
    """What is there now of every topic that an audit reads, so that it fits together although the log may grow.

    Tables come first, so that the events that made them are there; inputs last, so that the events' causes are.
    """
    topology = source.topology
    spans: dict[tuple[str, int], Span] = {}
    for topics in (
        [topology.dead_letters, topology.scheduler_changelog],
        [topology.events],
        [topology.attempts, topology.followups, topology.commands],
    ):
        spans |= source.spans(topics)
    return spans
