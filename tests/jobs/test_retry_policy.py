"""Back-off: within its bounds for every attempt number."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.jobs import RetryPolicy

delays = st.floats(min_value=0, max_value=1e300, allow_nan=False)


@pytest.mark.parametrize(("attempt", "cap"), [(1, 1.0), (2, 2.0), (3, 4.0), (6, 32.0), (7, 60.0), (10**6, 60.0)])
def test_the_cap_doubles_up_to_its_maximum(attempt: int, cap: float) -> None:
    assert RetryPolicy(max_retries=9, base_delay=1, max_delay=60, jitter=False).cap(attempt) == cap


@settings(deadline=None)  # a busy machine is no failure
@given(attempt=st.integers(min_value=1, max_value=10**6), base=delays, longest=delays)
def test_no_attempt_number_overflows_or_leaves_the_bounds(attempt: int, base: float, longest: float) -> None:
    policy = RetryPolicy(base_delay=base, max_delay=longest)
    cap = policy.cap(attempt)
    assert 0 <= cap <= longest
    assert 0 <= policy.delay(attempt, random.Random(attempt)) <= cap


@settings(deadline=None)  # a busy machine is no failure
@given(attempt=st.integers(min_value=1, max_value=40))
def test_without_jitter_the_delay_is_the_cap(attempt: int) -> None:
    policy = RetryPolicy(jitter=False)
    assert policy.delay(attempt, random.Random(0)) == policy.cap(attempt)


def test_full_jitter_uses_the_whole_range() -> None:
    drawn = [RetryPolicy(base_delay=8).delay(1, random.Random(seed)) for seed in range(200)]
    assert min(drawn) < 1
    assert max(drawn) > 7


@pytest.mark.parametrize("bad", [-1, 1.5, True, "3", None])
def test_a_number_of_retries_that_is_none_is_refused(bad: object) -> None:
    with pytest.raises(ValueError, match="max_retries"):
        RetryPolicy(max_retries=bad)  # type: ignore[arg-type]  # what an untyped caller may give


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, True, "1"])
def test_a_delay_that_is_none_is_refused(bad: object) -> None:
    with pytest.raises(ValueError, match="base_delay"):
        RetryPolicy(base_delay=bad)  # type: ignore[arg-type]  # the same
    with pytest.raises(ValueError, match="max_delay"):
        RetryPolicy(max_delay=bad)  # type: ignore[arg-type]  # the same


def test_attempts_are_counted_from_one() -> None:
    with pytest.raises(ValueError, match="from 1"):
        RetryPolicy().cap(0)
