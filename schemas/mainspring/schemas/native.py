"""The codec in C, where a compiler was at hand when Mainspring was installed: the same bytes at a tenth of the time.

Its sources are in `schemas/native`; they are built with the package, or left out without a word where that fails. It
does what the generated text of `mainspring.schemas.compiled` does, value by value and error by error, which the tests
hold both to. It knows the slots of each class and reads and fills them where they lie.
"""

from typing import Any

from mainspring.schemas.avro_types import AvroType, inlined
from mainspring.schemas.job import RemembersBytes
from mainspring.schemas.records import ENUMS, class_of
from mainspring.schemas.varint import MalformedError

try:
    from mainspring.schemas._native import RecordCodec
except ImportError:
    IS_BUILT = False
else:
    IS_BUILT = True

__all__ = ["IS_BUILT", "native_codec"]


def native_codec(schema: dict[str, Any]) -> "RecordCodec":
    """The codec of a record schema. Only where `IS_BUILT`."""
    return RecordCodec(_record(inlined(schema)), MalformedError)


def _record(schema: dict[str, Any]) -> tuple[Any, ...]:
    kind = class_of(schema["name"])
    fields = tuple((field["name"], _shape(field["type"])) for field in schema["fields"])
    return "record", kind, fields, issubclass(kind, RemembersBytes)


def _shape(kind: AvroType) -> str | tuple[Any, ...]:
    """A type as the extension takes it: a name, or a name and what belongs to it (`shape.c`)."""
    if isinstance(kind, str):
        return kind
    if isinstance(kind, list):
        null, *others = kind
        return ("optional", *map(_shape, others)) if null == "null" else ("choice", *map(_shape, kind))
    match kind["type"]:
        case "record":
            return _record(kind)
        case "array":
            return "array", _shape(kind["items"])
        case "enum":
            members = ENUMS[kind["name"]]
            return "enum", members, tuple((member.value, member) for member in members)
        case name:
            return str(name)
