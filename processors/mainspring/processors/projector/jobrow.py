"""One row of `jobs` while it is being changed: the state that `evolve` folds, and what only the view keeps."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mainspring.processors.projector.text import clean, clean_or_none
from mainspring.schemas.common import CancelRequest, JobStatus, Priority
from mainspring.schemas.events import JobSubmitted
from mainspring.schemas.tables import Dispatch, JobState

__all__ = ["NO_DISPATCH", "JobRow", "state_of"]

NO_DISPATCH = Dispatch()
"""Dispatch columns are no part of the fold: no event carries them."""


@dataclass(slots=True, kw_only=True)
class JobRow:
    """One job as the view will show it."""

    state: JobState
    partition: int
    name: str
    tags: str
    schedule_id: str | None
    retry_of: str | None
    submitted_by: str
    submit_reason: str
    timeout_ms: int | None
    max_retries: int
    max_lost: int
    ended_code: str | None = None
    ended_by: str | None = None
    ended_reason: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    result: bytes | None = None
    result_bytes: int | None = None
    result_content_type: str | None = None
    last_event_type: str
    last_event_offset: int
    last_event_at_ms: int

    @classmethod
    def submitted(cls, event: JobSubmitted, state: JobState, partition: int, offset: int) -> "JobRow":
        """The row of a job that has just been accepted."""
        spec = event.spec
        return cls(
            state=state,
            partition=partition,
            name=clean(spec.name),
            tags=json.dumps(spec.tags, ensure_ascii=False) if spec.tags else "[]",
            schedule_id=clean_or_none(spec.schedule_id),
            retry_of=clean_or_none(spec.retry_of),
            submitted_by=clean(event.actor),
            submit_reason=clean(event.reason),
            timeout_ms=spec.timeout_ms,
            max_retries=spec.max_retries,
            max_lost=spec.max_lost,
            last_event_type=type(event).__name__,
            last_event_offset=offset,
            last_event_at_ms=event.decided_at_ms,
        )

    @classmethod
    def loaded(cls, row: Mapping[Any, Any]) -> "JobRow":
        """The row as the database has it, without the result: only terminal jobs have one, and those are final."""
        return cls(
            state=state_of(row),
            **{name: row[name] for name in _EXTRAS},
        )

    def values(self) -> dict[str, Any]:
        """All columns, by name."""
        state, cancel = self.state, self.state.cancel
        return {
            "job_id": state.job_id,
            "partition": self.partition,
            "revision": state.revision,
            "seq": state.seq,
            "status": state.status.name,
            "name": self.name,
            "queue": state.queue,
            "priority": int(state.priority),
            "tenant": state.tenant,
            "tags": self.tags,
            "schedule_id": self.schedule_id,
            "retry_of": self.retry_of,
            "submit_command_id": clean(state.submit_command_id),
            "reschedule_command_id": clean_or_none(state.reschedule_command_id),
            "submitted_by": self.submitted_by,
            "submit_reason": self.submit_reason,
            "submitted_at_ms": state.submitted_at_ms,
            "due_at_ms": state.due_at_ms,
            "delay_ms": state.delay_ms,
            "deadline_ms": state.deadline_ms,
            "start_deadline_ms": state.start_deadline_ms,
            "timeout_ms": self.timeout_ms,
            "max_retries": self.max_retries,
            "max_lost": self.max_lost,
            "attempt": state.attempt,
            "retries": state.retries,
            "lost": state.lost,
            "worker_id": clean_or_none(state.worker_id),
            "incarnation": clean_or_none(state.incarnation),
            "started_at_ms": state.started_at_ms,
            "finished_at_ms": state.finished_at_ms,
            "cancel_command_id": clean(cancel.command_id) if cancel else None,
            "cancel_actor": clean(cancel.actor) if cancel else None,
            "cancel_reason": clean(cancel.reason) if cancel else None,
            "cancel_requested_at_ms": cancel.requested_at_ms if cancel else None,
            "ended_code": self.ended_code,
            "ended_by": self.ended_by,
            "ended_reason": self.ended_reason,
            "error_type": self.error_type,
            "error_message": self.error_message,
            "result_bytes": self.result_bytes,
            "result_content_type": self.result_content_type,
            "result": self.result,
            "last_event_type": self.last_event_type,
            "last_event_offset": self.last_event_offset,
            "last_event_at_ms": self.last_event_at_ms,
        }


_EXTRAS = tuple(name for name in JobRow.__dataclass_fields__ if name not in {"state", "result"})


def state_of(row: Mapping[Any, Any]) -> JobState:
    """The job's state as its row tells it; it equals the fold of the job's events up to `last_event_offset`."""
    cancel = None
    if row["cancel_command_id"] is not None:
        cancel = CancelRequest(
            command_id=row["cancel_command_id"],
            actor=row["cancel_actor"],
            reason=row["cancel_reason"],
            requested_at_ms=row["cancel_requested_at_ms"],
        )
    return JobState(
        job_id=row["job_id"],
        revision=row["revision"],
        seq=row["seq"],
        status=JobStatus[row["status"]],
        queue=row["queue"],
        priority=Priority(row["priority"]),
        tenant=row["tenant"],
        submitted_at_ms=row["submitted_at_ms"],
        due_at_ms=row["due_at_ms"],
        delay_ms=row["delay_ms"],
        start_deadline_ms=row["start_deadline_ms"],
        deadline_ms=row["deadline_ms"],
        attempt=row["attempt"],
        retries=row["retries"],
        lost=row["lost"],
        worker_id=row["worker_id"],
        incarnation=row["incarnation"],
        started_at_ms=row["started_at_ms"],
        finished_at_ms=row["finished_at_ms"],
        submit_command_id=row["submit_command_id"],
        reschedule_command_id=row["reschedule_command_id"],
        cancel=cancel,
        dispatch=NO_DISPATCH,
    )
