"""What came of a command or of a job, as a value or as an exception."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mainspring.client.errors import (
    ClientError,
    CommandRejectedError,
    DuplicateJobError,
    DuplicateScheduleError,
    JobCancelledError,
    JobFailedError,
    JobTimedOutError,
    ScheduleNotFoundError,
    ScheduleRejectedError,
    VersionConflictError,
)
from mainspring.client.progress import Terminal
from mainspring.schemas.codes import RejectCode
from mainspring.schemas.common import JobStatus
from mainspring.schemas.events import CommandRejected, JobCancelled, JobCompleted, JobFailed, JobTimedOut
from mainspring.schemas.schedule import ScheduleStatus
from mainspring.schemas.schedule_events import ScheduleCommandRejected

__all__ = ["Acceptance", "CancelOutcome", "ResultDecoder", "decode_result", "rejected", "result_of"]

ResultDecoder = Callable[[bytes, str], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A submit was accepted: when it was decided, when the job is due, its place in the order of its partition.

    `existing`: the id was known already, and this is the earlier job (`if_exists='return'`); the rest is None then.
    """

    job_id: str
    existing: bool = False
    accepted_at: datetime | None = None
    due_at: datetime | None = None
    seq: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelOutcome:
    """What came of a cancel. True in a condition if this cancel ended the job.

    `pending`: it was accepted while an attempt ran, which had not ended within the time-out; whatever that attempt does
    other than succeed, the job will be CANCELLED. `status` is the state of the job then, None if there is no such job.
    `code` is why the cancel was refused (ALREADY_TERMINAL, UNKNOWN_JOB), else None.
    """

    job_id: str
    took_effect: bool
    pending: bool = False
    status: JobStatus | None = None
    code: str | None = None

    def __bool__(self) -> bool:
        return self.took_effect


def decode_result(data: bytes, content_type: str) -> Any:
    """A result as Python values: JSON is parsed, text decoded, anything else stays bytes."""
    if content_type == "application/json":
        return json.loads(data)
    return data.decode() if content_type.startswith("text/plain") else data


def result_of(end: Terminal, decode: ResultDecoder) -> Any:
    """The result of a completed job; raises the error that tells how another one ended."""
    match end:
        case JobCompleted():
            return None if end.result is None else decode(end.result, end.content_type)
        case JobFailed():
            raise JobFailedError(end.job_id, end.attempt, end.reason, end.error)
        case JobTimedOut():
            raise JobTimedOutError(end.job_id, end.attempt, end.timeout_ms)
        case JobCancelled():
            raise JobCancelledError(end.job_id, end.attempt, end.cancel_code, end.actor, end.reason)


def rejected(event: CommandRejected | ScheduleCommandRejected) -> ClientError:
    """The refusal as an exception."""
    if isinstance(event, ScheduleCommandRejected):
        return _schedule_rejected(event)
    kind = DuplicateJobError if event.reject_code == RejectCode.DUPLICATE_JOB else CommandRejectedError
    return kind(
        job_id=event.job_id,
        command=event.command,
        command_id=event.command_id,
        code=event.reject_code,
        message=event.message,
        status=JobStatus.__members__.get(event.status) if event.status is not None else None,
    )


_OWN_ERRORS: dict[str, type[ScheduleRejectedError]] = {
    RejectCode.DUPLICATE_SCHEDULE: DuplicateScheduleError,
    RejectCode.VERSION_CONFLICT: VersionConflictError,
}


def _schedule_rejected(event: ScheduleCommandRejected) -> ClientError:
    if event.reject_code == RejectCode.UNKNOWN_SCHEDULE:
        return ScheduleNotFoundError(event.schedule_id, "the scheduler's tables")
    return _OWN_ERRORS.get(event.reject_code, ScheduleRejectedError)(
        schedule_id=event.schedule_id,
        command=event.command,
        command_id=event.command_id,
        code=event.reject_code,
        message=event.message,
        status=ScheduleStatus.__members__.get(event.status) if event.status is not None else None,
    )
