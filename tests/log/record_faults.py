"""Faults of single records: what does not decode, is in the wrong place, or has no cause that fits."""

from __future__ import annotations

from mainspring.log.source import Place
from mainspring.log.verify import Check
from mainspring.schemas import (
    AttemptClaimed,
    AttemptSucceeded,
    CancelJob,
    Cause,
    CauseSource,
    JobRetryScheduled,
    JobStarted,
    JobSubmitted,
    Txn,
)
from tests.log.conftest import Written
from tests.log.seeding import Fault, edit_event, events_at, last_event


def an_event_that_does_not_decode(written: Written) -> Place:
    partition, offset = events_at(written, JobSubmitted, job_id="waits")
    written.log.patch(written.topology.events, partition, offset, value=b"\x00\x00\x00\x00\x01")
    return Place(topic=written.topology.events.name, partition=partition, offset=offset)


def a_report_among_the_events(written: Written) -> Place:
    topic = written.topology.events
    report = AttemptSucceeded(
        job_id="done", attempt=1, worker_id="w", incarnation="w.1", reported_at_ms=1, started_at_ms=1
    )
    partition = written.double.partition("done")
    offset = written.log.append(topic, partition, b"done", written.codec.encode(report), 1)
    return Place(topic=topic.name, partition=partition, offset=offset)


def a_key_that_is_not_the_job(written: Written) -> Place:
    partition, offset = events_at(written, JobStarted, job_id="runs")
    written.log.patch(written.topology.events, partition, offset, key=b"walks")
    return Place(topic=written.topology.events.name, partition=partition, offset=offset)


def an_event_on_another_partition(written: Written) -> Place:
    topic = written.topology.events
    partition, offset = events_at(written, JobSubmitted, job_id="waits")
    raw = written.log.records[topic.name, partition][offset]
    assert raw is not None
    moved = written.log.append(topic, 1 - partition, raw.key, raw.value, 1)
    return Place(topic=topic.name, partition=1 - partition, offset=moved)


def a_report_on_another_partition(written: Written) -> Place:
    topic = written.topology.attempts
    partition = 1 - written.double.partition("runs")
    claim = AttemptClaimed(job_id="runs", attempt=9, worker_id="w", incarnation="w.1", reported_at_ms=1, free_slot=True)
    offset = written.log.append(topic, partition, b"runs", written.codec.encode(claim), 1)
    return Place(topic=topic.name, partition=partition, offset=offset)


def a_cause_behind_the_end(written: Written) -> Place:
    partition, _ = events_at(written, JobStarted, job_id="runs")
    cause = Cause(source=CauseSource.ATTEMPTS, partition=partition, offset=10_000)
    return edit_event(written, JobStarted, {"job_id": "runs"}, cause=cause)


def a_cause_that_was_aborted(written: Written) -> Place:
    topic = written.topology.attempts
    partition, offset = written.log.find(written.codec, topic, AttemptClaimed, job_id="runs")
    written.log.drop(topic, partition, offset)
    partition, offset = events_at(written, JobStarted, job_id="runs")
    return Place(topic=written.topology.events.name, partition=partition, offset=offset)


def a_cause_on_another_partition(written: Written) -> Place:
    partition, _ = events_at(written, JobStarted, job_id="runs")
    cause = Cause(source=CauseSource.ATTEMPTS, partition=1 - partition, offset=0)
    return edit_event(written, JobStarted, {"job_id": "runs"}, cause=cause)


def a_cause_about_another_job(written: Written) -> Place:
    topic = written.topology.attempts
    home = written.double.partition("runs")
    other = next(
        raw.offset
        for raw in written.log.records[topic.name, home]
        if raw is not None and raw.key not in {b"runs", None}
    )
    cause = Cause(source=CauseSource.ATTEMPTS, partition=home, offset=other)
    return edit_event(written, JobStarted, {"job_id": "runs"}, cause=cause)


def a_timer_of_another_partition(written: Written) -> Place:
    partition, _ = events_at(written, JobRetryScheduled, reason="LOST")
    cause = Cause(source=CauseSource.TIMER, partition=1 - partition, offset=-1)
    return edit_event(written, JobRetryScheduled, {"reason": "LOST"}, cause=cause)


def an_input_processed_twice(written: Written) -> Place:
    double = written.double
    partition, offset = written.log.find(written.codec, written.topology.commands, CancelJob, job_id="stopping")
    state = double.states["stopping"]
    double.emit(
        JobRetryScheduled(
            job_id="stopping",
            revision=state.revision + 1,
            decided_at_ms=double.now_ms,
            cause=Cause(source=CauseSource.COMMANDS, partition=partition, offset=offset),
            attempt=1,
            reason="RELEASED",
            delay_ms=0,
            due_at_ms=double.now_ms,
            retries=0,
            lost=0,
            txn=Txn(id=0, index=0, size=0),
        )
    )
    return last_event(written, "stopping")


def a_command_without_a_verdict(written: Written) -> Place:
    double, topic = written.double, written.topology.commands
    command = CancelJob(job_id="waits", command_id="unheard", actor="tester", requested_at_ms=double.tick())
    cause = double.put(topic, "waits", command)
    double.submit("after")  # a later transaction moves the position past the command
    return Place(topic=topic.name, partition=cause.partition, offset=cause.offset)


RECORD_FAULTS: list[tuple[Fault, Check]] = [
    (an_event_that_does_not_decode, Check.UNREADABLE),
    (a_report_among_the_events, Check.UNEXPECTED_TYPE),
    (a_key_that_is_not_the_job, Check.BAD_KEY),
    (an_event_on_another_partition, Check.WRONG_PARTITION),
    (a_report_on_another_partition, Check.WRONG_PARTITION),
    (a_cause_behind_the_end, Check.CAUSE_ABSENT),
    (a_cause_that_was_aborted, Check.CAUSE_ABSENT),
    (a_cause_on_another_partition, Check.CAUSE_FOREIGN),
    (a_cause_about_another_job, Check.CAUSE_FOREIGN),
    (a_timer_of_another_partition, Check.CAUSE_FOREIGN),
    (an_input_processed_twice, Check.DECIDED_TWICE),
    (a_command_without_a_verdict, Check.NO_VERDICT),
]
