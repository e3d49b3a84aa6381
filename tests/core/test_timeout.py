"""AttemptTimedOut: retried like a failure, recorded as what it is."""

from mainspring.schemas.codes import RetryReason
from mainspring.schemas.common import JobStatus
from mainspring.schemas.events import JobRetryScheduled, JobTimedOut, ReportRefused
from tests.core.spec import NOON, Partition


def test_the_last_allowed_time_out_ends_the_job() -> None:
    event = Partition().submit().start().time_out().event(JobTimedOut)
    assert (event.attempt, event.timeout_ms) == (1, 1000)


def test_a_time_out_with_retries_left_waits_for_the_back_off() -> None:
    partition = Partition().submit(max_retries=1, retry_base_delay_ms=5000, retry_jitter=False).start().later(1000)
    event = partition.time_out().event(JobRetryScheduled)
    assert (event.reason, event.delay_ms, event.retries) == (RetryReason.TIMED_OUT, 5000, 1)
    assert event.due_at_ms == NOON + 6000


def test_the_late_result_of_a_thread_that_timed_out_is_refused() -> None:
    partition = Partition().submit().start().time_out().succeed()
    assert partition.event(ReportRefused).refusal == "TERMINAL"
    assert partition.status() is JobStatus.TIMED_OUT
