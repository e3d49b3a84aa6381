"""Record headers: CloudEvents 1.0 in Kafka's binary mode, and W3C trace context that passes through.

Only `commands` and `events` carry them, and of CloudEvents only what the specification requires (id, source, type,
version) with the content type: routers and auditors of other systems need no more, and the rest (time, subject) is in
the record and its key already. The hot internal topics carry none.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

from mainspring.schemas import Command, Event
from mainspring.schemas.avro_types import NAMESPACE

__all__ = ["CONTENT_TYPE", "TRACEPARENT", "TRACESTATE", "Headers", "command_headers", "event_headers", "trace_headers"]

Headers: TypeAlias = list[tuple[str, bytes]]
"""Headers as confluent-kafka takes them."""

CONTENT_TYPE = b"application/avro"
TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"

_TRACEPARENT_VALUE = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_TRACESTATE_MAX_BYTES = 512
"""What W3C asks everybody to carry at least; longer ones may be dropped."""


def command_headers(command: Command, source: str, trace: Headers | None = None) -> Headers:
    """Headers of a command. `source` names the application that asks, as a URI reference (`/billing`)."""
    return [*_fixed(type(command).__name__, source), ("ce_id", command.command_id.encode()), *(trace or ())]


def event_headers(kind: type[Event], event_id: str, source: str, trace: Headers | None = None) -> Headers:
    """Headers of an event. `event_id` must be unique for the `source`: the engine takes transaction id and index."""
    return [*_fixed(kind.__name__, source), ("ce_id", event_id.encode()), *(trace or ())]


def trace_headers(headers: Iterable[tuple[str, bytes | None]] | None) -> Headers:
    """The trace context among a record's headers, to be passed on; whatever is malformed is left behind.

    The first `traceparent` counts, and a `tracestate` only with it.
    """
    found: dict[str, bytes] = {}
    for name, value in headers or ():
        if name in {TRACEPARENT, TRACESTATE} and isinstance(value, bytes):
            found.setdefault(name, value)
    parent, state = found.get(TRACEPARENT, b""), found.get(TRACESTATE, b"")
    if not _TRACEPARENT_VALUE.fullmatch(parent):
        return []
    return [(TRACEPARENT, parent), *([(TRACESTATE, state)] if 0 < len(state) <= _TRACESTATE_MAX_BYTES else [])]


@lru_cache(maxsize=1024)
def _fixed(kind: str, source: str) -> tuple[tuple[str, bytes], ...]:
    return (
        ("ce_specversion", b"1.0"),
        ("ce_source", source.encode()),
        ("ce_type", f"{NAMESPACE}.{kind}".encode()),
        ("content-type", CONTENT_TYPE),
    )
