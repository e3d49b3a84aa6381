"""Reads records of other schema versions by Avro's resolution: new fields are skipped, missing ones get defaults."""

import io
from typing import Any

import fastavro

from mainspring.schemas.avro_types import AvroType, inlined
from mainspring.schemas.compiled import Decode
from mainspring.schemas.records import class_of
from mainspring.schemas.varint import MalformedError

__all__ = ["resolving_decoder"]


class _Strict(io.BytesIO):
    """Raises where bytes are missing: the library takes what there is when it skips a field."""

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        if size is None or len(data) != size:
            raise EOFError(f"{size} bytes are needed, {len(data)} are left")
        return data


def resolving_decoder(writer: dict[str, Any], reader: dict[str, Any]) -> Decode:
    """A decoder of bytes written with `writer` into the record class of `reader`."""
    parsed_writer, parsed_reader = fastavro.parse_schema(writer), fastavro.parse_schema(reader)
    shape = inlined(reader)

    def decode(data: bytes, index: int) -> Any:
        stream = _Strict(data)
        stream.seek(index)
        try:
            values = fastavro.schemaless_reader(
                stream, parsed_writer, parsed_reader, return_record_name=True, return_record_name_override=True
            )
        # The library raises a dozen unrelated classes for broken bytes, and every one of them means the same here.
        except Exception as error:
            raise MalformedError(f"{type(error).__name__}: {error}") from error
        if stream.tell() != len(data):
            raise MalformedError("bytes are left over")
        return _to_record(shape, values)

    return decode


def _to_branch(kinds: list[Any], value: Any) -> Any:
    if kinds[0] == "null":
        return None if value is None else _to_record(kinds[1], value)
    # The library names the branch where there is more than one record to choose from.
    name, fields = value
    return next(_to_record(kind, fields) for kind in kinds if name.rpartition(".")[2] == kind["name"])


def _to_record(kind: AvroType, value: Any) -> Any:
    """Plain values, as Avro libraries give them, to the classes of the language."""
    if isinstance(kind, list):
        return _to_branch(kind, value)
    if isinstance(kind, str):
        # A default of bytes is text in the schema, and the library leaves it so.
        return value.encode("latin-1") if kind == "bytes" and isinstance(value, str) else value
    if kind["type"] == "array":
        return tuple(_to_record(kind["items"], item) for item in value)
    if kind["type"] == "enum":
        return class_of(kind["name"])[value]
    fields = {field["name"]: _to_record(field["type"], value[field["name"]]) for field in kind["fields"]}
    return class_of(kind["name"])(**fields)
