"""History, state at a time, dead letters, captured output: what the log tells when it is asked."""

from __future__ import annotations

import pytest

from mainspring.log import LogError, dead_letters, history, job_at, job_logs, state_at, states_at
from mainspring.schemas import (
    AttemptClaimed,
    AttemptHeartbeat,
    ClaimRefused,
    HeldAttempt,
    JobCompleted,
    JobRetryScheduled,
    JobStarted,
    JobStatus,
    JobSubmitted,
    LogCaptured,
)
from mainspring.topics import partition_for
from tests.log.conftest import Written
from tests.log.seeding import put_aside
from tests.support.synthetic_log import START_MS


def types(written: Written, job_id: str) -> list[str]:
    return [record.type for record in history(written.log, written.codec, job_id)]


def test_a_jobs_history_is_every_record_of_its_life_in_order(written: Written) -> None:
    assert types(written, "retried") == [
        "SubmitJob",
        "JobSubmitted",
        "AttemptClaimed",
        "JobStarted",
        "AttemptFailed",
        "JobRetryScheduled",
        "AttemptClaimed",
        "JobStarted",
        "AttemptSucceeded",
        "JobCompleted",
    ]
    assert types(written, "stopped")[-4:] == ["CancelJob", "JobCancelRequested", "AttemptReleased", "JobCancelled"]
    assert types(written, "failed-again") == ["SubmitJob", "JobSubmitted"]
    assert types(written, "nobody") == []


def test_an_input_with_a_clock_that_is_ahead_still_comes_before_the_event_it_caused(written: Written) -> None:
    topic = written.topology.attempts
    at = written.log.find(written.codec, topic, AttemptClaimed, job_id="runs")
    written.log.patch(topic, *at, timestamp_ms=START_MS + 10**9)

    assert types(written, "runs") == [
        "SubmitJob",
        "JobSubmitted",
        "AttemptClaimed",
        "JobStarted",
        "AttemptSucceeded",
        "ReportRefused",
    ]


def test_a_claim_that_the_broker_stamped_before_the_submit_still_comes_after_it(written: Written) -> None:
    topic = written.topology.attempts
    at = written.log.find(written.codec, topic, AttemptClaimed, job_id="runs")
    written.log.patch(topic, *at, timestamp_ms=START_MS - 10**6)

    assert types(written, "runs")[:4] == ["SubmitJob", "JobSubmitted", "AttemptClaimed", "JobStarted"]


def test_heartbeats_that_name_the_job_are_part_of_its_history_when_asked_for(written: Written) -> None:
    beat = AttemptHeartbeat(
        worker_id="worker-1",
        incarnation="worker-1.1",
        reported_at_ms=1,
        attempts=(HeldAttempt(job_id="runs", attempt=1, progress=0.5),),
    )
    home = written.double.partition("runs")
    written.log.append(written.topology.attempts, home, b"worker-1", written.codec.encode(beat), START_MS + 10**9)

    assert "AttemptHeartbeat" not in types(written, "runs")
    told = history(written.log, written.codec, "runs", heartbeats=True)
    assert told[-1].record == beat


def test_a_claim_that_lost_is_in_the_history_with_its_refusal(written: Written) -> None:
    # given a second worker whose claim came too late, and what was told to it about other jobs
    double, topology = written.double, written.topology
    late = AttemptClaimed(
        job_id="runs", attempt=1, worker_id="late", incarnation="late.1", reported_at_ms=double.tick(), free_slot=True
    )
    double.put(topology.attempts, "runs", late)
    refusals = [
        ClaimRefused(worker_id="late", incarnation="late.1", job_id=job_id, attempt=1, refusal="ALREADY_RUNNING")
        for job_id in ("another", "runs", "runs-not")
    ]
    partition = partition_for(b"late", topology.signals.partitions)
    for refusal in refusals:
        written.log.append(topology.signals, partition, b"late", written.codec.encode(refusal), double.tick())

    # when
    told = history(written.log, written.codec, "runs")

    # then
    assert [each.record for each in told[-2:]] == [late, refusals[1]]
    assert [each.record for each in told].count(refusals[1]) == 1


def test_a_command_that_was_sent_on_from_another_partition_is_in_the_history(written: Written) -> None:
    written.double.cancel_astray("waits")

    assert types(written, "waits") == [
        "SubmitJob",
        "JobSubmitted",
        "CancelJob",
        "ForwardedCommand",
        "JobCancelled",
    ]


def test_a_record_that_does_not_decode_is_in_the_history_with_the_reason(written: Written) -> None:
    home = written.double.partition("runs")
    written.log.append(written.topology.attempts, home, b"runs", b"garbage", START_MS + 10**9)

    last = history(written.log, written.codec, "runs")[-1]

    assert last.record is None
    assert last.error is not None
    assert last.value == b"garbage"
    assert last.to_json()["error"] == last.error


def test_the_state_at_a_time_is_the_fold_of_what_was_decided_by_then(written: Written) -> None:
    # given when each event of one job was decided
    steps = [
        (event.decided_at_ms, each.type)
        for each in history(written.log, written.codec, "retried")
        if isinstance(event := each.record, JobSubmitted | JobStarted | JobRetryScheduled | JobCompleted)
    ]
    expected = {
        "JobSubmitted": JobStatus.PENDING,
        "JobStarted": JobStatus.RUNNING,
        "JobRetryScheduled": JobStatus.RETRY_WAIT,
        "JobCompleted": JobStatus.COMPLETED,
    }

    assert job_at(written.log, written.codec, "retried", steps[0][0] - 1) is None
    for at_ms, kind in steps:
        state = job_at(written.log, written.codec, "retried", at_ms)
        assert state is not None
        assert state.status is expected[kind]


def test_the_state_now_counts_every_job_once(written: Written) -> None:
    now = state_at(written.log, written.codec, written.double.now_ms)

    assert now.jobs == 14
    assert now.by_status[JobStatus.RUNNING] == 2
    assert now.by_queue["bulk"] == {JobStatus.RUNNING: 1}
    states = {state.job_id: state for state in states_at(written.log, written.codec, written.double.now_ms)}
    assert all(states[job_id] == state for job_id, state in written.double.states.items())


def test_before_the_first_job_there_is_nothing(written: Written) -> None:
    assert state_at(written.log, written.codec, START_MS - 1).jobs == 0


def test_a_log_without_its_beginning_is_refused_and_not_folded_wrongly(written: Written) -> None:
    topic = written.topology.events
    written.log.starts[topic.name, 0] = 3

    with pytest.raises(LogError, match="begins at offset 3"):
        state_at(written.log, written.codec, written.double.now_ms)


def test_captured_output_comes_in_the_order_of_attempts(written: Written) -> None:
    topic = written.topology.logs
    for attempt in (2, 1):
        captured = LogCaptured(
            job_id="retried",
            attempt=attempt,
            worker_id="w",
            incarnation="w.1",
            reported_at_ms=attempt,
            text=f"attempt {attempt}\n",
        )
        home = partition_for(b"retried", topic.partitions)
        written.log.append(topic, home, b"retried", written.codec.encode(captured), attempt)

    assert [log.text for log in job_logs(written.log, written.codec, "retried")] == ["attempt 1\n", "attempt 2\n"]
    assert job_logs(written.log, written.codec, "done") == ()


def test_dead_letters_are_listed_with_their_bytes_and_belong_to_the_history_of_their_job(written: Written) -> None:
    letter = put_aside(written, written.topology.attempts, 5, b"runs", at_ms=START_MS + 10**9)

    assert [each.record for each in dead_letters(written.log, written.codec)] == [letter]
    assert types(written, "runs")[-1] == "DeadLetter"
