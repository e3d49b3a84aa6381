"""Dead letters: what is kept of a record that cannot be read or applied."""

from mainspring.processors.core import Now
from mainspring.processors.engine.ports import Received
from mainspring.schemas import DeadLetter, DeadLetterReason
from mainspring.schemas.bounds import MESSAGE_MAX_CHARS, RECORD_MAX_BYTES
from mainspring.schemas.limits import clip

__all__ = ["dead_letter"]


def dead_letter(record: Received, reason: DeadLetterReason, detail: str, recorded_by: str, now: Now) -> DeadLetter:
    """The letter for a record: where it came from, why, and its bytes, cut to what the topic of dead letters takes."""
    value, key = record.value(), record.key()
    return DeadLetter(
        topic=record.topic(),
        partition=record.partition(),
        offset=record.offset(),
        key=None if key is None else key[:_KEY_MAX_BYTES],
        reason=reason,
        detail=clip(detail, MESSAGE_MAX_CHARS),
        value=None if value is None else value[:RECORD_MAX_BYTES],
        value_bytes=0 if value is None else len(value),
        recorded_by=recorded_by,
        recorded_at_ms=now.wall_ms,
    )


_KEY_MAX_BYTES = 64 * 1024
