"""What workers report: facts about attempts, on the `attempts` topic."""

from dataclasses import dataclass

from mainspring.schemas.common import AttemptError, HeldAttempt

__all__ = [
    "AttemptCancelled",
    "AttemptClaimed",
    "AttemptFailed",
    "AttemptHeartbeat",
    "AttemptReleased",
    "AttemptSucceeded",
    "AttemptTimedOut",
    "OfferDeclined",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptClaimed:
    """A worker asks to start an offered attempt."""

    job_id: str
    attempt: int
    worker_id: str
    incarnation: str
    reported_at_ms: int
    free_slot: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptHeartbeat:
    """A worker is alive and holds these attempts of one partition."""

    worker_id: str
    incarnation: str
    reported_at_ms: int
    attempts: tuple[HeldAttempt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSucceeded:
    """The handler returned."""

    job_id: str
    attempt: int
    worker_id: str
    incarnation: str
    reported_at_ms: int
    started_at_ms: int
    result: bytes | None = None
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFailed:
    """The handler raised, or its process died."""

    job_id: str
    attempt: int
    worker_id: str
    incarnation: str
    reported_at_ms: int
    started_at_ms: int
    error: AttemptError
    retryable: bool = True
    retry_delay_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTimedOut:
    """The attempt ran longer than its time-out."""

    job_id: str
    attempt: int
    worker_id: str
    incarnation: str
    reported_at_ms: int
    started_at_ms: int
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptCancelled:
    """The attempt was stopped because a cancel was accepted."""

    job_id: str
    attempt: int
    worker_id: str
    incarnation: str
    reported_at_ms: int
    started_at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReleased:
    """The worker gives the attempt back unfinished; it counts against nothing."""

    job_id: str
    attempt: int
    worker_id: str
    incarnation: str
    reported_at_ms: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferDeclined:
    """The worker does not take the offer."""

    job_id: str
    attempt: int
    worker_id: str
    incarnation: str
    reported_at_ms: int
    reason: str
