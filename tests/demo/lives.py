"""Lives of jobs as events: such as the plan of the demo wants them, and such as it does not."""

from typing import Any

from mainspring.cli.demo.plan import Planned
from mainspring.cli.demo.story import Story, tell
from mainspring.jobs.payload import JSON
from mainspring.jobs.spec import to_spec
from mainspring.schemas.codes import RetryReason
from mainspring.schemas.common import Cause, CauseSource, JobStatus, Txn
from mainspring.schemas.events import (
    JobCancelled,
    JobCompleted,
    JobFailed,
    JobRetryScheduled,
    JobStarted,
    JobSubmitted,
    JobTimedOut,
)
from mainspring.schemas.records import JobEvent

__all__ = ["NOON_MS", "ended", "retried", "right_life", "started", "story_of", "submitted"]

NOON_MS = 1_767_268_800_000
_HEAD: dict[str, Any] = {
    "revision": 1,
    "cause": Cause(source=CauseSource.COMMANDS, partition=0, offset=0),
    "txn": Txn(id=0, index=0, size=1),
}


def submitted(planned: Planned) -> JobSubmitted:
    call = planned.submission
    return JobSubmitted(
        **_HEAD,
        job_id=planned.job_id,
        decided_at_ms=NOON_MS + 5,
        command_id="c",
        actor="test",
        reason="",
        requested_at_ms=NOON_MS,
        seq=0,
        due_at_ms=NOON_MS + planned.expected.not_before_ms,
        spec=to_spec(call.job, call.args, options=call.options),
    )


def started(planned: Planned, attempt: int, at_ms: int = 10) -> JobStarted:
    due_ms = NOON_MS + planned.expected.not_before_ms
    return JobStarted(
        **_HEAD,
        job_id=planned.job_id,
        decided_at_ms=due_ms + at_ms,
        attempt=attempt,
        worker_id="worker-1",
        incarnation="i",
        due_at_ms=due_ms,
    )


def retried(planned: Planned, attempt: int, reason: RetryReason) -> JobRetryScheduled:
    return JobRetryScheduled(
        **_HEAD,
        job_id=planned.job_id,
        decided_at_ms=NOON_MS + 20_000,
        attempt=attempt,
        reason=reason,
        delay_ms=0,
        due_at_ms=NOON_MS + 20_000,
        retries=0,
        lost=0,
    )


def ended(planned: Planned, attempt: int, status: JobStatus | None = None, result: object = None) -> JobEvent:
    """The end that the plan wants, or another."""
    expected = planned.expected
    head: dict[str, Any] = {**_HEAD, "job_id": planned.job_id, "decided_at_ms": NOON_MS + 30_000, "attempt": attempt}
    match status or expected.status:
        case JobStatus.FAILED:
            return JobFailed(**head, reason=expected.code or "FAILED")
        case JobStatus.TIMED_OUT:
            return JobTimedOut(**head, timeout_ms=800)
        case JobStatus.CANCELLED:
            return JobCancelled(**head, cancel_code=expected.code or "REQUESTED", reason="")
        case _:
            value = expected.result if result is None else result
            return JobCompleted(
                **head,
                worker_id="worker-1",
                started_at_ms=NOON_MS,
                finished_at_ms=NOON_MS + 30_000,
                result=None if value is None else JSON.encode(value),
                content_type="application/json",
            )


def right_life(planned: Planned) -> list[JobEvent]:
    """A life that ends as the plan wants."""
    life: list[JobEvent] = [submitted(planned)]
    attempts = planned.expected.attempts
    for attempt in range(1, attempts + 1):
        life.append(started(planned, attempt))
        if attempt < attempts:
            life.append(retried(planned, attempt, RetryReason.FAILED))
    return [*life, ended(planned, attempts)]


def story_of(life: list[JobEvent]) -> Story:
    story = Story(job_id=life[0].job_id)
    for event in life:
        story = tell(story, event)
    return story
