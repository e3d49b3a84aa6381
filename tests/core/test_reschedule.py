"""RescheduleJob: another time for what waits."""

from mainspring.schemas.codes import ClaimRefusal, DeclineReason, RejectCode
from mainspring.schemas.events import CommandRejected, JobRescheduled
from mainspring.schemas.signals import ClaimRefused
from tests.core.spec import NOON, Partition


def test_a_scheduled_job_gets_an_earlier_time() -> None:
    partition = Partition().submit(delay_ms=60_000).reschedule(NOON + 1000)
    assert partition.event(JobRescheduled).due_at_ms == NOON + 1000
    assert partition.later(999).dispatch().offers == []
    assert len(partition.later(1).dispatch().offers) == 1
    assert len(partition.later(60_000).dispatch().offers) == 2, "the old time offers nothing but the renewal"


def test_a_ready_job_gets_a_later_time() -> None:
    partition = Partition().submit().reschedule(NOON + 1000).dispatch()
    assert partition.offers == []
    assert len(partition.later(1000).dispatch().offers) == 1


def test_an_offered_job_is_withdrawn_so_that_an_old_claim_is_refused() -> None:
    partition = Partition().submit().dispatch().reschedule(NOON + 1000).claim(attempt=1)
    assert partition.signal(ClaimRefused).refusal == ClaimRefusal.NOT_OFFERED
    assert partition.core.stats()["default"].offered == 0


def test_a_job_that_waits_for_a_retry_can_be_moved() -> None:
    partition = Partition().submit(max_retries=1).start().fail().reschedule(NOON)
    assert len(partition.dispatch().last.offers) == 1


def test_a_parked_job_is_offered_at_its_new_time() -> None:
    partition = Partition().submit().dispatch().decline(reason=DeclineReason.UNKNOWN_NAME)
    assert len(partition.reschedule(NOON).dispatch().last.offers) == 1


def test_the_past_means_now() -> None:
    assert Partition().submit(delay_ms=5).reschedule(1).event(JobRescheduled).due_at_ms == NOON


def test_a_running_job_cannot_be_moved() -> None:
    event = Partition().submit().start().reschedule(NOON).event(CommandRejected)
    assert (event.reject_code, event.status) == (RejectCode.NOT_WAITING, "RUNNING")


def test_a_finished_job_cannot_be_moved() -> None:
    event = Partition().submit().start().succeed().reschedule(NOON).event(CommandRejected)
    assert (event.reject_code, event.status) == (RejectCode.ALREADY_TERMINAL, "COMPLETED")


def test_an_unknown_job_cannot_be_moved() -> None:
    assert Partition().reschedule(NOON).event(CommandRejected).reject_code == RejectCode.UNKNOWN_JOB


def test_a_time_that_is_none_is_refused() -> None:
    event = Partition().submit(delay_ms=5).reschedule(-1).event(CommandRejected)
    assert (event.reject_code, event.revision) == (RejectCode.INVALID_FIELD, 1)


def test_the_same_command_twice_moves_once() -> None:
    partition = Partition().submit(delay_ms=5).reschedule(NOON + 9, command_id="move")
    assert partition.reschedule(NOON + 9, command_id="move").last.events == []
    assert partition.state().revision == 2
