"""A job's place in its queue, by the scheduler's own rules over the rows of its partition."""

from dataclasses import replace
from typing import Any

from mainspring.cli.job_explain import sentence, why_it_ended
from mainspring.cli.table_row import place_in_queue
from mainspring.processors.core.explain import Finished, Offered, Parked, Ready, Running, ScheduledUntil, WhyNot
from mainspring.schemas import (
    AttemptError,
    Cause,
    CauseSource,
    Dispatch,
    JobCancelled,
    JobFailed,
    JobState,
    JobStatus,
    Priority,
    Txn,
)
from mainspring.settings import Settings

NOW_MS = 1_800_000_000_000


def waiting(job_id: str, seq: int, priority: Priority = Priority.MEDIUM, **columns: object) -> JobState:
    state = JobState(
        job_id=job_id,
        revision=1,
        seq=seq,
        status=JobStatus.PENDING,
        queue="default",
        priority=priority,
        tenant="",
        submitted_at_ms=NOW_MS - 10_000,
        due_at_ms=NOW_MS - 10_000,
        attempt=0,
        retries=0,
        lost=0,
        submit_command_id=f"c-{job_id}",
        dispatch=Dispatch(),
    )
    return replace(state, **columns)  # type: ignore[arg-type]  # columns by name


def place(*states: JobState) -> Ready:
    """The place of the last of the states."""
    found = place_in_queue(Settings(), 0, {state.job_id: state for state in states}, states[-1].job_id, NOW_MS)
    assert isinstance(found, Ready)
    return found


def test_a_job_waits_behind_those_of_higher_priority_and_those_submitted_before() -> None:
    found = place(
        waiting("a", 0), waiting("urgent", 1, Priority.CRITICAL), waiting("low", 2, Priority.LOW), waiting("me", 3)
    )

    assert found.ahead == 2


def test_offers_and_runs_are_told_as_in_flight() -> None:
    running = waiting("r", 0, status=JobStatus.RUNNING, attempt=1, started_at_ms=NOW_MS, worker_id="w", incarnation="i")
    offered = waiting("o", 1, dispatch=Dispatch(offered_attempt=1, offer=1, offered_at_ms=NOW_MS))

    found = place(running, offered, waiting("me", 2))

    assert (found.ahead, found.in_flight) == (0, 2)


def test_what_is_not_due_what_has_ended_and_what_has_expired_is_ahead_of_nobody() -> None:
    found = place(
        waiting("later", 0, due_at_ms=NOW_MS + 1),
        waiting("done", 1, status=JobStatus.COMPLETED, finished_at_ms=NOW_MS),
        waiting("expired", 2, start_deadline_ms=NOW_MS - 1),
        waiting("me", 3),
    )

    assert found.ahead == 0


def test_every_reason_is_a_sentence_with_times_as_people_read_them() -> None:
    reasons: list[WhyNot] = [
        ScheduledUntil(due_at_ms=NOW_MS, after_attempt=0),
        ScheduledUntil(due_at_ms=NOW_MS, after_attempt=2),
        Parked(since_ms=NOW_MS, until_ms=NOW_MS),
        Offered(attempt=1, offer=1, since_ms=NOW_MS),
        Running(attempt=1, worker_id="w-1", since_ms=NOW_MS, cancel_requested=True),
        Ready(queue="mail", ahead=3, in_flight=2),
        Finished(status=JobStatus.FAILED, finished_at_ms=NOW_MS),
    ]

    for reason in reasons:
        text = sentence(reason)
        assert text[0].isupper()
        assert text.endswith((".", "?"))
        assert str(NOW_MS) not in text
    assert "behind 3 others" in sentence(reasons[5])
    assert "asked to stop" in sentence(reasons[4])


def test_the_event_that_ended_a_job_says_why() -> None:
    # given how three jobs ended
    decided: dict[str, Any] = {
        "job_id": "j",
        "revision": 3,
        "decided_at_ms": NOW_MS,
        "cause": Cause(source=CauseSource.COMMANDS, partition=0, offset=1),
        "txn": Txn(id=1, index=0, size=1),
    }
    cancelled = JobCancelled(
        **decided, attempt=0, cancel_code="REQUESTED", command_id="c", actor="ann", reason="not needed"
    )
    failed = JobFailed(
        **decided, attempt=2, reason="RETRIES_EXHAUSTED", error=AttemptError(type="OSError", message="no\nx")
    )

    # then
    assert why_it_ended(cancelled) == {"ended": "REQUESTED by ann: not needed"}
    assert why_it_ended(failed) == {"error": "OSError: no", "ended": "RETRIES_EXHAUSTED"}
