"""Captured output, on the `logs` topic."""

from dataclasses import dataclass

__all__ = [
    "LogCaptured",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCaptured:
    """What one attempt wrote to stdout, stderr and logging."""

    job_id: str
    attempt: int
    worker_id: str
    incarnation: str
    reported_at_ms: int
    text: str
    dropped_bytes: int = 0
