"""What the demo says of a kill: what was lost ran again, and nothing else is counted as if it had."""

from collections.abc import Sequence

import pytest

from mainspring.cli.demo.recovery import recovery
from mainspring.cli.demo.screen import late_text
from mainspring.cli.demo.story import Attempt, Story
from mainspring.schemas.codes import RetryReason
from mainspring.schemas.common import JobStatus

KILLED_MS = 100_000


def attempt(number: int, started_at_ms: int, *, ended_as: str | None = None, due_at_ms: int = 90_000) -> Attempt:
    return Attempt(number=number, worker_id="w", due_at_ms=due_at_ms, started_at_ms=started_at_ms, ended_as=ended_as)


def story(*attempts: Attempt) -> Story:
    return Story(job_id="j", status=JobStatus.RUNNING, attempts=attempts)


def then_and_now(later: Sequence[Attempt], ended_as: str) -> tuple[dict[str, Story], dict[str, Story]]:
    running = {"j": story(attempt(1, 99_000))}
    return running, {"j": story(attempt(1, 99_000, ended_as=ended_as), *later)}


def test_an_attempt_after_a_lost_one_has_run_again() -> None:
    found = recovery(*then_and_now([attempt(2, 104_500)], RetryReason.LOST), KILLED_MS)
    assert [each.number for each in found.again] == [2]
    assert (found.ended, found.recovered_ms(KILLED_MS)) == (0, 4_500)


def test_a_retry_after_an_end_of_its_own_is_no_recovery() -> None:
    found = recovery(*then_and_now([attempt(2, 109_000)], RetryReason.FAILED), KILLED_MS)
    assert (found.again, found.ended, found.recovered_ms(KILLED_MS)) == ((), 1, 0)


def test_of_two_attempts_after_the_lost_one_the_first_tells_how_long_it_took() -> None:
    later = [attempt(2, 104_000, ended_as=RetryReason.FAILED), attempt(3, 120_000)]
    found = recovery(*then_and_now(later, RetryReason.LOST), KILLED_MS)
    assert found.recovered_ms(KILLED_MS) == 4_000


def test_jobs_that_were_due_and_had_not_started_are_told_apart() -> None:
    # given jobs that started before, started after, and were due only after the kill
    running, now = then_and_now([attempt(2, 104_000)], RetryReason.LOST)
    now["before"] = story(attempt(1, 99_500))
    now["stuck"] = story(attempt(1, 101_200, due_at_ms=99_000))
    now["not due"] = story(attempt(1, 102_000, due_at_ms=101_000))

    # when
    found = recovery(running, now, KILLED_MS)

    # then
    assert [each.late_ms for each in found.waited] == [2_200]


@pytest.mark.parametrize(("late_ms", "style"), [(1_900, ""), (2_000, "yellow"), (12_000, "bold yellow")])
def test_a_lateness_is_coloured_beyond_what_a_healthy_run_has(late_ms: int, style: str) -> None:
    assert str(late_text(late_ms).style) == style
