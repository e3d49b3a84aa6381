"""What the view tells, as values. Times are epoch milliseconds UTC."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mainspring.schemas.common import CauseSource, JobStatus, Priority

__all__ = [
    "AttemptRecord",
    "EventRecord",
    "JobCounts",
    "JobDetail",
    "JobFilter",
    "JobOrder",
    "JobPage",
    "JobSummary",
    "RejectionRecord",
    "UnreadableRecord",
    "ViewPosition",
    "ViewSource",
]


class JobOrder(StrEnum):
    """Order of a list. Jobs of equal time are ordered by id, so that pages neither repeat nor skip one."""

    NEWEST = "newest"
    OLDEST = "oldest"
    DUE = "due"
    FINISHED = "finished"
    """The last finished first; jobs that have not finished are not listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """What to list; each condition that is given must hold.

    `since_ms` ≤ submitted < `until_ms`; `text` is a part of the id or name, in any case.
    """

    status: tuple[JobStatus, ...] = ()
    queue: str | None = None
    name: str | None = None
    tenant: str | None = None
    tag: str | None = None
    priority: Priority | None = None
    schedule_id: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """One line of a list. `attempt` is the number of attempts started; `ended_code` tells why a job ended as it did."""

    job_id: str
    partition: int
    revision: int
    seq: int
    status: JobStatus
    name: str
    queue: str
    priority: Priority
    tenant: str
    tags: tuple[str, ...]
    schedule_id: str | None
    retry_of: str | None
    submitted_at_ms: int
    due_at_ms: int
    started_at_ms: int | None
    finished_at_ms: int | None
    attempt: int
    retries: int
    lost: int
    max_retries: int
    max_lost: int
    worker_id: str | None
    ended_code: str | None
    error_type: str | None
    error_message: str | None
    last_event_type: str
    last_event_offset: int
    last_event_at_ms: int

    @property
    def is_cancelling(self) -> bool:
        """Whether a cancel was accepted that waits for the running attempt to end."""
        return self.status is JobStatus.RUNNING and self.last_event_type == "JobCancelRequested"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetail(JobSummary):
    """One job with all that the view knows. `payload` and `result` may be cut: their true sizes are `…_bytes`."""

    submit_command_id: str
    reschedule_command_id: str | None
    submitted_by: str
    submit_reason: str
    deadline_ms: int | None
    start_deadline_ms: int | None
    timeout_ms: int | None
    incarnation: str | None
    cancel_command_id: str | None
    cancel_actor: str | None
    cancel_reason: str | None
    cancel_requested_at_ms: int | None
    ended_by: str | None
    ended_reason: str | None
    result: bytes | None
    result_bytes: int | None
    result_content_type: str | None
    payload: bytes
    payload_bytes: int
    content_type: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """Jobs in order; `next_cursor` fetches the page after this one, None when there is none."""

    jobs: tuple[JobSummary, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCounts:
    """Jobs by status, and by queue and status; a queue or status without jobs may be absent."""

    by_status: Mapping[JobStatus, int] = field(default_factory=dict)
    by_queue: Mapping[str, Mapping[JobStatus, int]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All jobs in the view."""
        return sum(self.by_status.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """One event of a job: where it stands in `events`, what caused it, and its own fields in `data`."""

    job_id: str
    revision: int
    type: str
    decided_at_ms: int
    partition: int
    offset: int
    cause_source: CauseSource
    cause_partition: int
    cause_offset: int
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One attempt. `outcome` is None while it runs, else SUCCEEDED, FAILED, TIMED_OUT, LOST, RELEASED or CANCELLED."""

    job_id: str
    attempt: int
    worker_id: str
    incarnation: str
    due_at_ms: int
    started_at_ms: int
    ended_at_ms: int | None
    outcome: str | None
    retry_delay_ms: int | None
    error_type: str | None
    error_message: str | None
    error_traceback: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionRecord:
    """One refused command."""

    partition: int
    offset: int
    job_id: str
    command_id: str
    command: str
    actor: str
    code: str
    message: str
    status: str | None
    decided_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableRecord:
    """An event that the view had to leave out, and why."""

    partition: int
    offset: int
    reason: str
    detail: str
    key: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSource:
    """The topic that a view is a fold of. Its id is Kafka's: no other cluster, and no later topic, has the same."""

    topic: str
    topic_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewPosition:
    """How far the view has folded one partition of `events`."""

    partition: int
    topic: str
    topic_id: str
    next_offset: int
    last_event_offset: int
    last_event_at_ms: int
