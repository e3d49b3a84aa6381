"""RetryJob: a finished job again, as a new one."""

import pytest

from mainspring.schemas.codes import RejectCode
from mainspring.schemas.commands import SubmitJob
from mainspring.schemas.common import CauseSource
from mainspring.schemas.events import CommandRejected, JobSubmitted
from tests.core.spec import NOON, Partition


def test_a_finished_job_is_submitted_again_at_the_partition_of_its_new_id() -> None:
    partition = Partition().submit(
        payload=b"{}", tenant="acme", max_retries=2, deadline_ms=NOON + 9, start_deadline_ms=NOON + 9, delay_ms=0
    )
    partition.start().fail(retryable=False).retry("again", command_id="retry")
    ((key, command),) = partition.last.followups
    assert isinstance(command, SubmitJob)
    assert (key, partition.last.events) == ("again", [])
    assert (command.command_id, command.actor, command.spec.retry_of) == ("retry", "ada", "job")
    spec = command.spec
    assert (spec.job_id, spec.payload, spec.tenant, spec.max_retries) == ("again", b"{}", "acme", 2)
    assert (spec.run_at_ms, spec.delay_ms, spec.deadline_ms, spec.start_deadline_ms) == (None, None, None, None)


def test_the_verdict_is_given_where_the_new_job_lives_and_once() -> None:
    partition = Partition().submit().start().succeed()
    for _ in range(2):
        partition.retry("again", command_id="retry")
        ((_, command),) = partition.last.followups
        assert isinstance(command, SubmitJob)
        partition.apply(command, CauseSource.FOLLOWUPS)
    assert partition.names().count("JobSubmitted") == 2
    submitted = [event for event in partition.events if isinstance(event, JobSubmitted)][-1]
    assert (submitted.spec.retry_of, submitted.cause.source) == ("job", CauseSource.FOLLOWUPS)


@pytest.mark.parametrize("running", [True, False])
def test_an_unfinished_job_cannot_be_retried(running: bool) -> None:
    partition = Partition().submit(delay_ms=0)
    if running:
        partition.start()
    event = partition.retry("again").event(CommandRejected)
    assert (event.reject_code, event.job_id) == (RejectCode.NOT_TERMINAL, "job")


def test_an_unknown_job_cannot_be_retried() -> None:
    assert Partition().retry("again").event(CommandRejected).reject_code == RejectCode.UNKNOWN_JOB


@pytest.mark.parametrize("new_id", ["", "a\x00b", "daily@1", "x" * 256, "job"])
def test_a_new_id_that_is_none_is_refused_at_the_old_id(new_id: str) -> None:
    event = Partition().submit().start().succeed().retry(new_id).event(CommandRejected)
    assert (event.reject_code, event.job_id, event.status) == (RejectCode.INVALID_FIELD, "job", "COMPLETED")
    assert "new_job_id" in event.message
