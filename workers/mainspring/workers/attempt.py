"""One attempt in the hands of a worker."""

from dataclasses import dataclass
from enum import Enum, auto

from mainspring.jobs.context import JobContext
from mainspring.jobs.handler import Handler
from mainspring.schemas.common import AttemptError, Priority

__all__ = ["Attempt", "Outcome", "OutcomeKind", "StopReason"]


class OutcomeKind(Enum):
    """How an attempt ended."""

    SUCCEEDED = auto()
    FAILED = auto()
    TIMED_OUT = auto()
    CANCELLED = auto()
    RELEASED = auto()
    """Stopped by the worker itself, to be run elsewhere."""


class StopReason(Enum):
    """Why a running attempt is asked to stop. The first reason given stays."""

    TIMED_OUT = auto()
    CANCELLED = auto()
    DRAINING = auto()
    LEASE_AT_RISK = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of an attempt, as data."""

    kind: OutcomeKind
    result: bytes | None = None
    error: AttemptError | None = None
    retryable: bool = True
    retry_delay_ms: int | None = None


class Attempt:
    """An attempt from its offer to its report. One thread owns it: the Kafka loop; executors fill in `outcome`.

    Attributes:
        job_id, number: which attempt; `number` is the fencing token.
        lane: where it was offered.
        may_retry: whether a retry may follow a time-out; then a thread's time-out is told only when its call is over.
        arrived_at, claimed_at, lease_from, started_at: monotonic seconds; `lease_from` is the last moment from which
            the scheduler is known to have counted the lease.
        has_slot: whether it occupies one of the worker's slots.
        outcome: how it ended, once that is known.
        reported: whether the outcome has been sent; `told_early`: while its code went on.
        returned: whether its code is over; a thread that timed out may have an outcome and go on.
    """

    __slots__ = (
        "arrived_at",
        "claimed_at",
        "content_type",
        "context",
        "handler",
        "has_slot",
        "job_id",
        "lane",
        "lease_from",
        "may_retry",
        "number",
        "offered_at_ms",
        "outcome",
        "partition",
        "payload",
        "reported",
        "returned",
        "running",
        "started_at",
        "started_at_ms",
        "stop_reason",
        "task",
        "timeout_ms",
        "told_early",
    )

    def __init__(
        self,
        *,
        handler: Handler,
        context: JobContext,
        lane: Priority | None = None,
        payload: bytes = b"",
        content_type: str = "application/json",
        timeout_ms: int | None = None,
        may_retry: bool = False,
        offered_at_ms: int = 0,
    ) -> None:
        self.job_id = context.job_id
        self.number = context.attempt
        self.lane: Priority = context.priority if lane is None else lane
        self.handler = handler
        self.context = context
        self.payload = payload
        self.content_type = content_type
        self.timeout_ms = timeout_ms
        self.may_retry = may_retry
        self.offered_at_ms = offered_at_ms
        self.arrived_at = 0.0
        self.claimed_at = 0.0
        self.lease_from = 0.0
        self.started_at = 0.0
        self.started_at_ms = 0
        self.partition = -1
        self.has_slot = False
        self.running = False
        self.returned = False
        self.reported = False
        self.told_early = False
        self.stop_reason: StopReason | None = None
        self.outcome: Outcome | None = None
        self.task: object | None = None

    def __repr__(self) -> str:
        return f"Attempt({self.job_id!r}, {self.number}, {self.handler.name!r})"
