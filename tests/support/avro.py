"""Avro by a library that shares no code with ours: the oracle of the codec's tests."""

import io
from dataclasses import fields, is_dataclass
from enum import IntEnum
from typing import Any

import fastavro

from mainspring.schemas.avro_types import AvroType, inlined, newest

__all__ = ["fastavro_body", "fastavro_read", "to_plain"]


def to_plain(value: Any) -> Any:
    """Records as the dicts and symbols that Avro libraries take."""
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, IntEnum):
        return value.name
    return [to_plain(item) for item in value] if isinstance(value, tuple) else value


def _to_datum(kind: AvroType, value: Any) -> Any:
    """Plain values in which a member of a union of records says which one it is, as fastavro takes it."""
    if isinstance(kind, list):
        if kind[0] == "null":
            return None if value is None else _to_datum(kind[1], value)
        mine = next(each for each in kind if each["name"] == type(value).__name__)
        return f"mainspring.{mine['name']}", _to_datum(mine, value)
    if isinstance(kind, dict) and kind["type"] == "array":
        return [_to_datum(kind["items"], item) for item in value]
    if isinstance(kind, dict) and kind["type"] == "record":
        return {field["name"]: _to_datum(field["type"], getattr(value, field["name"])) for field in kind["fields"]}
    return to_plain(value)


def fastavro_body(record: Any) -> bytes:
    """The Avro body of a record, without a header."""
    stream = io.BytesIO()
    schema = newest()[type(record).__name__].schema
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), _to_datum(inlined(schema), record), strict=True)
    return stream.getvalue()


def fastavro_read(name: str, body: bytes) -> Any:
    """What fastavro reads from a body, as plain values."""
    return fastavro.schemaless_reader(io.BytesIO(body), fastavro.parse_schema(newest()[name].schema), None)
