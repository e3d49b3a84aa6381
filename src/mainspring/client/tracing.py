"""The trace that a command belongs to."""

import sys

from mainspring.topics.headers import TRACEPARENT, Headers

__all__ = ["current_trace"]


def current_trace() -> Headers | None:
    """The active span as a W3C `traceparent` header; None outside of one, or where OpenTelemetry was never imported."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return None
    return [(TRACEPARENT, f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.trace_flags):02x}".encode())]
