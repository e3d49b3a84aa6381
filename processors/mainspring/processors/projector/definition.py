"""The definition of a schedule, and parts of its state, as JSON text and back: readable in the database, and whole."""

import base64
import json
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from mainspring.processors.projector.eventdata import jsonable
from mainspring.schemas.schedule import ScheduleSpec, ScheduleTiming
from mainspring.schemas.tables import ScheduleState

__all__ = ["definition_data", "definition_of", "rest_data", "rest_of", "timing_data", "timing_of"]

T = TypeVar("T")

_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


def timing_data(spec: ScheduleSpec) -> str:
    """When it fires."""
    return _encode(jsonable(spec.timing))


def definition_data(spec: ScheduleSpec) -> str:
    """The definition without what `timing_data` has; the payload of its job whole, in base64."""
    return _encode({name: jsonable(getattr(spec, name)) for name in _apart_from_timing()})


def timing_of(text: str) -> ScheduleTiming:
    """The value that `timing_data` wrote down."""
    return _built(ScheduleTiming, json.loads(text))


def definition_of(timing: str, definition: str) -> ScheduleSpec:
    """The definition, from its two texts."""
    return _built(ScheduleSpec, json.loads(definition) | {"timing": json.loads(timing)})


def rest_data(state: ScheduleState, names: Collection[str]) -> str:
    """The fields of a state that have these names."""
    return _encode({name: jsonable(getattr(state, name)) for name in names})


def rest_of(text: str) -> dict[str, Any]:
    """The fields that `rest_data` wrote down, by name."""
    return {name: _value(_hints(ScheduleState)[name], value) for name, value in json.loads(text).items()}


@cache
def _apart_from_timing() -> tuple[str, ...]:
    return tuple(each.name for each in fields(ScheduleSpec) if each.name != "timing")


def _built(kind: type[T], value: Mapping[str, Any]) -> T:
    """A record, from the object that `jsonable` made of it."""
    return kind(**{name: _value(hint, value[name]) for name, hint in _hints(cast(Any, kind)).items()})


def _value(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    origin = get_origin(hint)
    if origin is Union or origin is UnionType:
        return _value(_alternative(hint, value), value)
    if origin is tuple:
        return tuple(_value(get_args(hint)[0], each) for each in value)
    if hint is bytes:
        return base64.b64decode(value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint[value]
    return _built(hint, value) if isinstance(hint, type) and is_dataclass(hint) else value


def _alternative(hint: Any, value: Any) -> Any:
    """Which type of a union a value is of: records are told apart by their fields."""
    kinds = [each for each in get_args(hint) if each is not type(None)]
    if len(kinds) == 1:
        return kinds[0]
    return next(each for each in kinds if value.keys() == _hints(each).keys())


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}
