"""AttemptFailed: retried by its policy, counted exactly."""

import pytest

from mainspring.schemas.bounds import ERROR_MESSAGE_MAX_CHARS, RETRY_DELAY_MAX_MS
from mainspring.schemas.codes import FailReason, RetryReason
from mainspring.schemas.common import AttemptError, JobStatus
from mainspring.schemas.events import JobFailed, JobRetryScheduled
from tests.core.spec import NOON, Partition


@pytest.mark.parametrize("max_retries", [0, 1, 2, 7])
def test_n_retries_are_n_plus_one_attempts(max_retries: int) -> None:
    partition = Partition().submit(max_retries=max_retries, retry_base_delay_ms=0)
    while partition.status() is not JobStatus.FAILED:
        partition.start().fail()
    assert partition.names().count("JobStarted") == max_retries + 1
    assert partition.event(JobFailed).reason == FailReason.FAILED


def test_a_retry_waits_for_its_back_off_and_is_not_offered_before() -> None:
    partition = Partition().submit(max_retries=9, retry_base_delay_ms=100, retry_max_delay_ms=350, retry_jitter=False)
    delays = []
    for _ in range(4):
        event = partition.start().fail().event(JobRetryScheduled)
        assert event.due_at_ms == partition.now.wall_ms + event.delay_ms
        delays.append(event.delay_ms)
        assert partition.later(event.delay_ms - 1).dispatch().last.offers == []
        partition.later(1)
    assert delays == [100, 200, 350, 350]


def test_an_error_may_carry_its_own_delay() -> None:
    event = Partition().submit(max_retries=1).start().fail(retry_delay_ms=777).event(JobRetryScheduled)
    assert (event.delay_ms, event.due_at_ms, event.reason) == (777, NOON + 777, RetryReason.FAILED)


@pytest.mark.parametrize(("asked", "given"), [(-5, 0), (1 << 62, RETRY_DELAY_MAX_MS)])
def test_a_delay_of_its_own_is_kept_within_bounds(asked: int, given: int) -> None:
    assert (
        Partition().submit(max_retries=1).start().fail(retry_delay_ms=asked).event(JobRetryScheduled).delay_ms == given
    )


def test_an_own_delay_does_not_add_a_retry() -> None:
    assert Partition().submit().start().fail(retry_delay_ms=1).event(JobFailed).attempt == 1


def test_a_failure_that_is_not_to_be_retried_is_not() -> None:
    event = Partition().submit(max_retries=5).start().fail(retryable=False).event(JobFailed)
    assert (event.reason, event.error) == (FailReason.FAILED, AttemptError(type="ValueError", message="no"))


def test_the_error_is_in_the_event_and_cut_to_its_bound() -> None:
    error = AttemptError(type="E", message="m" * 100_000, traceback="t" * 100_000)
    event = Partition().submit(max_retries=1).start().fail(error=error).event(JobRetryScheduled)
    assert event.error is not None
    assert event.error.traceback is not None
    assert len(event.error.message) == ERROR_MESSAGE_MAX_CHARS
    assert len(event.error.traceback) < 20_000


def test_lost_and_released_attempts_use_no_retry() -> None:
    partition = Partition().submit(max_retries=1, retry_base_delay_ms=0)
    partition.start().release().start().later(10_000).lease_check().start().fail()
    event = partition.event(JobRetryScheduled)
    assert (event.retries, event.lost, event.attempt) == (1, 1, 3)


def test_the_back_off_grows_with_the_retries_and_not_with_lost_attempts() -> None:
    partition = Partition().submit(max_retries=3, retry_base_delay_ms=100, retry_jitter=False)
    partition.start().release().start().release().start().fail()
    assert partition.event(JobRetryScheduled).delay_ms == 100
