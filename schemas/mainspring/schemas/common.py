"""Small records that others are made of, and the enums of the language."""

from dataclasses import dataclass

from mainspring.schemas.named import NamedInt

__all__ = [
    "AttemptError",
    "CancelRequest",
    "Cause",
    "CauseSource",
    "ConfirmedStart",
    "HeldAttempt",
    "JobStatus",
    "Priority",
    "Txn",
]


class Priority(NamedInt):
    """How urgent a job is; the lane it is offered on."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2
    CRITICAL = 3


class JobStatus(NamedInt):
    """Where a job stands in its life."""

    PENDING = 0
    RUNNING = 1
    RETRY_WAIT = 2
    COMPLETED = 3
    FAILED = 4
    TIMED_OUT = 5
    CANCELLED = 6

    @property
    def is_terminal(self) -> bool:
        """Whether the job has ended for good: terminal is final."""
        return self >= JobStatus.COMPLETED


class CauseSource(NamedInt):
    """What kind of input made the scheduler decide."""

    COMMANDS = 0
    FOLLOWUPS = 1
    ATTEMPTS = 2
    TIMER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The input that an event was decided on."""

    source: CauseSource
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Txn:
    """Position of a record inside its Kafka transaction, so that a torn one shows."""

    id: int
    index: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptError:
    """Why an attempt failed, as data: nothing is ever imported by these names."""

    type: str
    message: str
    traceback: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequest:
    """An accepted cancel that waits for the running attempt to end."""

    command_id: str
    actor: str
    reason: str
    requested_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAttempt:
    """One attempt that a worker runs or awaits the confirmation of."""

    job_id: str
    attempt: int
    progress: float | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmedStart:
    """One confirmed attempt."""

    job_id: str
    attempt: int
