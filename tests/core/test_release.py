"""AttemptReleased and AttemptCancelled: attempts that a worker gives up."""

import pytest

from mainspring.schemas.codes import CancelCode, FailReason, RetryReason
from mainspring.schemas.common import JobStatus
from mainspring.schemas.events import JobCancelled, JobFailed, JobRetryScheduled, ReportRefused
from tests.core.spec import NOON, Partition


def test_a_released_attempt_runs_again_at_once_and_counts_against_nothing() -> None:
    partition = Partition().submit().start().release()
    event = partition.event(JobRetryScheduled)
    assert (event.reason, event.due_at_ms, event.retries, event.lost) == (RetryReason.RELEASED, NOON, 0, 0)
    assert len(partition.dispatch().last.offers) == 1


def test_a_job_may_be_released_as_often_as_workers_drain() -> None:
    partition = Partition().submit(max_lost=0)
    for _ in range(20):
        partition.start().release()
    assert partition.start().succeed().status() is JobStatus.COMPLETED
    assert partition.state().attempt == 21


def test_an_attempt_that_was_stopped_as_asked_is_cancelled() -> None:
    assert Partition().submit().start().cancel().stopped().event(JobCancelled).cancel_code == CancelCode.REQUESTED


def test_an_attempt_that_was_stopped_unasked_counts_as_lost() -> None:
    partition = Partition().submit(max_lost=1).start().stopped()
    event = partition.event(JobRetryScheduled)
    assert (event.reason, event.lost, event.delay_ms) == (RetryReason.LOST, 1, 0)
    assert partition.start().stopped().event(JobFailed).reason == FailReason.LOST


@pytest.mark.parametrize("report", ["release", "stopped"])
def test_giving_up_what_one_does_not_hold_is_refused(report: str) -> None:
    partition = Partition().submit().start()
    assert getattr(partition, report)(worker="w2").event(ReportRefused).refusal == "OTHER_INCARNATION"
    assert partition.status() is JobStatus.RUNNING
