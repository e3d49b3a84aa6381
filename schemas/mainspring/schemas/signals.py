"""What the scheduler tells one worker, on the `signals` topic."""

from dataclasses import dataclass

from mainspring.schemas.common import ConfirmedStart

__all__ = [
    "CancelAttempt",
    "ClaimRefused",
    "StartConfirmed",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartConfirmed:
    """These claims won: run them."""

    worker_id: str
    incarnation: str
    confirmed_at_ms: int
    starts: tuple[ConfirmedStart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRefused:
    """This claim lost: do not run it."""

    worker_id: str
    incarnation: str
    job_id: str
    attempt: int
    refusal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelAttempt:
    """Stop this attempt: its job was cancelled, or the attempt is no longer yours."""

    worker_id: str
    incarnation: str
    job_id: str
    attempt: int
    reason: str
