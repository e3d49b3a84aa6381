"""From a batch of events to the rows they change; no database and no Kafka in here."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mainspring.processors.core.errors import CoreError
from mainspring.processors.core.job.evolve import evolve
from mainspring.processors.core.job.transitions import is_terminal
from mainspring.processors.projector.eventdata import event_row, spec_data
from mainspring.processors.projector.jobrow import JobRow
from mainspring.processors.projector.placed import InapplicableEventError, Placed
from mainspring.processors.projector.schedulefold import ScheduleChanges, ScheduleFold
from mainspring.processors.projector.schedulerow import ScheduleRow
from mainspring.processors.projector.text import ID_CHARS, clean, clean_or_none
from mainspring.schemas.codes import FailReason
from mainspring.schemas.common import AttemptError, JobStatus
from mainspring.schemas.events import (
    CommandRejected,
    JobCancelled,
    JobCompleted,
    JobFailed,
    JobRetryScheduled,
    JobStarted,
    JobSubmitted,
    JobTimedOut,
    ReportRefused,
)
from mainspring.schemas.records import SCHEDULE_EVENT_TYPES, JobEvent
from mainspring.schemas.tables import JobState

__all__ = ["Changes", "fold_batch"]

Row = dict[str, Any]


@dataclass(slots=True)
class Changes:
    """What one batch changes, in rows. `jobs` holds each touched job once, however many events it had."""

    jobs: dict[str, JobRow] = field(default_factory=dict)
    specs: dict[str, Row] = field(default_factory=dict)
    tags: dict[str, tuple[str, ...]] = field(default_factory=dict)
    events: list[Row] = field(default_factory=list)
    started: dict[tuple[str, int], Row] = field(default_factory=dict)
    ended: dict[tuple[str, int], Row] = field(default_factory=dict)
    rejections: list[Row] = field(default_factory=list)
    unreadable: list[Row] = field(default_factory=list)
    resubmitted: set[str] = field(default_factory=set)
    counters: dict[tuple[str, str], int] = field(default_factory=dict)
    schedules: ScheduleChanges = field(default_factory=ScheduleChanges)

    def count(self, queue: str, status: JobStatus, by: int) -> None:
        """Moves the number of jobs of a queue and status."""
        key = (queue, status.name)
        self.counters[key] = self.counters.get(key, 0) + by


@dataclass(slots=True, kw_only=True)
class _Fold:
    known: Mapping[str, JobRow]
    payload_bytes: int
    result_bytes: int
    changes: Changes

    def apply(self, event: JobEvent, placed: Placed) -> None:
        if type(event) is CommandRejected:
            self._reject(placed, event)
        elif type(event) is JobSubmitted:
            self._submit(placed, event)
        elif type(event) is not ReportRefused:
            self._change(event, placed)
        self.changes.events.append(_event_row(event, placed))

    def _row(self, job_id: str) -> JobRow | None:
        return self.changes.jobs.get(job_id) or self.known.get(job_id)

    def _submit(self, placed: Placed, event: JobSubmitted) -> None:
        before = self._row(event.job_id)
        changes, job_id = self.changes, event.job_id
        if before is not None:
            if not is_terminal(before.state.status):
                raise InapplicableEventError(f"{job_id} is submitted again while it is {before.state.status.name}")
            if event.seq <= before.state.seq:
                raise InapplicableEventError(f"{job_id} was submitted already: the event is a copy of an older one")
            # The scheduler forgets finished jobs by its history limit; then the id may live again.
            changes.resubmitted.add(job_id)
            for attempts in (changes.started, changes.ended):
                for key in [key for key in attempts if key[0] == job_id]:
                    del attempts[key]
            changes.count(before.state.queue, before.state.status, -1)
        state = _evolved(None, event)
        changes.jobs[job_id] = JobRow.submitted(event, state, placed.partition, placed.offset)
        changes.count(state.queue, state.status, 1)
        spec = event.spec
        changes.specs[job_id] = {
            "job_id": job_id,
            "content_type": clean(spec.content_type),
            "payload_bytes": len(spec.payload),
            "payload": spec.payload[: self.payload_bytes],
            "spec": spec_data(spec),
        }
        changes.tags[job_id] = tuple(dict.fromkeys(clean(tag) for tag in spec.tags))

    def _change(self, event: JobEvent, placed: Placed) -> None:
        row = self._row(event.job_id)
        if row is None:
            raise InapplicableEventError(f"{type(event).__name__} for {event.job_id}, which the view does not know")
        before = row.state
        state = _evolved(before, event)
        if state.status is not before.status:
            self.changes.count(before.queue, before.status, -1)
            self.changes.count(state.queue, state.status, 1)
        row.state = state
        row.last_event_type = type(event).__name__
        row.last_event_offset = placed.offset
        row.last_event_at_ms = event.decided_at_ms
        self.changes.jobs[event.job_id] = row
        if type(event) is JobStarted:
            self._start(event)
            return
        self._end(row, event, was_running=before.status is JobStatus.RUNNING)

    def _end(self, row: JobRow, event: JobEvent, *, was_running: bool) -> None:
        """What an event that ends an attempt or the job adds to them."""
        match event:
            case JobCompleted():
                self._completed(row, event)
            case JobRetryScheduled():
                self._retried(row, event)
            case JobFailed():
                self._failed(row, event, was_running=was_running)
            case JobTimedOut():
                row.ended_code = "TIMED_OUT"
                self._end_attempt(event.job_id, event.attempt, event.decided_at_ms, "TIMED_OUT")
            case JobCancelled():
                self._cancelled(row, event, was_running=was_running)
            case _:
                pass  # A cancel was asked for or the job got another time: its state tells it.

    def _start(self, event: JobStarted) -> None:
        self.changes.started[event.job_id, event.attempt] = {
            "job_id": event.job_id,
            "attempt": event.attempt,
            "worker_id": clean(event.worker_id),
            "incarnation": clean(event.incarnation),
            "due_at_ms": event.due_at_ms,
            "started_at_ms": event.decided_at_ms,
            "ended_at_ms": None,
            "outcome": None,
            "retry_delay_ms": None,
            "error_type": None,
            "error_message": None,
            "error_traceback": None,
        }

    def _completed(self, row: JobRow, event: JobCompleted) -> None:
        if event.result is not None:
            row.result_bytes = len(event.result)
            row.result = event.result[: self.result_bytes]
        row.result_content_type = clean(event.content_type)
        self._end_attempt(event.job_id, event.attempt, event.finished_at_ms, "SUCCEEDED")

    def _failed(self, row: JobRow, event: JobFailed, *, was_running: bool) -> None:
        row.ended_code = clean(event.reason)
        _keep_error(row, event.error)
        if was_running:
            outcome = "LOST" if event.reason == FailReason.LOST else "FAILED"
            self._end_attempt(event.job_id, event.attempt, event.decided_at_ms, outcome, event.error)

    def _cancelled(self, row: JobRow, event: JobCancelled, *, was_running: bool) -> None:
        row.ended_code = clean(event.cancel_code)
        row.ended_by = clean_or_none(event.actor)
        row.ended_reason = clean(event.reason)
        if was_running:
            self._end_attempt(event.job_id, event.attempt, event.decided_at_ms, "CANCELLED")

    def _retried(self, row: JobRow, event: JobRetryScheduled) -> None:
        _keep_error(row, event.error)
        self._end_attempt(
            event.job_id, event.attempt, event.decided_at_ms, clean(event.reason)[:16], event.error, event.delay_ms
        )

    def _end_attempt(
        self,
        job_id: str,
        attempt: int,
        ended_at_ms: int,
        outcome: str,
        error: AttemptError | None = None,
        retry_delay_ms: int | None = None,
    ) -> None:
        end: Row = {
            "ended_at_ms": ended_at_ms,
            "outcome": outcome,
            "retry_delay_ms": retry_delay_ms,
            "error_type": clean(error.type) if error else None,
            "error_message": clean(error.message) if error else None,
            "error_traceback": clean_or_none(error.traceback) if error else None,
        }
        started = self.changes.started.get((job_id, attempt))
        if started is not None:
            started.update(end)
        else:
            self.changes.ended[job_id, attempt] = {"of_job": job_id, "of_attempt": attempt, **end}

    def _reject(self, placed: Placed, event: CommandRejected) -> None:
        self.changes.rejections.append(
            {
                "partition": placed.partition,
                "offset": placed.offset,
                "job_id": clean(event.job_id)[:ID_CHARS],
                "command_id": clean(event.command_id),
                "command": clean(event.command),
                "actor": clean(event.actor),
                "code": clean(event.reject_code),
                "message": clean(event.message),
                "status": clean_or_none(event.status),
                "decided_at_ms": event.decided_at_ms,
            }
        )


def fold_batch(
    batch: Iterable[Placed],
    known: Mapping[str, JobRow],
    schedules: Mapping[str, ScheduleRow],
    *,
    payload_bytes: int,
    result_bytes: int,
) -> Changes:
    """The rows that the events change. `known` and `schedules` hold the rows they touch, as the database has them.

    An event that does not follow from the state before it goes to `Changes.unreadable`, and the rest goes on: one
    wrong record must not blind the view. The given rows are changed in place, so they serve one batch only.
    """
    of_schedules = ScheduleFold(schedules)
    changes = Changes(schedules=of_schedules.changes)
    of_jobs = _Fold(known=known, payload_bytes=payload_bytes, result_bytes=result_bytes, changes=changes)
    for placed in batch:
        event = placed.event
        is_of_schedule = type(event) in SCHEDULE_EVENT_TYPES
        try:
            if is_of_schedule:
                of_schedules.apply(event, placed)  # type: ignore[arg-type]  # SCHEDULE_EVENT_TYPES holds the members of ScheduleEvent
            else:
                of_jobs.apply(event, placed)  # type: ignore[arg-type]  # what else is an Event is a JobEvent
        except InapplicableEventError as error:
            key: str = event.schedule_id if is_of_schedule else event.job_id  # type: ignore[union-attr]  # as above
            changes.unreadable.append(
                {
                    "partition": placed.partition,
                    "offset": placed.offset,
                    "reason": "INAPPLICABLE",
                    "detail": clean(str(error)),
                    "key": key.encode(),
                }
            )
    return changes


def _evolved(state: JobState | None, event: JobEvent) -> JobState:
    try:
        after = evolve(state, event)
    except CoreError as error:
        raise InapplicableEventError(str(error)) from error
    if after is None:
        raise InapplicableEventError(f"{type(event).__name__} of {event.job_id} leaves no job")
    return after


def _event_row(event: JobEvent, placed: Placed) -> Row:
    job_id = event.job_id
    row = event_row(placed)
    row["job_id"] = job_id if len(job_id) < ID_CHARS and "\x00" not in job_id else clean(job_id)[:ID_CHARS]
    return row


def _keep_error(row: JobRow, error: AttemptError | None) -> None:
    if error is not None:
        row.error_type = clean(error.type)
        row.error_message = clean(error.message)
