"""What the auditor counts and tells of a log that is sound, however unusual."""

from __future__ import annotations

from mainspring.log.source import Place
from mainspring.log.verify import VerifyProgress, verify
from mainspring.schemas import CancelJob, RetryJob, SubmitJob
from tests.log.conftest import Written
from tests.log.seeding import put_aside


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


def test_a_poison_command_with_a_dead_letter_is_listed_and_is_no_fault(written: Written) -> None:
    # given a record that nobody can read, put aside by the scheduler
    topic = written.topology.commands
    offset = written.log.append(topic, 0, b"poison", b"garbage", 1)
    put_aside(written, topic, offset, b"poison", at_ms=1)

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
    came = double.cancel_astray("waits")
    log.patch(topology.commands, came.partition, came.offset, key=b"another-key")
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
