"""Jobs as the view has them, as JSON of a stable shape and as rows of a table."""

from typing import TYPE_CHECKING, Any

from mainspring.cli.durations import brief_duration
from mainspring.cli.output import Column
from mainspring.cli.show import iso, payload_json, priority_text, status_text

if TYPE_CHECKING:
    from mainspring.processors.projector.view import AttemptRecord, EventRecord, JobDetail, JobSummary

__all__ = ["COLUMNS", "attempt_json", "detail_json", "event_json", "summary_json", "summary_row"]

COLUMNS = (
    Column(head="JOB"),
    Column(head="NAME", least=16),
    Column(head="STATUS"),
    Column(head="QUEUE", drop=6),
    Column(head="PRIORITY", drop=7),
    Column(head="TRY", right=True, drop=3),
    Column(head="AGE", right=True, drop=1),
    Column(head="DUE", right=True, drop=5),
    Column(head="TOOK", right=True, drop=4),
    Column(head="WHY", least=12, drop=2),
)


def summary_json(job: "JobSummary") -> dict[str, Any]:
    """One job of a list."""
    return {
        "job_id": job.job_id,
        "name": job.name,
        "status": job.status.name,
        "queue": job.queue,
        "priority": job.priority.name,
        "tenant": job.tenant,
        "tags": list(job.tags),
        "attempt": job.attempt,
        "retries": job.retries,
        "max_retries": job.max_retries,
        "lost": job.lost,
        "max_lost": job.max_lost,
        "cancelling": job.is_cancelling,
        "submitted_at": iso(job.submitted_at_ms),
        "due_at": iso(job.due_at_ms),
        "started_at": iso(job.started_at_ms),
        "finished_at": iso(job.finished_at_ms),
        "worker_id": job.worker_id,
        "ended_code": job.ended_code,
        "error": _error(job.error_type, job.error_message),
        "schedule_id": job.schedule_id,
        "retry_of": job.retry_of,
        "revision": job.revision,
        "seq": job.seq,
        "partition": job.partition,
        "last_event": {
            "type": job.last_event_type,
            "partition": job.partition,
            "offset": job.last_event_offset,
            "at": iso(job.last_event_at_ms),
        },
    }


def detail_json(job: "JobDetail") -> dict[str, Any]:
    """One job with all that the view knows."""
    return summary_json(job) | {
        "submitted_by": job.submitted_by,
        "submit_reason": job.submit_reason,
        "submit_command_id": job.submit_command_id,
        "timeout_ms": job.timeout_ms,
        "deadline": iso(job.deadline_ms),
        "start_deadline": iso(job.start_deadline_ms),
        "payload": payload_json(job.payload, job.content_type),
        "payload_bytes": job.payload_bytes,
        "content_type": job.content_type,
        "result": payload_json(job.result, job.result_content_type),
        "result_bytes": job.result_bytes,
        "result_content_type": job.result_content_type,
        "ended_by": job.ended_by,
        "ended_reason": job.ended_reason,
        "cancel": _cancel(job),
    }


def attempt_json(attempt: "AttemptRecord") -> dict[str, Any]:
    """One attempt of a job; the outcome is null while it runs."""
    return {
        "attempt": attempt.attempt,
        "outcome": attempt.outcome,
        "worker_id": attempt.worker_id,
        "due_at": iso(attempt.due_at_ms),
        "started_at": iso(attempt.started_at_ms),
        "ended_at": iso(attempt.ended_at_ms),
        "retry_delay_ms": attempt.retry_delay_ms,
        "error": _error(attempt.error_type, attempt.error_message),
        "traceback": attempt.error_traceback,
    }


def summary_row(job: "JobSummary", now_ms: int) -> list[Any]:
    """One line of the list for people; times are relative to `now_ms`."""
    due = _due(job.due_at_ms, now_ms) if job.started_at_ms is None and job.finished_at_ms is None else ""
    end_ms = job.finished_at_ms if job.finished_at_ms is not None else now_ms
    return [
        job.job_id,
        job.name,
        status_text("CANCELLING" if job.is_cancelling else job.status.name),
        job.queue,
        priority_text(job.priority.name),
        f"{job.attempt}/{1 + job.max_retries}",
        brief_duration((now_ms - job.submitted_at_ms) / 1000),
        due,
        brief_duration((end_ms - job.started_at_ms) / 1000) if job.started_at_ms is not None else "",
        _why(job),
    ]


def _due(at_ms: int, now_ms: int) -> str:
    seconds = (at_ms - now_ms) / 1000
    return f"in {brief_duration(seconds)}" if seconds > 0 else f"{brief_duration(-seconds)} ago"


def _why(job: "JobSummary") -> str:
    if job.status.name == "COMPLETED":
        return ""
    if job.error_type is not None:
        first = (job.error_message or "").partition("\n")[0]
        return f"{job.error_type.rpartition('.')[2]}: {first}"[:120]
    return job.ended_code or ""


def _error(kind: str | None, message: str | None) -> dict[str, Any] | None:
    return None if kind is None else {"type": kind, "message": message}


def _cancel(job: "JobDetail") -> dict[str, Any] | None:
    if job.cancel_requested_at_ms is None:
        return None
    return {
        "requested_at": iso(job.cancel_requested_at_ms),
        "actor": job.cancel_actor,
        "reason": job.cancel_reason,
        "command_id": job.cancel_command_id,
    }


def event_json(event: "EventRecord") -> dict[str, Any]:
    """One event of a job, with its place in the log and its cause."""
    return {
        "revision": event.revision,
        "type": event.type,
        "decided_at": iso(event.decided_at_ms),
        "partition": event.partition,
        "offset": event.offset,
        "cause": {
            "source": event.cause_source.name,
            "partition": event.cause_partition,
            "offset": event.cause_offset,
        },
        "data": dict(event.data),
    }
