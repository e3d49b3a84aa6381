"""One record of the log, decoded where it can be."""

from dataclasses import dataclass
from typing import Any

from mainspring.log.source import Header, Place, Raw
from mainspring.processors.projector.eventdata import jsonable
from mainspring.schemas import Codec, UnreadableRecordError
from mainspring.schemas.records import Record

__all__ = ["LogRecord", "decoded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """A record and its place. `record` is None for a deleted row, and for what does not decode: `error` says why."""

    place: Place
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    record: Record | None
    error: str | None
    headers: tuple[Header, ...] = ()

    @property
    def type(self) -> str:
        """Name of the record type; empty when it is unknown."""
        return "" if self.record is None else type(self.record).__name__

    def to_json(self) -> dict[str, Any]:
        """Place, time, key, type and fields as JSON has them; bytes in base64."""
        return {
            "topic": self.place.topic,
            "partition": self.place.partition,
            "offset": self.place.offset,
            "timestamp_ms": self.timestamp_ms,
            "key": None if self.key is None else self.key.decode("utf-8", "backslashreplace"),
            "type": self.type or None,
            "record": None if self.record is None else jsonable(self.record),
            "error": self.error,
        }


def decoded(codec: Codec, topic: str, partition: int, raw: Raw) -> LogRecord:
    """The record, decoded if it can be."""
    record: Record | None = None
    error: str | None = None
    if raw.value is not None:
        try:
            record = codec.decode(raw.value)
        except UnreadableRecordError as unreadable:
            error = str(unreadable)
    return LogRecord(
        place=Place(topic=topic, partition=partition, offset=raw.offset),
        timestamp_ms=raw.timestamp_ms,
        key=raw.key,
        value=raw.value,
        record=record,
        error=error,
        headers=raw.headers,
    )
