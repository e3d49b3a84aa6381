"""Avro by a library that shares no code with ours: the oracle of the codec's tests."""

import io
from dataclasses import fields, is_dataclass
from enum import IntEnum
from typing import Any

import fastavro

from mainspring.schemas.avro_types import newest

__all__ = ["fastavro_body", "fastavro_read", "to_plain"]


def to_plain(value: Any) -> Any:
    """Records as the dicts and symbols that Avro libraries take."""
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, IntEnum):
        return value.name
    return [to_plain(item) for item in value] if isinstance(value, tuple) else value


def fastavro_body(record: Any) -> bytes:
    """The Avro body of a record, without a header."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(
        stream, fastavro.parse_schema(newest()[type(record).__name__].schema), to_plain(record), strict=True
    )
    return stream.getvalue()


def fastavro_read(name: str, body: bytes) -> Any:
    """What fastavro reads from a body, as plain values."""
    return fastavro.schemaless_reader(io.BytesIO(body), fastavro.parse_schema(newest()[name].schema), None)
