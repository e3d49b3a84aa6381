"""One job on one page, for people."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mainspring.cli.output import Column, print_pairs, print_table, stdout
from mainspring.cli.show import ago, local, payload_text, priority_text, status_text, until

if TYPE_CHECKING:
    from mainspring.processors.projector.view import AttemptRecord, EventRecord, JobDetail

__all__ = ["event_summary", "print_page"]

_ATTEMPTS = (
    Column(head="ATTEMPT", right=True),
    Column(head="OUTCOME"),
    Column(head="STARTED", drop=1),
    Column(head="TOOK", right=True, drop=2),
    Column(head="WORKER", drop=3),
    Column(head="ERROR", fold=True, least=24),
)
_EVENTS = (
    Column(head="REV", right=True),
    Column(head="EVENT"),
    Column(head="DECIDED", drop=1),
    Column(head="AFTER", right=True, drop=2),
    Column(head="EVENTS AT", right=True, drop=4),
    Column(head="CAUSED BY", drop=3),
    Column(head="WHAT", fold=True, least=24),
)
_OUTCOME_STYLES = {
    "SUCCEEDED": "green",
    "FAILED": "red",
    "TIMED_OUT": "magenta",
    "LOST": "red",
    "CANCELLED": "bright_black",
}
# Fields that other columns show, or that are of no use to people.
_NEAR_MS = 12 * 3_600_000
_QUIET = frozenset(
    {
        "job_id",
        "spec",
        "txn",
        "seq",
        "command_id",
        "requested_at_ms",
        "error",
        "evidence",
        "result",
        "content_type",
        "incarnation",
    }
)


def print_page(job: "JobDetail", attempts: Sequence["AttemptRecord"], events: Sequence["EventRecord"]) -> None:
    """The job's state and terms, its attempts, its history."""
    print_pairs(_state(job) | _terms(job))
    if attempts:
        _section("Attempts")
        print_table(_ATTEMPTS, map(_attempt, attempts))
    if events:
        _section("History")
        first_ms = events[0].decided_at_ms
        print_table(_EVENTS, (_event(event, first_ms) for event in events))


def event_summary(data: dict[str, Any], near_ms: int) -> str:
    """What a record says beyond its type, on one line; times within hours of `near_ms` without their date."""
    parts = []
    for name, value in data.items():
        if name in _QUIET or value in (None, "", [], {}):
            continue
        if name.endswith("_at_ms") and isinstance(value, int):
            parts.append(f"{name.removesuffix('_at_ms')} {_time(value, near_ms)}")
        else:
            parts.append(f"{name}={value if isinstance(value, str) else json.dumps(value)}")
    error = data.get("error")
    if isinstance(error, dict):
        parts.append(f"{error.get('type')}: {str(error.get('message')).partition(chr(10))[0]}")
    return " ".join(parts)


def _time(at_ms: int, near_ms: int) -> str:
    shown = local(at_ms, ms=True)
    return shown.split(" ")[1] if abs(at_ms - near_ms) < _NEAR_MS else shown


def _section(title: str) -> None:
    stdout().print(f"\n[bold]{title}[/]")


def _state(job: "JobDetail") -> dict[str, Any]:
    ended = None
    if job.ended_code is not None:
        by = f" by {job.ended_by}" if job.ended_by else ""
        words = f": {job.ended_reason}" if job.ended_reason else ""
        ended = f"{job.ended_code}{by}{words}"
    shown = {
        "job": job.job_id,
        "name": job.name,
        "status": status_text("CANCELLING" if job.is_cancelling else job.status.name),
        "ended": ended,
        "error": f"{job.error_type}: {job.error_message}" if job.error_type else None,
        "result": payload_text(job.result, job.result_content_type) if job.result_bytes is not None else None,
        "cancel": f"asked by {job.cancel_actor}, {ago(job.cancel_requested_at_ms)}" if job.is_cancelling else None,
        "submitted": f"{local(job.submitted_at_ms)} ({ago(job.submitted_at_ms)}) by {job.submitted_by}",
        "reason": job.submit_reason,
        "due": f"{local(job.due_at_ms)} ({ago(job.due_at_ms)})",
        "started": _started(job),
        "finished": local(job.finished_at_ms) if job.finished_at_ms else None,
    }
    return {name: value for name, value in shown.items() if value not in (None, "")}


def _started(job: "JobDetail") -> str | None:
    if job.started_at_ms is None:
        return None
    late = until(job.due_at_ms, job.started_at_ms)
    return f"{local(job.started_at_ms)} on {job.worker_id} ({late} after it was due)"


def _terms(job: "JobDetail") -> dict[str, Any]:
    terms = {
        "queue": job.queue,
        "priority": priority_text(job.priority.name),
        "tenant": job.tenant,
        "tags": ", ".join(job.tags),
        "attempts": f"{job.attempt} started",
        "retries": f"{job.retries} of {job.max_retries}" if job.max_retries else None,
        "lost": f"{job.lost} of {job.max_lost}" if job.lost else None,
        "timeout": f"{job.timeout_ms / 1000:g} s" if job.timeout_ms is not None else None,
        "deadline": local(job.deadline_ms) if job.deadline_ms else None,
        "start by": local(job.start_deadline_ms) if job.start_deadline_ms else None,
        "retry of": job.retry_of,
        "payload": payload_text(job.payload, job.content_type),
        "partition": f"{job.partition} (revision {job.revision}, seq {job.seq})",
    }
    return {name: value for name, value in terms.items() if value not in (None, "")}


def _attempt(attempt: "AttemptRecord") -> list[Any]:
    from rich.text import Text

    outcome = attempt.outcome or "RUNNING"
    error = f"{attempt.error_type}: {attempt.error_message}" if attempt.error_type else ""
    return [
        str(attempt.attempt),
        Text(outcome, style=_OUTCOME_STYLES.get(outcome, "bold blue")),
        local(attempt.started_at_ms, ms=True),
        until(attempt.started_at_ms, attempt.ended_at_ms) if attempt.ended_at_ms else "",
        attempt.worker_id,
        error,
    ]


def _event(event: "EventRecord", first_ms: int) -> list[Any]:
    cause = event.cause_source.name.lower()
    return [
        str(event.revision),
        event.type,
        local(event.decided_at_ms, ms=True),
        until(first_ms, event.decided_at_ms),
        f"{event.partition}:{event.offset}",
        cause if event.cause_offset < 0 else f"{cause} {event.cause_partition}:{event.cause_offset}",
        event_summary(dict(event.data), event.decided_at_ms),
    ]
