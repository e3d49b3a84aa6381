"""Decoding during an audit: what does not decode, or does not belong, is a finding unless a dead letter tells of it."""

from typing import Any

from mainspring.log.source import Place, Raw
from mainspring.log.verify.findings import Check, Findings
from mainspring.schemas import Codec, UnreadableRecordError
from mainspring.schemas.records import Record
from mainspring.topics import Topic

__all__ = ["DeadPlaces", "Reader"]


class DeadPlaces:
    """Places that dead letters tell of, as hashes: a poison record that was put aside is no fault of the log."""

    def __init__(self) -> None:
        self._places: set[int] = set()

    def add(self, topic: str, partition: int, offset: int) -> None:
        """Notes a place."""
        self._places.add(hash((topic, partition, offset)))

    def __contains__(self, place: Place) -> bool:
        return bool(self._places) and hash((place.topic, place.partition, place.offset)) in self._places


class Reader:
    """Decodes the records of one partition."""

    def __init__(self, codec: Codec, topic: Topic, partition: int, findings: Findings, dead: DeadPlaces) -> None:
        self._decode = codec.decode
        self._topic = topic
        self._partition = partition
        self._kinds: frozenset[type[Any]] = frozenset(topic.values)
        self._findings = findings
        self._dead = dead

    def decode(self, raw: Raw) -> Record | None:
        """The record, None when it is none that belongs here."""
        if raw.value is None:
            self._report(raw, Check.UNREADABLE, "the record has no value")
            return None
        try:
            record = self._decode(raw.value)
        except UnreadableRecordError as error:
            self._report(raw, Check.UNREADABLE, str(error))
            return None
        if type(record) not in self._kinds:
            self._report(raw, Check.UNEXPECTED_TYPE, f"a {type(record).__name__} does not belong on {self._topic.name}")
            return None
        return record

    def place(self, offset: int) -> Place:
        """Where a record of this partition stands."""
        return Place(topic=self._topic.name, partition=self._partition, offset=offset)

    def _report(self, raw: Raw, check: Check, detail: str) -> None:
        place = self.place(raw.offset)
        if place not in self._dead:
            self._findings.add(check, detail, place=place)
