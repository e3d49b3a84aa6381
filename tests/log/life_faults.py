"""Faults of a job's life: its revisions, its transitions, its attempts and their limits."""

from __future__ import annotations

from mainspring.log.source import Place
from mainspring.log.verify import Check
from mainspring.schemas import (
    AttemptSucceeded,
    JobCancelled,
    JobCancelRequested,
    JobCompleted,
    JobFailed,
    JobRetryScheduled,
    JobSpec,
    JobStarted,
    JobSubmitted,
    SubmitJob,
    Txn,
)
from tests.log.conftest import Written
from tests.log.seeding import Fault, edit_event, events_at, last_event, next_event_of, started, write_raw_event


def a_missing_event(written: Written) -> Place:
    partition, offset = events_at(written, JobStarted, job_id="runs")
    topic = written.topology.events
    written.log.drop(topic, partition, offset)
    return next_event_of(written, "runs", Place(topic=topic.name, partition=partition, offset=offset))


def a_revision_that_skips(written: Written) -> Place:
    return edit_event(written, JobCancelRequested, {"job_id": "stopping"}, revision=7)


def a_job_that_was_never_submitted(written: Written) -> Place:
    topic = written.topology.events
    partition, offset = events_at(written, JobSubmitted, job_id="runs")
    written.log.drop(topic, partition, offset)
    return next_event_of(written, "runs", Place(topic=topic.name, partition=partition, offset=offset))


def a_completion_of_what_never_started(written: Written) -> Place:
    double = written.double
    report = AttemptSucceeded(
        job_id="waits", attempt=0, worker_id="w", incarnation="w.1", reported_at_ms=1, started_at_ms=1
    )
    cause = double.put(written.topology.attempts, "waits", report)
    return write_raw_event(
        written,
        JobCompleted(
            job_id="waits",
            revision=2,
            decided_at_ms=double.now_ms,
            cause=cause,
            attempt=0,
            worker_id="w",
            started_at_ms=1,
            finished_at_ms=1,
            content_type="application/json",
            txn=Txn(id=77, index=0, size=1),
        ),
    )


def a_start_after_the_end(written: Written) -> Place:
    return write_raw_event(written, started(written, "done"))


def a_start_after_a_cancel(written: Written) -> Place:
    return write_raw_event(written, started(written, "cancelled"))


def a_second_start_while_one_runs(written: Written) -> Place:
    return write_raw_event(written, started(written, "runs"))


def an_attempt_number_that_skips(written: Written) -> Place:
    return write_raw_event(written, started(written, "waits", attempt=3))


def a_start_before_its_time(written: Written) -> Place:
    due_at_ms = written.double.states["waits"].due_at_ms
    return write_raw_event(written, started(written, "waits", decided_at_ms=due_at_ms - 1))


def a_start_at_the_old_time_of_a_job_that_was_moved(written: Written) -> Place:
    due_at_ms = written.double.states["moved"].due_at_ms
    early_ms = due_at_ms - 3_000_000
    return write_raw_event(written, started(written, "moved", decided_at_ms=early_ms, due_at_ms=early_ms))


def a_success_of_a_stale_attempt(written: Written) -> Place:
    return edit_event(written, JobCompleted, {"job_id": "retried"}, attempt=1)


def a_success_of_another_worker(written: Written) -> Place:
    return edit_event(written, JobCompleted, {"job_id": "retried"}, worker_id="worker-1")


def a_retry_although_a_cancel_was_accepted(written: Written) -> Place:
    written.double.release("stopping")
    return last_event(written, "stopping")


def a_retry_too_many(written: Written) -> Place:
    return edit_event(written, JobRetryScheduled, {"job_id": "retried"}, retries=3)


def a_loss_too_many(written: Written) -> Place:
    return edit_event(written, JobRetryScheduled, {"job_id": "lost"}, lost=4)


def a_job_that_is_submitted_while_it_lives(written: Written) -> Place:
    double = written.double
    command = SubmitJob(
        command_id="again",
        actor="tester",
        requested_at_ms=double.tick(),
        spec=JobSpec(job_id="waits", name="add"),
    )
    cause = double.put(written.topology.commands, "waits", command)
    return write_raw_event(
        written,
        JobSubmitted(
            job_id="waits",
            revision=1,
            decided_at_ms=double.now_ms,
            cause=cause,
            command_id="again",
            actor="tester",
            reason="",
            requested_at_ms=1,
            seq=1_000,
            due_at_ms=double.now_ms,
            spec=command.spec,
            txn=Txn(id=79, index=0, size=1),
        ),
    )


def a_failure_of_what_waits(written: Written) -> Place:
    double = written.double
    return write_raw_event(
        written,
        JobFailed(
            job_id="waits",
            revision=2,
            decided_at_ms=double.now_ms,
            cause=double.timer("waits"),
            attempt=0,
            reason="LOST",
            txn=Txn(id=80, index=0, size=1),
        ),
    )


def a_cancel_of_what_has_ended(written: Written) -> Place:
    double, state = written.double, written.double.states["done"]
    return write_raw_event(
        written,
        JobCancelled(
            job_id="done",
            revision=state.revision + 1,
            decided_at_ms=double.now_ms,
            cause=double.timer("done"),
            cancel_code="EXPIRED",
            reason="late",
            attempt=1,
            txn=Txn(id=81, index=0, size=1),
        ),
    )


LIFE_FAULTS: list[tuple[Fault, Check]] = [
    (a_missing_event, Check.REVISION_GAP),
    (a_revision_that_skips, Check.REVISION_GAP),
    (a_job_that_was_never_submitted, Check.ORPHAN_EVENT),
    (a_completion_of_what_never_started, Check.ILLEGAL_TRANSITION),
    (a_failure_of_what_waits, Check.ILLEGAL_TRANSITION),
    (a_job_that_is_submitted_while_it_lives, Check.ILLEGAL_TRANSITION),
    (a_start_after_the_end, Check.AFTER_TERMINAL),
    (a_start_after_a_cancel, Check.AFTER_TERMINAL),
    (a_cancel_of_what_has_ended, Check.AFTER_TERMINAL),
    (a_second_start_while_one_runs, Check.STARTED_TWICE),
    (an_attempt_number_that_skips, Check.ATTEMPT_GAP),
    (a_start_before_its_time, Check.STARTED_EARLY),
    (a_start_at_the_old_time_of_a_job_that_was_moved, Check.STARTED_EARLY),
    (a_success_of_a_stale_attempt, Check.STALE_REPORT),
    (a_success_of_another_worker, Check.STALE_REPORT),
    (a_retry_although_a_cancel_was_accepted, Check.CANCEL_IGNORED),
    (a_retry_too_many, Check.LIMIT_EXCEEDED),
    (a_loss_too_many, Check.LIMIT_EXCEEDED),
]
