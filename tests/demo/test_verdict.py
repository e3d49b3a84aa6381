"""The verdict of the demo is right about right lives, and sees each way in which a life can be wrong."""

import pytest

from mainspring.cli.demo.plan import Planned, make_plan
from mainspring.cli.demo.verdict import judge
from mainspring.schemas.codes import RetryReason
from mainspring.schemas.common import JobStatus
from mainspring.schemas.records import JobEvent
from tests.demo.lives import ended, retried, right_life, started, story_of, submitted

PLAN = make_plan()
BY_ID = {planned.job_id: planned for planned in PLAN}
EMAIL = BY_ID["email-01"]
ONE_OF_EACH = list({planned.kind: planned for planned in PLAN}.values())


def _differences(planned: Planned, life: list[JobEvent]) -> str:
    (verdict,), _ = judge((planned,), {planned.job_id: story_of(life)})
    assert verdict.is_right == (not verdict.differences)
    return "; ".join(verdict.differences)


@pytest.mark.parametrize("planned", ONE_OF_EACH, ids=lambda planned: planned.job_id)
def test_a_life_as_planned_is_right(planned: Planned) -> None:
    assert _differences(planned, right_life(planned)) == ""


@pytest.mark.parametrize("planned", ONE_OF_EACH, ids=lambda planned: planned.job_id)
def test_another_end_than_the_planned_one_is_seen(planned: Planned) -> None:
    other = JobStatus.FAILED if planned.expected.status is not JobStatus.FAILED else JobStatus.COMPLETED

    wrong = [*right_life(planned)[:-1], ended(planned, planned.expected.attempts, other)]

    assert f"must be {planned.expected.status.name}" in _differences(planned, wrong)


@pytest.mark.parametrize("planned", ONE_OF_EACH, ids=lambda planned: planned.job_id)
def test_a_life_without_an_end_and_one_with_two_are_seen(planned: Planned) -> None:
    life = right_life(planned)

    assert "has 0 ends" in _differences(planned, life[:-1])
    assert "has 2 ends" in _differences(planned, [*life, life[-1]])


def test_attempts_lost_with_a_worker_come_on_top_of_those_planned() -> None:
    life: list[JobEvent] = [
        submitted(EMAIL),
        started(EMAIL, 1),
        retried(EMAIL, 1, RetryReason.LOST),
        started(EMAIL, 2, 20_010),
        ended(EMAIL, 2),
    ]

    assert _differences(EMAIL, life) == ""
    assert story_of(life).lost == 1


def test_an_attempt_too_many_is_seen() -> None:
    life: list[JobEvent] = [
        submitted(EMAIL),
        started(EMAIL, 1),
        retried(EMAIL, 1, RetryReason.FAILED),
        started(EMAIL, 2, 20_010),
        ended(EMAIL, 2),
    ]

    assert "took 2 attempts and must take 1" in _differences(EMAIL, life)


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_handler_that_goes_by_the_number_of_the_attempt_is_right_whichever_attempt_is_lost(lost: int) -> None:
    payment = BY_ID["payment-01"]
    last = 4 if lost == 3 else 3
    life: list[JobEvent] = [submitted(payment)]
    for attempt in range(1, last):
        reason = RetryReason.LOST if attempt == lost else RetryReason.FAILED
        life += [started(payment, attempt), retried(payment, attempt, reason)]

    assert _differences(payment, [*life, started(payment, last), ended(payment, last)]) == ""


def test_a_handler_that_goes_by_the_number_of_the_attempt_cannot_succeed_sooner() -> None:
    payment = BY_ID["payment-01"]
    life: list[JobEvent] = [
        submitted(payment),
        started(payment, 1),
        retried(payment, 1, RetryReason.FAILED),
        started(payment, 2),
    ]

    assert "took 2 attempts and must take 3" in _differences(payment, [*life, ended(payment, 2)])


def test_another_result_is_seen() -> None:
    assert "returned 'nothing'" in _differences(EMAIL, [*right_life(EMAIL)[:-1], ended(EMAIL, 1, result="nothing")])


def test_a_start_before_its_time_is_seen() -> None:
    reminder = BY_ID["reminder-05"]

    assert "started 1 ms before its time" in _differences(
        reminder, [submitted(reminder), started(reminder, 1, -1), ended(reminder, 1)]
    )


def test_a_job_that_the_log_does_not_know_and_one_that_nobody_planned_are_seen() -> None:
    stranger = story_of(right_life(EMAIL))

    (verdict,), unplanned = judge((BY_ID["email-02"],), {"email-01": stranger})

    assert verdict.differences == ("the log does not know it",)
    assert unplanned == ("email-01",)
