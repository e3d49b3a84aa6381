"""Cancel, reschedule and retry say what came of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mainspring.client import Client, CommandRejectedError, InvalidJobError, JobCancelledError
from mainspring.schemas import CancelJob, JobStatus, RetryJob
from tests.client.fake_scheduler import FakeScheduler

pytestmark = pytest.mark.broker
LONG_S = 30.0


def test_cancelling_a_waiting_job_takes_effect_at_once(client: Client, scheduler: FakeScheduler) -> None:
    # given
    handle = client.submit("wait")

    # when
    outcome = client.cancel(handle.job_id, "enough")

    # then
    assert outcome.took_effect
    assert outcome.status is JobStatus.CANCELLED
    assert handle.wait(LONG_S) is JobStatus.CANCELLED


def test_a_triggered_job_that_is_refused_ends_its_handle_with_the_refusal(
    client: Client, scheduler: FakeScheduler
) -> None:
    # given
    handle = client.schedules.trigger("refuse")

    # when
    with pytest.raises(CommandRejectedError) as refused:
        handle.result(LONG_S)

    # then
    assert (refused.value.code, refused.value.job_id) == ("UNKNOWN_QUEUE", handle.job_id)
    assert refused.value.command_id == f"{handle.job_id}#3.7"
    with pytest.raises(CommandRejectedError):
        handle.accepted(LONG_S)


def test_the_refusal_of_another_fire_of_the_same_time_does_not_end_a_triggered_handle(
    client: Client, scheduler: FakeScheduler
) -> None:
    handle = client.schedules.trigger("ok")

    assert handle.result(LONG_S) == "fired"
    assert handle.accepted(LONG_S).existing is False


def test_cancelling_a_running_job_waits_for_its_attempt(client: Client, scheduler: FakeScheduler) -> None:
    # given
    handle = client.submit("hang")

    # when
    outcome = handle.cancel("stop", timeout=LONG_S)

    # then
    assert outcome
    with pytest.raises(JobCancelledError):
        handle.result(LONG_S)


def test_a_job_that_finishes_in_spite_of_its_cancel_was_not_cancelled(client: Client, scheduler: FakeScheduler) -> None:
    # given
    handle = client.submit("hang", tags=("stubborn",))
    handle.accepted(LONG_S)
    pending = handle.cancel("stop", timeout=0.5)

    # when
    scheduler.finish(handle.job_id, "done anyway")

    # then
    assert not pending
    assert pending.pending
    assert handle.result(LONG_S) == "done anyway"
    assert not handle.cancel()


def test_a_cancel_that_does_not_wait_is_pending_while_the_attempt_runs(
    client: Client, scheduler: FakeScheduler
) -> None:
    # given
    handle = client.submit("hang", tags=("stubborn",))
    handle.accepted(LONG_S)

    # when
    outcome = client.cancel(handle.job_id, wait=False, timeout=LONG_S)

    # then
    assert (outcome.pending, outcome.took_effect) == (True, False)


def test_cancelling_again_or_too_late_changes_nothing_and_says_what_is(
    client: Client, scheduler: FakeScheduler
) -> None:
    # given
    cancelled, finished = client.submit("wait"), client.submit("ok")
    client.cancel(cancelled.job_id)
    finished.result(LONG_S)

    # when
    again, too_late, unknown = (client.cancel(name) for name in (cancelled.job_id, finished.job_id, "nobody"))

    # then
    assert (again.took_effect, again.status, again.code) == (False, JobStatus.CANCELLED, "ALREADY_TERMINAL")
    assert (too_late.took_effect, too_late.status) == (False, JobStatus.COMPLETED)
    assert (unknown.took_effect, unknown.status, unknown.code) == (False, None, "UNKNOWN_JOB")


def test_a_waiting_job_is_rescheduled_to_an_instant_or_by_a_delay(client: Client, scheduler: FakeScheduler) -> None:
    # given
    handle = client.submit("wait", delay=100)
    instant = datetime(2100, 1, 1, tzinfo=UTC)

    # when
    at, soon = handle.reschedule(run_at=instant), handle.reschedule(delay=timedelta(hours=1))

    # then
    assert at == instant
    assert timedelta(minutes=59) < soon - datetime.now(UTC) < timedelta(minutes=61)


@pytest.mark.parametrize("times", [{}, {"delay": 1, "run_at": datetime(2100, 1, 1, tzinfo=UTC)}], ids=["none", "both"])
def test_a_reschedule_needs_one_time(unreachable: Client, times: dict[str, object]) -> None:
    with pytest.raises(InvalidJobError) as caught:
        unreachable.reschedule("a", **times)  # type: ignore[arg-type] # wrong on purpose
    assert caught.value.field == "run_at"


def test_a_terminal_job_is_retried_as_a_new_one(client: Client, scheduler: FakeScheduler) -> None:
    # given
    failed = client.submit("fail", {"n": 1})
    failed.wait(LONG_S)

    # when
    drawn, named = client.retry(failed.job_id, "again"), failed.retry(new_job_id="second")

    # then
    assert drawn.result(LONG_S) == {"n": 1}
    assert named.job_id == "second"
    assert named.result(LONG_S) == {"n": 1}
    assert drawn.get(LONG_S).retry_of == failed.job_id


def test_a_job_that_is_not_terminal_is_not_retried(client: Client, scheduler: FakeScheduler) -> None:
    # given
    running = client.submit("hang")
    running.accepted(LONG_S)

    # when
    with pytest.raises(CommandRejectedError) as caught:
        client.retry(running.job_id)

    # then
    assert (caught.value.code, caught.value.status, caught.value.command) == (
        "NOT_TERMINAL",
        JobStatus.RUNNING,
        "RetryJob",
    )


def test_every_command_says_who_why_and_when_under_an_id_of_its_own(client: Client, scheduler: FakeScheduler) -> None:
    # given
    handle = client.submit("wait", reason="first")
    handle.cancel("second")
    handle.retry("third").result(LONG_S)

    # then
    commands = scheduler.commands
    assert [command.reason for command in commands] == ["first", "second", "third"]
    assert {command.actor for command in commands} == {"ada@host"}
    assert len({command.command_id for command in commands}) == 3
    assert isinstance(commands[1], CancelJob)
    assert isinstance(commands[2], RetryJob)
    assert all(command.requested_at_ms > 0 for command in commands)


@pytest.mark.parametrize("job_id", ["", "x" * 256, "a\nb"], ids=["empty", "too long", "not printable"])
def test_an_id_that_no_job_can_have_is_refused_before_it_is_sent(unreachable: Client, job_id: str) -> None:
    for ask in (unreachable.cancel, unreachable.retry):
        with pytest.raises(InvalidJobError) as caught:
            ask(job_id)
        assert caught.value.field == "job_id"
