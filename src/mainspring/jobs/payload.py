"""Values to bytes and back: arguments on their way in, results on their way out."""

import json
import math
from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

from pydantic_core import PydanticSerializationError, from_json, to_jsonable_python

__all__ = ["JSON", "EncodingError", "JsonCodec", "PayloadCodec"]


class EncodingError(ValueError):
    """A value that cannot be written down. `field` is the path to it, `problem` what is wrong with it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field
        self.problem = problem


@runtime_checkable
class PayloadCodec(Protocol):
    """Turns plain trees (dicts with string keys, lists, strings, numbers, booleans, None) into bytes and back.

    Implement it to encrypt, compress or use another notation. `content_type` travels with the bytes and chooses the
    codec that reads them. `encode` raises `EncodingError` for what it cannot write; `decode` raises ValueError.
    """

    @property
    def content_type(self) -> str:
        """Media type of the bytes."""

    def encode(self, value: Any) -> bytes:
        """A tree as bytes. Raises `EncodingError`."""

    def decode(self, data: bytes) -> Any:
        """The tree in some bytes. Raises ValueError."""


class JsonCodec:
    """JSON in UTF-8. NaN, infinities and lone surrogates are refused: other languages cannot read them."""

    content_type = "application/json"

    def encode(self, value: Any) -> bytes:
        """A tree as JSON."""
        try:
            return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError) as error:
            field, problem = next(_problems(value, "", 0), ("", str(error)))
            raise EncodingError(field, problem) from error

    def decode(self, data: bytes) -> Any:
        """The tree in some JSON."""
        return from_json(data, allow_inf_nan=False)


JSON = JsonCodec()


def to_tree(value: Any) -> Any:
    """A plain tree of a value that may hold dataclasses, models, datetimes, enums, UUIDs and so on."""
    try:
        return to_jsonable_python(value, inf_nan_mode="constants")
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise EncodingError("", str(error)) from error


DEPTH_MAX = 200
"""Deeper values are refused instead of walked: a cycle would be walked for ever."""


def _problems(value: Any, path: str, depth: int) -> Iterator[tuple[str, str]]:
    """Where a tree holds something that JSON cannot, and what."""
    if depth > DEPTH_MAX:
        yield path[:100], "is nested too deeply, or contains itself"
    elif isinstance(value, dict):
        for key, item in value.items():
            name = ascii(key)[1:-1] if isinstance(key, str) else ascii(key)
            here = f"{path}.{name}" if path else name
            if isinstance(key, str):
                yield from _problems(key, here, depth + 1)
                yield from _problems(item, here, depth + 1)
            else:
                yield path, f"has a key of type {type(key).__name__}; keys must be strings"
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _problems(item, f"{path}[{index}]", depth + 1)
    else:
        yield from _leaf_problems(value, path)


def _leaf_problems(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, float) and not math.isfinite(value):
        yield path, f"{value!r} is no number that JSON can hold"
    elif isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            yield path, "holds a lone surrogate, which is no character"
    elif value is not None and not isinstance(value, int | float):
        yield path, f"a {type(value).__name__} has no place in JSON"
