"""The row of an event: the columns that every event has, and what it says beyond them as JSON text."""

import base64
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from mainspring.processors.projector.placed import Placed
from mainspring.schemas.job import JobSpec
from mainspring.schemas.records import RECORDS, SCHEDULE_EVENT_TYPES, Event

__all__ = ["event_row", "jsonable", "spec_data"]

_COLUMNS = frozenset({"revision", "decided_at_ms", "cause", "txn"})
# Columns of their own, or kept once elsewhere: the specification in `job_specs`, the result in `jobs`.
_ELSEWHERE_OF_JOB = _COLUMNS | {"job_id", "spec", "result"}
# Each version of a definition is kept with its event.
_ELSEWHERE_OF_SCHEDULE = _COLUMNS | {"schedule_id"}

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def event_row(placed: Placed) -> dict[str, Any]:
    """What the row of an event has, whatever it is about: where it stands, what caused it, and its own fields."""
    event = placed.event
    cause = event.cause
    return {
        "partition": placed.partition,
        "offset": placed.offset,
        "revision": event.revision,
        "type": type(event).__name__,
        "decided_at_ms": event.decided_at_ms,
        "cause_source": cause.source.name,
        "cause_partition": cause.partition,
        "cause_offset": cause.offset,
        "data": _event_data(event),
    }


def _event_data(event: Event) -> str:
    """The event's own fields; bytes in base64, no NUL that is not escaped."""
    return _encode({name: jsonable(getattr(event, name)) for name in _own_fields(type(event).__name__)})


def spec_data(spec: JobSpec) -> str:
    """The specification without its payload."""
    return _encode({name: jsonable(getattr(spec, name)) for name in _spec_fields()})


def jsonable(value: Any) -> Any:
    """A value of a record as JSON has it: enums by name, bytes in base64, records as objects."""
    if value is None or type(value) in _PLAIN:
        return value
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, tuple | list):
        return [jsonable(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: jsonable(getattr(value, each.name)) for each in fields(value)}
    raise TypeError(f"a {type(value).__name__} has no place in a record")


_PLAIN = frozenset({str, int, float, bool})


@cache
def _own_fields(kind: str) -> tuple[str, ...]:
    record = RECORDS[kind]
    elsewhere = _ELSEWHERE_OF_SCHEDULE if record in SCHEDULE_EVENT_TYPES else _ELSEWHERE_OF_JOB
    return tuple(each.name for each in fields(record) if each.name not in elsewhere)


@cache
def _spec_fields() -> tuple[str, ...]:
    return tuple(each.name for each in fields(JobSpec) if each.name not in {"payload", "job_id"})
