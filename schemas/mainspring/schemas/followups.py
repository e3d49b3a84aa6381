"""What one partition tells another, on the `followups` topic."""

from dataclasses import dataclass

__all__ = [
    "ForwardedCommand",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedCommand:
    """A command that arrived on the wrong partition, sent on unchanged."""

    key: str
    topic: str
    partition: int
    offset: int
    value: bytes
