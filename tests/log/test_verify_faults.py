"""Is the auditor alive? Each check finds the one fault that is seeded for it, and names the record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mainspring.log.source import Place
from mainspring.log.verify import Check, VerifyProgress, verify
from mainspring.schemas import (
    AttemptClaimed,
    AttemptSucceeded,
    CancelJob,
    Cause,
    CauseSource,
    DeadLetter,
    ForwardedCommand,
    JobCancelled,
    JobCancelRequested,
    JobCompleted,
    JobFailed,
    JobRetryScheduled,
    JobSpec,
    JobStarted,
    JobState,
    JobSubmitted,
    RetryJob,
    SubmitJob,
    Txn,
)
from tests.log.conftest import Written

Fault = Callable[[Written], Place | None]


def events_at(written: Written, kind: type[Any], **wanted: Any) -> tuple[int, int]:
    return written.log.find(written.codec, written.topology.events, kind, **wanted)


def edit_event(written: Written, kind: type[Any], wanted: dict[str, Any], **changes: Any) -> Place:
    topic = written.topology.events
    partition, offset = events_at(written, kind, **wanted)
    written.log.edit(written.codec, topic, partition, offset, **changes)
    return Place(topic=topic.name, partition=partition, offset=offset)


def next_event_of(written: Written, job_id: str, after: Place) -> Place:
    """Where the job's next event stands."""
    records = written.log.records[written.topology.events.name, after.partition]
    for raw in records[after.offset + 1 :]:
        if raw is not None and raw.key == job_id.encode():
            return Place(topic=after.topic, partition=after.partition, offset=raw.offset)
    raise AssertionError(f"no event of {job_id} after {after}")


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


def last_event(written: Written, job_id: str) -> Place:
    topic = written.topology.events
    partition = written.double.partition(job_id)
    raw = [raw for raw in written.log.records[topic.name, partition] if raw is not None][-1]
    assert raw.key == job_id.encode()
    return Place(topic=topic.name, partition=partition, offset=raw.offset)


def a_command_without_a_verdict(written: Written) -> Place:
    double, topic = written.double, written.topology.commands
    command = CancelJob(job_id="waits", command_id="unheard", actor="tester", requested_at_ms=double.tick())
    cause = double.put(topic, "waits", command)
    double.submit("after")  # a later transaction moves the position past the command
    return Place(topic=topic.name, partition=cause.partition, offset=cause.offset)


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


def write_raw_event(written: Written, event: Any) -> Place:
    """Past the fold of the double, which would refuse it."""
    topic, home = written.topology.events, written.double.partition(event.job_id)
    written.log.begin()
    offset = written.log.append(topic, home, event.job_id.encode(), written.codec.encode(event), event.decided_at_ms)
    written.log.commit()
    return Place(topic=topic.name, partition=home, offset=offset)


def started(written: Written, job_id: str, **changes: Any) -> JobStarted:
    double, state = written.double, written.double.states[job_id]
    claim = AttemptClaimed(
        job_id=job_id,
        attempt=state.attempt + 1,
        worker_id="worker-9",
        incarnation="worker-9.1",
        reported_at_ms=double.now_ms,
        free_slot=True,
    )
    cause = double.put(written.topology.attempts, job_id, claim)
    event = JobStarted(
        job_id=job_id,
        revision=state.revision + 1,
        decided_at_ms=max(double.now_ms, state.due_at_ms),
        cause=cause,
        attempt=state.attempt + 1,
        worker_id="worker-9",
        incarnation="worker-9.1",
        due_at_ms=state.due_at_ms,
        txn=Txn(id=78, index=0, size=1),
    )
    return replace(event, **changes)


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


def a_counter_that_stood_still(written: Written) -> Place:
    _, first = events_at(written, JobSubmitted, job_id="waits")
    assert first
    return edit_event(written, JobSubmitted, {"job_id": "waits"}, seq=1)


def a_transaction_of_which_one_event_is_gone(written: Written) -> Place:
    topic = written.topology.events
    gone = written.log.find(written.codec, topic, JobCompleted, job_id="gone")
    written.log.drop(topic, *gone)
    partition, offset = events_at(written, JobRetryScheduled, job_id="retried")
    done = written.log.find(written.codec, topic, JobCompleted, job_id="done")
    first = min((partition, offset), done)
    return Place(topic=topic.name, partition=first[0], offset=first[1])


def a_transaction_place_that_is_taken_twice(written: Written) -> Place:
    topic = written.topology.events
    partition, offset = events_at(written, JobCompleted, job_id="done")
    raw = written.log.records[topic.name, partition][offset]
    assert raw is not None
    assert raw.value is not None
    record = written.codec.decode(raw.value)
    assert isinstance(record, JobCompleted)
    edit_event(written, JobCompleted, {"job_id": "gone"}, txn=record.txn)
    first = min(
        events_at(written, kind, job_id=job)
        for kind, job in ((JobRetryScheduled, "retried"), (JobCompleted, "done"), (JobCompleted, "gone"))
    )
    return Place(topic=topic.name, partition=first[0], offset=first[1])


def last_row(written: Written, kind: type[Any], job_id: str) -> tuple[int, int]:
    return written.log.find(written.codec, written.topology.scheduler_changelog, kind, -1, job_id=job_id)


def a_row_that_is_not_the_fold(written: Written) -> Place:
    topic = written.topology.scheduler_changelog
    partition, offset = last_row(written, JobState, "runs")
    written.log.edit(written.codec, topic, partition, offset, attempt=5)
    return Place(topic=topic.name, partition=partition, offset=offset)


def a_finished_row_that_is_not_the_fold(written: Written) -> Place:
    topic = written.topology.scheduler_changelog
    partition, offset = last_row(written, JobState, "done")
    written.log.edit(written.codec, topic, partition, offset, lost=2)
    return Place(topic=topic.name, partition=partition, offset=offset)


def a_lost_table_update(written: Written) -> Place:
    topic = written.topology.scheduler_changelog
    written.log.drop(topic, *last_row(written, JobState, "done"))
    partition, offset = last_row(written, JobState, "done")
    return Place(topic=topic.name, partition=partition, offset=offset)


def a_specification_row_that_is_not_what_was_submitted(written: Written) -> Place:
    topic = written.topology.scheduler_changelog
    partition, offset = last_row(written, JobSpec, "runs")
    written.log.edit(written.codec, topic, partition, offset, name="other")
    return Place(topic=topic.name, partition=partition, offset=offset)


def an_unfinished_job_without_a_row(written: Written) -> Place:
    topic, home = written.topology.scheduler_changelog, written.double.partition("waits")
    written.log.append(topic, home, b"Jwaits", None, 1)
    partition, offset = events_at(written, JobSubmitted, job_id="waits")
    return Place(topic=written.topology.events.name, partition=partition, offset=offset)


def an_unfinished_job_without_a_specification(written: Written) -> Place:
    topic, home = written.topology.scheduler_changelog, written.double.partition("waits")
    written.log.append(topic, home, b"Swaits", None, 1)
    partition, offset = last_row(written, JobState, "waits")
    return Place(topic=topic.name, partition=partition, offset=offset)


def a_row_of_a_job_that_no_event_tells_of(written: Written) -> Place:
    topic = written.topology.scheduler_changelog
    state = replace(written.double.states["waits"], job_id="stranger")
    home = written.double.partition("stranger")
    offset = written.log.append(topic, home, b"Jstranger", written.codec.encode(state), 1)
    return Place(topic=topic.name, partition=home, offset=offset)


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


FAULTS: list[tuple[Fault, Check]] = [
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
    (a_counter_that_stood_still, Check.SEQ_ORDER),
    (a_transaction_of_which_one_event_is_gone, Check.TORN_TRANSACTION),
    (a_transaction_place_that_is_taken_twice, Check.TORN_TRANSACTION),
    (a_row_that_is_not_the_fold, Check.TABLE_DIFFERS),
    (a_finished_row_that_is_not_the_fold, Check.TABLE_DIFFERS),
    (a_lost_table_update, Check.TABLE_DIFFERS),
    (a_specification_row_that_is_not_what_was_submitted, Check.TABLE_DIFFERS),
    (an_unfinished_job_without_a_row, Check.TABLE_ABSENT),
    (an_unfinished_job_without_a_specification, Check.TABLE_ABSENT),
    (a_row_of_a_job_that_no_event_tells_of, Check.TABLE_EXTRA),
]


@pytest.mark.parametrize(("fault", "check"), FAULTS, ids=lambda value: getattr(value, "__name__", None))
def test_the_auditor_finds_the_seeded_fault_and_names_its_record(written: Written, fault: Fault, check: Check) -> None:
    # given a log that is sound
    assert verify(written.log, written.codec).ok

    # when one fault is seeded in it
    place = fault(written)
    report = verify(written.log, written.codec)

    # then it is found, and the first record at fault is named
    assert not report.ok
    found = {finding.check: finding for finding in report.findings}
    assert check in found, [str(finding) for finding in report.findings]
    assert found[check].place == place, str(found[check])


def test_every_check_of_the_log_has_a_seeded_fault() -> None:
    of_the_view = {Check.VIEW_DIFFERS, Check.VIEW_ABSENT, Check.VIEW_EXTRA}  # seeded in test_verify_view.py
    of_schedules = {Check.LEDGER}  # seeded in test_verify_schedules.py
    assert {check for _, check in FAULTS} == set(Check) - of_the_view - of_schedules


def test_a_sound_log_has_no_findings_and_all_is_counted(written: Written) -> None:
    report = verify(written.log, written.codec)

    assert report.ok, [str(finding) for finding in report.findings]
    assert report.jobs == 14
    assert report.jobs_by_status == {
        "COMPLETED": 5,
        "FAILED": 1,
        "TIMED_OUT": 1,
        "CANCELLED": 2,
        "PENDING": 3,
        "RUNNING": 2,
    }
    assert report.table_rows == 13
    assert report.table_rows_evicted == 1
    assert report.rejections_by_code == {"UNKNOWN_JOB": 1, "ALREADY_TERMINAL": 1}
    assert [line.job_id for line in report.rejections] == ["never-there", "done"]
    assert report.records["events"] + report.gaps["events"] == sum(
        len(written.log.records[written.topology.events.name, p]) for p in range(2)
    )


def test_a_hundred_faults_of_one_kind_are_one_finding_with_their_number(written: Written) -> None:
    for _ in range(100):
        a_report_on_another_partition(written)

    (finding,) = verify(written.log, written.codec).findings

    assert (finding.check, finding.count) == (Check.WRONG_PARTITION, 100)


def test_a_poison_command_with_a_dead_letter_is_listed_and_is_no_fault(written: Written) -> None:
    # given a record that nobody can read, put aside by the scheduler
    topic = written.topology.commands
    offset = written.log.append(topic, 0, b"poison", b"garbage", 1)
    letter = DeadLetter(
        topic=topic.name,
        partition=0,
        offset=offset,
        key=b"poison",
        reason="UNDECODABLE",
        detail="no magic byte",
        value=b"garbage",
        value_bytes=7,
        recorded_by="double",
        recorded_at_ms=1,
    )
    written.log.append(written.topology.dead_letters, 0, b"poison", written.codec.encode(letter), 1)

    report = verify(written.log, written.codec)

    assert report.ok, [str(finding) for finding in report.findings]
    assert report.dead_letter_count == 1
    assert report.dead_letters[0].of == Place(topic=topic.name, partition=0, offset=offset)


def test_a_command_that_no_scheduler_has_read_yet_is_pending_and_no_fault(written: Written) -> None:
    command = CancelJob(job_id="waits", command_id="later", actor="tester", requested_at_ms=1)
    written.double.put(written.topology.commands, "waits", command)

    report = verify(written.log, written.codec)

    assert report.ok
    assert report.commands_pending == 1


def test_a_command_that_was_sent_twice_has_one_verdict_and_that_is_right(written: Written) -> None:
    # given the same command in the log twice, and a scheduler that has read past both
    double, topic = written.double, written.topology.commands
    partition, offset = written.log.find(written.codec, topic, CancelJob, job_id="cancelled")
    raw = written.log.records[topic.name, partition][offset]
    assert raw is not None
    assert raw.value is not None
    double.put(topic, "cancelled", written.codec.decode(raw.value))
    double.submit("after")

    assert verify(written.log, written.codec).ok


def test_a_command_that_was_sent_on_and_a_retry_that_was_repeated_are_answered(written: Written) -> None:
    # given a cancel that went astray under another key and was carried out at home
    double, topology, log = written.double, written.topology, written.log
    home = double.partition("waits")
    command = CancelJob(job_id="waits", command_id="astray", actor="tester", requested_at_ms=double.tick())
    astray = double.put(topology.commands, "waits", command, partition=1 - home)
    log.patch(topology.commands, astray.partition, astray.offset, key=b"another-key")
    forwarded = ForwardedCommand(
        key="another-key",
        topic=topology.commands.name,
        partition=astray.partition,
        offset=astray.offset,
        value=written.codec.encode(command),
    )
    offset = log.append(topology.followups, home, b"waits", written.codec.encode(forwarded), double.tick())
    double.emit(
        JobCancelled(
            job_id="waits",
            revision=2,
            decided_at_ms=double.tick(),
            cause=Cause(source=CauseSource.FOLLOWUPS, partition=home, offset=offset),
            cancel_code="REQUESTED",
            command_id="astray",
            actor="tester",
            reason="",
            attempt=0,
            txn=Txn(id=0, index=0, size=0),
        )
    )
    # and a retry that the client sent twice, so that its submit was sent on twice and accepted once
    partition, at = log.find(written.codec, topology.commands, RetryJob, job_id="failed")
    repeated = log.records[topology.commands.name, partition][at]
    partition_, at_ = log.find(written.codec, topology.followups, SubmitJob)
    submit = log.records[topology.followups.name, partition_][at_]
    assert repeated is not None
    assert repeated.value is not None
    assert submit is not None
    double.put(topology.commands, "failed", written.codec.decode(repeated.value))
    last = log.append(topology.followups, partition_, submit.key, submit.value, double.tick())
    for partition in range(2):
        double.reads(topology.followups, partition, last + 1)
    double.submit("after")

    report = verify(log, written.codec)

    assert report.ok, [str(finding) for finding in report.findings]


def test_causes_that_retention_removed_are_unverifiable_and_no_fault(written: Written) -> None:
    topic = written.topology.attempts
    for partition in range(2):
        records = written.log.records[topic.name, partition]
        written.log.starts[topic.name, partition] = len(records)
        records[:] = [None] * len(records)

    report = verify(written.log, written.codec)

    assert report.ok, [str(finding) for finding in report.findings]
    assert report.unverifiable["cause_past_retention"] == report.records["events"] - 18 - 1 - 2


def test_an_id_that_was_forgotten_may_be_submitted_again(written: Written) -> None:
    written.double.submit("gone")

    report = verify(written.log, written.codec)

    assert report.ok, [str(finding) for finding in report.findings]
    assert report.resubmitted == 1


def test_progress_is_told_up_to_the_end(written: Written) -> None:
    told: list[VerifyProgress] = []

    report = verify(written.log, written.codec, progress=told.append)

    assert told[-1].records == report.records_total
    assert [step.records for step in told] == sorted(step.records for step in told)
