"""Headers of commands: CloudEvents attributes (binary mode, Kafka binding) and the W3C trace context.

Nothing of ours reads them to decide anything: the record carries all that matters. They are for those who route, filter
or trace without knowing Avro.
"""

import sys
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from mainspring.schemas.commands import CancelJob, RescheduleJob, RetryJob, SubmitJob

__all__ = ["Header", "command_headers", "current_traceparent"]

Header = tuple[str, str | bytes | None]

CONTENT_TYPE: Final = b"application/avro"
TYPE_PREFIX: Final = "mainspring."

_SPEC_VERSION: Final[Header] = ("ce_specversion", b"1.0")
_CONTENT_TYPE: Final[Header] = ("content-type", CONTENT_TYPE)
_TYPES: Final[dict[type, Header]] = {
    kind: ("ce_type", f"{TYPE_PREFIX}{kind.__name__}".encode())
    for kind in (SubmitJob, CancelJob, RescheduleJob, RetryJob)
}


def command_headers(
    command: SubmitJob | CancelJob | RescheduleJob | RetryJob, traceparent: str | None = None
) -> list[Header]:
    """CloudEvents attributes of a command: its id, the actor as source, the record as type, the job as subject.

    `traceparent` links the job to the trace that submitted it; by default the current one, if OpenTelemetry is in use.
    """
    subject = command.spec.job_id if isinstance(command, SubmitJob) else command.job_id
    headers: list[Header] = [
        _SPEC_VERSION,
        ("ce_id", command.command_id),
        _source(command.actor),
        _TYPES[type(command)],
        ("ce_subject", subject),
        _CONTENT_TYPE,
    ]
    trace = traceparent or current_traceparent()
    if trace is not None:
        headers.append(("traceparent", trace))
    return headers


@lru_cache(maxsize=64)
def _source(actor: str) -> Header:
    """A source is a URI reference; a client's commands all have the same."""
    return "ce_source", "/" + quote(actor, safe="@.:/-")


def current_traceparent() -> str | None:
    """The active span as a `traceparent`; None outside of a span, or where OpenTelemetry was never imported."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    span = sys.modules["opentelemetry.trace"].get_current_span().get_span_context()
    if not span.is_valid:
        return None
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.trace_flags):02x}"
