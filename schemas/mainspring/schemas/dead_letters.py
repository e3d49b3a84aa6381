"""Records nobody could apply, on the `dead-letters` topic."""

from dataclasses import dataclass

__all__ = [
    "DeadLetter",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that could not be read or applied."""

    topic: str
    partition: int
    offset: int
    key: bytes | None = None
    reason: str
    detail: str
    value: bytes | None = None
    value_bytes: int
    recorded_by: str
    recorded_at_ms: int
