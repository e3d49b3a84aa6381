"""CancelJob: exact while a job waits, sticky while it runs, answered always."""

import pytest

from mainspring.schemas.codes import CancelCode, CancelSignal, ClaimRefusal, RejectCode
from mainspring.schemas.common import JobStatus
from mainspring.schemas.events import CommandRejected, JobCancelled, JobCancelRequested, JobCompleted, JobStarted
from mainspring.schemas.signals import CancelAttempt, ClaimRefused
from tests.core.spec import Partition


def test_a_scheduled_job_is_cancelled_at_once_and_never_offered() -> None:
    partition = Partition().submit(delay_ms=1000).cancel(command_id="stop")
    event = partition.event(JobCancelled)
    assert (event.cancel_code, event.command_id, event.actor) == (CancelCode.REQUESTED, "stop", "ada")
    assert partition.later(10_000).dispatch().offers == []


def test_a_ready_job_is_cancelled_at_once_and_never_offered() -> None:
    partition = Partition().submit().submit("other").cancel().dispatch()
    assert [offer.job_id for offer in partition.offers] == ["other"]


def test_an_offered_job_is_cancelled_at_once_and_its_claim_is_refused() -> None:
    partition = Partition().submit().dispatch().cancel().claim(attempt=1)
    assert partition.signal(ClaimRefused).refusal == ClaimRefusal.TERMINAL
    assert partition.status() is JobStatus.CANCELLED
    assert "JobStarted" not in partition.names()


def test_a_job_that_waits_for_a_retry_is_cancelled_and_not_run_again() -> None:
    partition = Partition().submit(max_retries=3, retry_base_delay_ms=5000, retry_jitter=False).start().fail()
    partition.later(2000).cancel().later(60_000).dispatch()
    assert partition.status() is JobStatus.CANCELLED
    assert partition.names().count("JobStarted") == 1


def test_a_running_job_is_asked_to_stop_and_its_worker_told() -> None:
    partition = Partition().submit().start().cancel()
    assert partition.event(JobCancelRequested).attempt == 1
    signal = partition.signal(CancelAttempt)
    assert (signal.worker_id, signal.incarnation, signal.attempt) == ("w1", "w1#1", 1)
    assert signal.reason == CancelSignal.CANCEL_REQUESTED
    assert partition.status() is JobStatus.RUNNING


@pytest.mark.parametrize("end", ["fail", "time_out", "stopped", "release"])
def test_after_a_cancel_every_end_but_success_is_cancelled(end: str) -> None:
    partition = Partition().submit(max_retries=5).start().cancel(command_id="stop")
    event = getattr(partition, end)().event(JobCancelled)
    assert (event.cancel_code, event.command_id, event.reason) == (CancelCode.REQUESTED, "stop", "because")
    assert partition.later(600_000).dispatch().names().count("JobStarted") == 1


def test_after_a_cancel_a_dead_worker_means_cancelled() -> None:
    partition = Partition().submit().start().cancel().later(10_000).lease_check()
    assert partition.event(JobCancelled).cancel_code == CancelCode.REQUESTED


def test_a_success_beats_a_cancel_that_came_too_late() -> None:
    assert Partition().submit().start().cancel().succeed().event(JobCompleted).result == b"42"


def test_a_result_that_is_too_large_is_no_success_and_does_not_beat_a_cancel() -> None:
    partition = Partition().submit().start().cancel().succeed(result=b"x" * 300_000)
    assert partition.event(JobCancelled).cancel_code == CancelCode.REQUESTED


def test_a_finished_job_cannot_be_cancelled_and_the_answer_says_how_it_ended() -> None:
    event = Partition().submit().start().succeed().cancel().event(CommandRejected)
    assert (event.reject_code, event.status, event.revision) == (RejectCode.ALREADY_TERMINAL, "COMPLETED", 3)


def test_an_unknown_job_cannot_be_cancelled() -> None:
    event = Partition().cancel("nobody").event(CommandRejected)
    assert (event.reject_code, event.job_id, event.revision) == (RejectCode.UNKNOWN_JOB, "nobody", 0)


@pytest.mark.parametrize("running", [True, False])
def test_the_same_cancel_twice_is_one_cancel(running: bool) -> None:
    partition = Partition().submit(delay_ms=0)
    if running:
        partition.start()
    partition.cancel(command_id="stop")
    before = partition.state()
    assert partition.cancel(command_id="stop").last.events == []
    assert partition.state() == before


def test_a_second_cancel_of_a_running_job_is_answered_and_tells_the_worker_again() -> None:
    partition = Partition().submit().start().cancel(command_id="first").cancel(command_id="second")
    assert partition.event(JobCancelRequested).command_id == "second"
    assert partition.signal(CancelAttempt).attempt == 1
    assert partition.cancel(command_id="second").last.events == []


def test_a_cancel_that_took_effect_is_no_news_when_it_is_repeated_after_the_end() -> None:
    partition = Partition().submit().start().cancel(command_id="stop").stopped().cancel(command_id="stop")
    assert partition.last.events == []
    assert partition.cancel(command_id="other").event(CommandRejected).status == "CANCELLED"


@pytest.mark.parametrize("cancel_first", [True, False])
def test_a_cancel_that_races_a_finish_ends_in_exactly_one_way(cancel_first: bool) -> None:
    partition = Partition().submit(max_retries=3).start()
    partition = partition.cancel().fail() if cancel_first else partition.fail().cancel()
    assert partition.status() is JobStatus.CANCELLED
    assert partition.names().count("JobCancelled") == 1


def test_a_cancel_that_races_a_start_is_either_refused_work_or_a_stopped_attempt() -> None:
    lost = Partition().submit().dispatch().cancel().claim(attempt=1)
    assert isinstance(lost.last.signals[0], ClaimRefused)
    won = Partition().submit().dispatch().claim()
    assert won.event(JobStarted).attempt == 1
    assert won.cancel().signal(CancelAttempt).attempt == 1
