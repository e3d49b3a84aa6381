"""Heartbeats and leases: who is silent loses the attempt, and is told so."""

import pytest

from mainspring.processors.core import Now, Rules
from mainspring.processors.core.leases import LeaseTable
from mainspring.schemas.codes import CancelSignal, FailReason, RetryReason
from mainspring.schemas.common import HeldAttempt, JobStatus
from mainspring.schemas.events import JobFailed, JobRetryScheduled, ReportRefused
from mainspring.schemas.signals import CancelAttempt
from tests.core.spec import NOON, Partition


def test_a_heartbeat_that_names_the_attempt_renews_its_lease() -> None:
    partition = Partition().submit().start()
    for _ in range(5):
        partition.later(9000).heartbeat(("job", 1))
        assert not partition.core.overdue_leases(partition.now)
        assert partition.last.signals == []
    assert partition.later(10_000).core.overdue_leases(partition.now)


def test_a_lost_attempt_runs_again_at_once_and_its_worker_is_told() -> None:
    partition = Partition().submit().start().later(10_000).lease_check()
    event = partition.event(JobRetryScheduled)
    assert (event.reason, event.due_at_ms, event.lost, event.retries) == (RetryReason.LOST, NOON + 10_000, 1, 0)
    assert partition.signal(CancelAttempt).reason == CancelSignal.LEASE_LOST
    assert len(partition.dispatch().last.offers) == 1


@pytest.mark.parametrize("max_lost", [0, 1, 3])
def test_a_job_that_kills_its_workers_ends_after_max_lost_more_attempts(max_lost: int) -> None:
    partition = Partition().submit(max_retries=5, max_lost=max_lost)
    while partition.status() is not JobStatus.FAILED:
        partition.start().later(10_000).lease_check()
    assert partition.names().count("JobStarted") == max_lost + 1
    assert partition.event(JobFailed).reason == FailReason.LOST
    assert partition.state().retries == 0


def test_only_leases_that_had_run_out_when_the_end_was_asked_for_are_taken() -> None:
    partition = Partition().submit("a").submit("b").start("a").later(1000).claim("b")
    asked_at = partition.later(9000).now
    partition.later(5000).lease_check(asked_at)
    assert (partition.status("a"), partition.status("b")) == (JobStatus.RETRY_WAIT, JobStatus.RUNNING)


def test_a_heartbeat_that_was_read_before_the_end_saves_the_attempt() -> None:
    partition = Partition().submit().start().later(10_000)
    asked_at = partition.now
    partition.later(500).heartbeat(("job", 1)).lease_check(asked_at)
    assert partition.status() is JobStatus.RUNNING


def test_a_new_owner_grants_a_fresh_lease() -> None:
    partition = Partition().submit().start().later(9999).taken_over().later(9999)
    assert not partition.core.overdue_leases(partition.now)
    assert partition.later(1).core.overdue_leases(partition.now)


def test_a_wall_clock_that_jumps_takes_no_lease() -> None:
    partition = Partition().submit().start()
    partition.now = Now(NOON + 86_400_000, partition.now.mono_ms + 5)
    assert not partition.core.overdue_leases(partition.now)


@pytest.mark.parametrize("held", [("job", 2), ("job", 0), ("nobody", 1)])
def test_an_attempt_that_is_not_the_workers_is_answered_by_lease_lost(held: tuple[str, int]) -> None:
    signal = Partition().submit().start().heartbeat(held).signal(CancelAttempt)
    assert (signal.reason, signal.job_id, signal.attempt) == (CancelSignal.LEASE_LOST, *held)


def test_another_incarnation_renews_nothing() -> None:
    partition = Partition().submit().start().later(9000).heartbeat(("job", 1), worker="w2")
    assert partition.signal(CancelAttempt).worker_id == "w2"
    assert partition.later(1000).core.overdue_leases(partition.now)


def test_an_attempt_that_is_to_stop_is_told_again_and_keeps_its_lease() -> None:
    partition = Partition().submit().start().cancel().later(9000).heartbeat(("job", 1))
    assert partition.signal(CancelAttempt).reason == CancelSignal.CANCEL_REQUESTED
    assert not partition.later(9000).core.overdue_leases(partition.now)


def test_a_cancel_is_remembered_by_a_new_owner() -> None:
    partition = Partition().submit().start().cancel().taken_over().heartbeat(("job", 1))
    assert partition.signal(CancelAttempt).reason == CancelSignal.CANCEL_REQUESTED


def test_the_result_of_a_worker_that_was_out_of_contact_is_refused_by_its_attempt_number() -> None:
    partition = Partition().submit().start(worker="w1").later(30_000).lease_check().start(worker="w2")
    assert partition.succeed(attempt=1, worker="w1").event(ReportRefused).refusal == "STALE_ATTEMPT"
    assert partition.succeed(worker="w2").status() is JobStatus.COMPLETED


def test_a_short_job_is_rescued_after_its_lease_whatever_else_the_worker_ran() -> None:
    partition = Partition(Rules(lease_ms=4000)).submit("a", timeout_ms=3000).submit("b", timeout_ms=30_000)
    partition.start("a").claim("b").later(4000).lease_check()
    assert (partition.status("a"), partition.status("b")) == (JobStatus.RETRY_WAIT, JobStatus.RETRY_WAIT)


def test_a_job_parked_for_a_far_time_outlives_every_lease_and_runs_once() -> None:
    partition = Partition(Rules(lease_ms=2000)).submit(delay_ms=5000)
    for _ in range(5):
        partition.later(1000).lease_check().dispatch()
    assert partition.claim().succeed().names() == ["JobSubmitted", "JobStarted", "JobCompleted"]


def test_renewing_thousands_touches_no_heap() -> None:
    table = LeaseTable(10_000)
    held = tuple(HeldAttempt(job_id=f"job-{number}", attempt=1) for number in range(2000))
    for each in held:
        table.grant(each.job_id, 1, "i", 0)
    before = list(table._heap)
    assert table.renew(held, "i", 5000) == ([], [])
    assert table._heap == before
    assert table.next_expiry_ms() == 15_000
    assert len(table._heap) == 2000


def test_ended_attempts_leave_no_lease_behind() -> None:
    table = LeaseTable(10)
    for number in range(100):
        table.grant(f"job-{number}", 1, "i", number)
    for number in range(99):
        table.end(f"job-{number}")
    assert [lease.job_id for lease in table.expired(1000)] == ["job-99"]
    assert table.next_expiry_ms() == 109
    table.end("job-99")
    assert table.next_expiry_ms() is None
    assert table._heap == []


def test_a_check_under_way_does_not_keep_the_shell_awake() -> None:
    partition = Partition().submit().start()
    partition.later(10_000)
    wake = partition.core.wake_at()
    assert wake is not None
    assert wake.mono_ms == partition.now.mono_ms
    assert partition.core.overdue_leases(partition.now)
    wake = partition.core.wake_at()
    assert wake is None or wake.mono_ms is None
    partition.heartbeat(("job", 1)).lease_check(Now(0, 0))
    wake = partition.core.wake_at()
    assert wake is not None
    assert wake.mono_ms == partition.now.mono_ms + 10_000
