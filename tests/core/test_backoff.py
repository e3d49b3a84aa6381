"""Back-off: capped, never overflowing, jittered the same way by whoever computes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.processors.core.retry import backoff_cap_ms, full_jitter_ms, retry_delay_ms
from mainspring.schemas.bounds import RETRY_DELAY_MAX_MS
from mainspring.schemas.job import JobSpec

delays = st.integers(0, RETRY_DELAY_MAX_MS)


@pytest.mark.parametrize(
    ("base_ms", "max_ms", "attempts", "expected"),
    [
        (100, 60_000, [1, 10, 11, 1023, 1024, 1025, 100_000], [100, 51_200, 60_000, 60_000, 60_000, 60_000, 60_000]),
        (1000, 3_600_000, [12, 13, 38, 39, 47, 48], [2_048_000] + [3_600_000] * 5),
        (0, 1000, [1, 2, 1_000_000], [0, 0, 0]),
        (1000, 0, [1, 1_000_000], [0, 0]),
        (1, 1, [1, 2, 3], [1, 1, 1]),
    ],
)
def test_the_cap_is_the_base_doubled_for_each_attempt(
    base_ms: int, max_ms: int, attempts: list[int], expected: list[int]
) -> None:
    assert [backoff_cap_ms(base_ms, max_ms, attempt) for attempt in attempts] == expected


@given(base_ms=delays, max_ms=delays, attempt=st.integers(1, 200))
def test_the_cap_is_what_unbounded_numbers_say(base_ms: int, max_ms: int, attempt: int) -> None:
    assert backoff_cap_ms(base_ms, max_ms, attempt) == min(max_ms, base_ms * 2 ** (attempt - 1))


@given(base_ms=delays, max_ms=delays, attempt=st.integers(1, 10**9), seed=st.integers(), jitter=st.booleans())
def test_a_delay_is_between_nothing_and_the_cap_at_any_attempt(
    base_ms: int, max_ms: int, attempt: int, seed: int, jitter: bool
) -> None:
    spec = JobSpec(job_id="j", name="n", retry_base_delay_ms=base_ms, retry_max_delay_ms=max_ms, retry_jitter=jitter)
    delay_ms = retry_delay_ms(spec, attempt, seed)
    cap_ms = backoff_cap_ms(base_ms, max_ms, attempt)
    assert 0 <= delay_ms <= cap_ms <= max_ms
    if not jitter:
        assert delay_ms == cap_ms


def test_jitter_is_the_same_for_whoever_replays_it_and_differs_between_jobs_attempts_and_seeds() -> None:
    assert full_jitter_ms(10**9, "a", 1, 7) == full_jitter_ms(10**9, "a", 1, 7)
    drawn = {
        full_jitter_ms(10**9, job_id, attempt, seed) for job_id in ("a", "b") for attempt in (1, 2) for seed in (7, 8)
    }
    assert len(drawn) == 8


def test_jitter_is_spread_over_the_whole_range() -> None:
    drawn = [full_jitter_ms(99, f"job-{number}", 1, 0) for number in range(20_000)]
    counts = [drawn.count(value) for value in range(100)]
    assert min(drawn) == 0
    assert max(drawn) == 99
    assert min(counts) > 120
    assert max(counts) < 290
