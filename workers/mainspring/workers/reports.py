"""The records that a worker writes: one constructor per fact."""

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from mainspring.schemas.attempts import (
    AttemptCancelled,
    AttemptClaimed,
    AttemptFailed,
    AttemptHeartbeat,
    AttemptReleased,
    AttemptSucceeded,
    AttemptTimedOut,
    OfferDeclined,
)
from mainspring.schemas.build import quick
from mainspring.schemas.codes import DeclineReason, ReleaseReason
from mainspring.schemas.common import AttemptError
from mainspring.schemas.logs import LogCaptured
from mainspring.workers.attempt import Attempt, OutcomeKind, StopReason
from mainspring.workers.capture import Capture
from mainspring.workers.leases import as_held

__all__ = ["Ending", "Reporter"]

Ending: TypeAlias = AttemptSucceeded | AttemptFailed | AttemptTimedOut | AttemptCancelled | AttemptReleased

# The two records that every attempt costs.
_new_claimed = quick(AttemptClaimed)
_new_succeeded = quick(AttemptSucceeded)

_UNEXPLAINED = AttemptError(type="mainspring.workers.UnexplainedError", message="the attempt ended without a reason")


class Reporter:
    """Speaks for one life of one worker. `now_ms`: the wall clock that its records are dated by."""

    def __init__(self, worker_id: str, incarnation: str, now_ms: Callable[[], int] | None = None) -> None:
        self.worker_id = worker_id
        self.incarnation = incarnation
        self.now_ms = now_ms or _now_ms

    def claimed(self, attempt: Attempt, *, free_slot: bool) -> AttemptClaimed:
        """The worker wants to start it."""
        return _new_claimed(
            job_id=attempt.job_id,
            attempt=attempt.number,
            worker_id=self.worker_id,
            incarnation=self.incarnation,
            reported_at_ms=self.now_ms(),
            free_slot=free_slot,
        )

    def declined(self, job_id: str, attempt: int, reason: DeclineReason) -> OfferDeclined:
        """The worker does not take the offer."""
        return OfferDeclined(
            job_id=job_id,
            attempt=attempt,
            worker_id=self.worker_id,
            incarnation=self.incarnation,
            reported_at_ms=self.now_ms(),
            reason=reason,
        )

    def heartbeat(self, attempts: Sequence[Attempt]) -> AttemptHeartbeat:
        """The worker lives and holds these."""
        return AttemptHeartbeat(
            worker_id=self.worker_id,
            incarnation=self.incarnation,
            reported_at_ms=self.now_ms(),
            attempts=tuple(as_held(attempt) for attempt in attempts),
        )

    def released(self, job_id: str, attempt: int, reason: ReleaseReason) -> AttemptReleased:
        """The worker gives it back."""
        return AttemptReleased(
            job_id=job_id,
            attempt=attempt,
            worker_id=self.worker_id,
            incarnation=self.incarnation,
            reported_at_ms=self.now_ms(),
            reason=reason,
        )

    def ended(self, attempt: Attempt) -> Ending:
        """How it ended."""
        outcome = attempt.outcome
        assert outcome is not None, attempt
        if outcome.kind is OutcomeKind.SUCCEEDED:
            return _new_succeeded(
                job_id=attempt.job_id,
                attempt=attempt.number,
                worker_id=self.worker_id,
                incarnation=self.incarnation,
                reported_at_ms=self.now_ms(),
                started_at_ms=attempt.started_at_ms,
                result=outcome.result,
                content_type=attempt.handler.codec.content_type,
            )
        if outcome.kind is OutcomeKind.RELEASED:
            at_risk = attempt.stop_reason is StopReason.LEASE_AT_RISK
            reason = ReleaseReason.LEASE_AT_RISK if at_risk else ReleaseReason.DRAINING
            return self.released(attempt.job_id, attempt.number, reason)
        return self._ended_badly(attempt)

    def _ended_badly(self, attempt: Attempt) -> Ending:
        outcome = attempt.outcome
        assert outcome is not None, attempt
        if outcome.kind is OutcomeKind.FAILED:
            return AttemptFailed(
                job_id=attempt.job_id,
                attempt=attempt.number,
                worker_id=self.worker_id,
                incarnation=self.incarnation,
                reported_at_ms=self.now_ms(),
                started_at_ms=attempt.started_at_ms,
                error=outcome.error or _UNEXPLAINED,
                retryable=outcome.retryable,
                retry_delay_ms=outcome.retry_delay_ms,
            )
        if outcome.kind is OutcomeKind.TIMED_OUT:
            return AttemptTimedOut(
                job_id=attempt.job_id,
                attempt=attempt.number,
                worker_id=self.worker_id,
                incarnation=self.incarnation,
                reported_at_ms=self.now_ms(),
                started_at_ms=attempt.started_at_ms,
                timeout_ms=attempt.timeout_ms or 0,
            )
        return AttemptCancelled(
            job_id=attempt.job_id,
            attempt=attempt.number,
            worker_id=self.worker_id,
            incarnation=self.incarnation,
            reported_at_ms=self.now_ms(),
            started_at_ms=attempt.started_at_ms or None,
        )

    def output(self, attempt: Attempt, output: Capture) -> LogCaptured:
        """What it wrote."""
        return LogCaptured(
            job_id=attempt.job_id,
            attempt=attempt.number,
            worker_id=self.worker_id,
            incarnation=self.incarnation,
            reported_at_ms=self.now_ms(),
            text=output.text(),
            dropped_bytes=output.dropped_bytes,
        )


def _now_ms() -> int:
    return int(time.time() * 1000)
