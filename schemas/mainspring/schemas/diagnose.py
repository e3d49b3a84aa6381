"""Says which field of a record does not fit its schema, after an encoder has failed. Slow and thorough."""

from typing import Any

from mainspring.schemas.avro_types import AvroType
from mainspring.schemas.records import class_of

__all__ = ["find_misfit"]

_QUOTED_CHARS = 60
_BITS = {"int": 31, "long": 63}
_CLASSES: dict[str, type[Any]] = {
    "int": int,
    "long": int,
    "boolean": bool,
    "double": float,
    "bytes": bytes,
    "string": str,
}


def find_misfit(kind: AvroType, value: object, path: str) -> tuple[str, str] | None:
    """The path to the first value that does not fit and what was expected there; None if all fit."""
    if isinstance(kind, list):
        return _misfit_of_union(kind, value, path)
    if isinstance(kind, str):
        return _misfit_of_primitive(kind, value, path)
    if kind["type"] == "array":
        return _misfit_of_array(kind["items"], value, path)
    expected = class_of(kind["name"])
    if not isinstance(value, expected):
        return path, f"expected {expected.__name__}, got {_describe(value)}"
    if kind["type"] == "record":
        for field in kind["fields"]:
            found = find_misfit(field["type"], getattr(value, field["name"]), f"{path}.{field['name']}")
            if found is not None:
                return found
    return None


def _misfit_of_union(kinds: list[Any], value: object, path: str) -> tuple[str, str] | None:
    if kinds[0] == "null":
        return None if value is None else find_misfit(kinds[1], value, path)
    for kind in kinds:
        if type(value) is class_of(kind["name"]):
            return find_misfit(kind, value, path)
    return path, f"expected {' or '.join(kind['name'] for kind in kinds)}, got {_describe(value)}"


def _misfit_of_array(items: AvroType, value: object, path: str) -> tuple[str, str] | None:
    if type(value) is not tuple:
        return path, f"expected a tuple, got {_describe(value)}"
    for index, item in enumerate(value):
        found = find_misfit(items, item, f"{path}[{index}]")
        if found is not None:
            return found
    return None


def _misfit_of_primitive(kind: str, value: object, path: str) -> tuple[str, str] | None:
    expected = _CLASSES[kind]
    if type(value) is not expected and not (kind == "string" and isinstance(value, str)):
        return path, f"expected {expected.__name__}, got {_describe(value)}"
    if isinstance(value, int) and kind in _BITS and not -(1 << _BITS[kind]) <= value < 1 << _BITS[kind]:
        return path, f"{value} does not fit in {_BITS[kind] + 1} bits"
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            return path, f"character {error.start} is a lone surrogate, which UTF-8 cannot carry"
    return None


def _describe(value: object) -> str:
    text = repr(value)
    return f"{text if len(text) <= _QUOTED_CHARS else text[:_QUOTED_CHARS] + '…'} ({type(value).__name__})"
