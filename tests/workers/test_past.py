"""What a worker is done with is not claimed again; what only looks like it is."""

from hypothesis import given
from hypothesis import strategies as st

from mainspring.workers.past import PAST_MAX, PAST_S, PastAttempts


def test_a_past_attempt_and_those_before_it_are_covered_and_the_next_is_not() -> None:
    past = PastAttempts()
    past.over("job", 2, 100, now=0.0)

    assert [past.covers("job", attempt, 100) for attempt in (1, 2, 3)] == [True, True, False]
    assert not past.covers("other", 1, 100)


def test_a_job_that_lives_anew_under_an_old_id_is_due_later_and_not_covered() -> None:
    past = PastAttempts()
    past.over("job", 3, 100, now=0.0)

    assert past.covers("job", 1, 50)
    assert not past.covers("job", 1, 101)


def test_what_was_handed_back_unknown_is_covered_whenever_it_was_due() -> None:
    past = PastAttempts()
    past.over("job", 1, None, now=0.0)

    assert past.covers("job", 1, 1 << 40)


def test_handing_back_what_was_started_keeps_what_is_known_of_it() -> None:
    past = PastAttempts()
    past.over("job", 1, 100, now=0.0)
    past.over("job", 1, None, now=1.0)

    assert not past.covers("job", 1, 101)


def test_a_claim_that_was_given_up_is_not_repeated_before_it_is_refused() -> None:
    past = PastAttempts()
    past.given_up("job", 2, now=0.0)
    assert [past.covers("job", attempt, 0) for attempt in (1, 2, 3)] == [False, True, False]

    past.refused("job", 2)

    assert not past.covers("job", 2, 0)


def test_a_refusal_says_nothing_of_what_was_started() -> None:
    past = PastAttempts()
    past.over("job", 1, 100, now=0.0)

    past.refused("job", 1)

    assert past.covers("job", 1, 100)


def test_a_claim_that_is_never_answered_is_forgotten_after_a_while() -> None:
    past = PastAttempts()
    past.given_up("job", 1, now=0.0)

    past.forget(PAST_S)

    assert not past.covers("job", 1, 0)


def test_a_claim_is_remembered_while_a_scheduler_is_half_an_hour_behind_with_what_workers_write() -> None:
    past = PastAttempts()
    past.given_up("job", 1, now=0.0)

    past.forget(1_800.0)

    assert past.covers("job", 1, 0)


def test_the_past_is_forgotten_after_a_while() -> None:
    past = PastAttempts()
    past.over("first", 1, 0, now=0.0)
    past.over("second", 1, 0, now=100.0)

    past.forget(PAST_S)

    assert (past.covers("first", 1, 0), past.covers("second", 1, 0)) == (False, True)


def test_of_too_many_the_oldest_are_forgotten() -> None:
    past = PastAttempts()
    for number in range(PAST_MAX + 10):
        past.over(f"job-{number}", 1, 0, now=0.0)

    assert len(past) == PAST_MAX
    assert not past.covers("job-9", 1, 0)
    assert past.covers("job-10", 1, 0)


def test_news_of_an_earlier_attempt_does_not_hide_a_later_one() -> None:
    past = PastAttempts()
    past.over("job", 3, 100, now=0.0)
    past.over("job", 2, None, now=1.0)

    assert past.covers("job", 3, 100)
    assert not past.covers("job", 4, 200)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 5), st.none() | st.integers(0, 9)), min_size=1))
def test_what_was_added_is_covered(steps: list[tuple[str, int, int | None]]) -> None:
    past = PastAttempts()
    for job_id, attempt, due_at_ms in steps:
        past.over(job_id, attempt, due_at_ms, now=0.0)

        assert past.covers(job_id, attempt, 0 if due_at_ms is None else due_at_ms)
        assert not past.covers(job_id, 6, 0)
