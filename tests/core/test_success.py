"""AttemptSucceeded: recorded once, from the confirmed attempt only."""

import pytest

from mainspring.schemas.bounds import EVIDENCE_MAX_BYTES, RESULT_MAX_BYTES
from mainspring.schemas.codes import FailReason, ReportRefusal
from mainspring.schemas.common import JobStatus
from mainspring.schemas.events import JobCompleted, JobFailed, ReportRefused
from tests.core.spec import NOON, Partition


def test_a_success_completes_the_job_with_its_result() -> None:
    event = Partition().submit().start().later(5).succeed().event(JobCompleted)
    assert (event.result, event.attempt, event.worker_id, event.finished_at_ms) == (b"42", 1, "w1", NOON + 5)


def test_a_result_of_the_largest_size_is_kept() -> None:
    result = b"x" * RESULT_MAX_BYTES
    assert Partition().submit().start().succeed(result=result).event(JobCompleted).result == result


def test_a_result_that_is_too_large_fails_the_job_and_is_not_retried() -> None:
    event = Partition().submit(max_retries=3).start().succeed(result=b"x" * (RESULT_MAX_BYTES + 1)).event(JobFailed)
    assert event.reason == FailReason.RESULT_TOO_LARGE
    assert event.error is not None
    assert str(RESULT_MAX_BYTES + 1) in event.error.message


def test_the_same_success_twice_is_recorded_once() -> None:
    partition = Partition().submit().start().succeed().succeed()
    assert partition.last.events == []


@pytest.mark.parametrize(
    ("partition", "attempt", "worker", "refusal"),
    [
        (Partition(), 1, "w1", ReportRefusal.UNKNOWN_JOB),
        (Partition().submit(), 1, "w1", ReportRefusal.STALE_ATTEMPT),
        (Partition().submit().dispatch(), 1, "w1", ReportRefusal.STALE_ATTEMPT),
        (Partition().submit().start(), 1, "w2", ReportRefusal.OTHER_INCARNATION),
        (Partition().submit().start(), 2, "w1", ReportRefusal.STALE_ATTEMPT),
        (Partition().submit(max_retries=1).start().fail(), 1, "w1", ReportRefusal.NOT_RUNNING),
        (Partition().submit().start().later(10_000).lease_check(), 1, "w1", ReportRefusal.NOT_RUNNING),
        (
            Partition().submit().start().later(10_000).lease_check().start(worker="w2"),
            1,
            "w1",
            ReportRefusal.STALE_ATTEMPT,
        ),
        (Partition().submit().start().fail(), 1, "w1", ReportRefusal.TERMINAL),
        (Partition().submit().start().succeed(), 1, "w2", ReportRefusal.TERMINAL),
        (Partition().submit().start().cancel().stopped(), 1, "w1", ReportRefusal.TERMINAL),
    ],
)
def test_a_late_stale_or_foreign_result_is_refused_and_kept(
    partition: Partition, attempt: int, worker: str, refusal: ReportRefusal
) -> None:
    before = partition.rows.states.get("job")
    partition.succeed(attempt=attempt, worker=worker, raw=b"the very bytes")
    event = partition.event(ReportRefused)
    assert (event.refusal, event.report, event.evidence) == (refusal, "AttemptSucceeded", b"the very bytes")
    assert (event.worker_id, event.incarnation, event.attempt) == (worker, f"{worker}#1", attempt)
    assert event.revision == (0 if before is None else before.revision)
    assert partition.rows.states.get("job") is before


def test_evidence_is_bounded() -> None:
    event = Partition().succeed("job", attempt=1, raw=b"x" * 1_000_000).event(ReportRefused)
    assert len(event.evidence) == EVIDENCE_MAX_BYTES


def test_a_rescue_that_comes_after_the_success_does_not_put_the_job_back() -> None:
    partition = Partition().submit().start().later(10_000)
    asked_at = partition.now
    assert partition.core.overdue_leases(asked_at)
    partition.succeed().lease_check(asked_at)
    assert (partition.status(), partition.state().attempt) == (JobStatus.COMPLETED, 1)
    assert partition.last.events == []
