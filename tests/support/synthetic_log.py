"""Logs without a scheduler, in memory: to be read, folded, audited, and damaged one fault at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from mainspring.log.source import Raw, Span
from mainspring.schemas import Codec
from mainspring.topics import Topic, Topology

START_MS = 1_800_000_000_000


class Sink(Protocol):
    """Where records go."""

    def append(self, topic: Topic, partition: int, key: bytes | None, value: bytes | None, time_ms: int) -> int: ...

    def begin(self) -> None: ...

    def commit(self) -> None: ...


class MemoryLog:
    """A log in memory with offsets as Kafka gives them: a control record ends each transaction on each partition."""

    is_live = False

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.records: dict[tuple[str, int], list[Raw | None]] = {}
        self.starts: dict[tuple[str, int], int] = {}
        self._touched: set[tuple[str, int]] | None = None

    def append(self, topic: Topic, partition: int, key: bytes | None, value: bytes | None, time_ms: int) -> int:
        records = self.records.setdefault((topic.name, partition), [])
        records.append(Raw(len(records), time_ms, key, value))
        if self._touched is not None:
            self._touched.add((topic.name, partition))
        return len(records) - 1

    def begin(self) -> None:
        self._touched = set()

    def commit(self) -> None:
        for place in self._touched or ():
            self.records[place].append(None)
        self._touched = None

    def spans(self, topics: Sequence[Topic]) -> dict[tuple[str, int], Span]:
        return {
            (topic.name, p): Span(
                start=self.starts.get((topic.name, p), 0), end=len(self.records.get((topic.name, p), ()))
            )
            for topic in topics
            for p in range(topic.partitions)
        }

    def read(self, topic: Topic, partition: int, span: Span) -> Iterator[Sequence[Raw]]:
        records = self.records.get((topic.name, partition), [])[span.start : span.end]
        batch = [raw for raw in records if raw is not None]
        if batch:
            yield batch

    def at_time(self, topic: Topic, time_ms: int) -> dict[int, int | None]:
        return {}

    def edit(self, codec: Codec, topic: Topic, partition: int, offset: int, **changes: Any) -> None:
        """Changes fields of one record where it stands."""
        raw = self.records[topic.name, partition][offset]
        assert raw is not None
        assert raw.value is not None
        record = replace(codec.decode(raw.value), **changes)
        self.records[topic.name, partition][offset] = raw._replace(value=codec.encode(record))

    def patch(self, topic: Topic, partition: int, offset: int, **changes: Any) -> None:
        """Changes key or value of one record where it stands."""
        raw = self.records[topic.name, partition][offset]
        assert raw is not None
        self.records[topic.name, partition][offset] = raw._replace(**changes)

    def drop(self, topic: Topic, partition: int, offset: int) -> None:
        """Makes one record invisible, as if it had been aborted."""
        self.records[topic.name, partition][offset] = None

    def find(self, codec: Codec, topic: Topic, kind: type[Any], nth: int = 0, **wanted: Any) -> tuple[int, int]:
        """Partition and offset of the nth record of a type with these field values."""
        found = [
            (partition, raw.offset)
            for (name, partition), records in sorted(self.records.items())
            if name == topic.name
            for raw in records
            if raw is not None and raw.value is not None and raw.value[:1] == b"\0"
            for record in [codec.decode(raw.value)]
            if type(record) is kind and all(getattr(record, field) == value for field, value in wanted.items())
        ]
        return found[nth]
