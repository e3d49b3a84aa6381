"""Start deadlines, and jobs whose input cannot be applied."""

import pytest

from mainspring.schemas.codes import CancelCode, CancelSignal, FailReason
from mainspring.schemas.common import CauseSource, JobStatus
from mainspring.schemas.events import JobCancelled, JobFailed
from mainspring.schemas.signals import CancelAttempt
from tests.core.spec import NOON, Partition


@pytest.mark.parametrize("step", ["scheduled", "ready", "offered"])
def test_a_job_that_has_not_started_by_its_deadline_is_cancelled_as_expired(step: str) -> None:
    partition = Partition().submit(delay_ms=5000 if step == "scheduled" else None, start_deadline_ms=NOON + 1000)
    if step == "offered":
        partition.dispatch()
    assert partition.later(999).tick().last.events == []
    event = partition.later(1).tick().event(JobCancelled)
    assert (event.cancel_code, event.cause.source, event.cause.offset) == (CancelCode.EXPIRED, CauseSource.TIMER, -1)
    assert partition.later(10_000).dispatch().last.offers == []
    assert partition.core.stats()["default"].offered == 0


def test_the_wake_is_at_the_deadline() -> None:
    wake = Partition().submit(delay_ms=5000, start_deadline_ms=NOON + 1000).core.wake_at()
    assert wake is not None
    assert wake.wall_ms == NOON + 1000


def test_a_deadline_that_has_passed_already_expires_the_job_at_once() -> None:
    partition = Partition().submit(start_deadline_ms=NOON).dispatch()
    assert partition.names() == ["JobSubmitted", "JobCancelled"]


def test_a_job_that_started_in_time_is_left_alone() -> None:
    partition = Partition().submit(start_deadline_ms=NOON + 1000, max_retries=1, retry_base_delay_ms=0).start()
    partition.later(5000).tick().fail().tick().start().succeed()
    assert partition.status() is JobStatus.COMPLETED


def test_a_deadline_survives_a_takeover() -> None:
    partition = Partition().submit(delay_ms=5000, start_deadline_ms=NOON + 1000).taken_over().later(1000).tick()
    assert partition.event(JobCancelled).cancel_code == CancelCode.EXPIRED


def close(partition: Partition) -> Partition:
    partition.core.close("job", "cannot decode", partition.cause(CauseSource.ATTEMPTS), partition.now)
    return partition.drain()


def test_a_waiting_job_whose_input_cannot_be_applied_is_cancelled() -> None:
    event = close(Partition().submit(delay_ms=0).dispatch()).event(JobCancelled)
    assert (event.cancel_code, event.reason) == (CancelCode.UNPROCESSABLE, "cannot decode")


def test_a_running_job_whose_input_cannot_be_applied_fails_and_is_stopped() -> None:
    partition = close(Partition().submit().start())
    event = partition.event(JobFailed)
    assert event.reason == FailReason.UNPROCESSABLE
    assert event.error is not None
    assert event.error.message == "cannot decode"
    assert partition.signal(CancelAttempt).reason == CancelSignal.LEASE_LOST


def test_a_cancel_sticks_to_a_job_whose_input_cannot_be_applied() -> None:
    assert close(Partition().submit().start().cancel()).event(JobCancelled).cancel_code == CancelCode.REQUESTED


@pytest.mark.parametrize("partition", [Partition(), Partition().submit().start().succeed()])
def test_there_is_nothing_to_close_in_an_ended_or_unknown_job(partition: Partition) -> None:
    assert close(partition).last.events == []
