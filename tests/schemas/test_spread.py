"""The numbers that spread what happens at one instant."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.schemas.spread import spread_over

NAMES = st.text(max_size=40)


@given(NAMES, st.integers(-5, 2**53))
def test_a_number_is_below_its_bound_and_the_same_for_the_same_name(name: str, count: int) -> None:
    number = spread_over(name, count)

    assert 0 <= number < max(1, count)
    assert spread_over(name, count) == number


@settings(max_examples=20, deadline=None)  # a busy machine is no failure
@given(NAMES, st.integers(1_000, 86_400_000))
def test_numbers_of_many_names_are_spread_evenly(prefix: str, count: int) -> None:
    # Given 4,000 names, when their numbers are counted by tenths of the range,
    tenths = Counter(spread_over(f"{prefix}{number}", count) * 10 // count for number in range(4_000))

    # then each tenth has its share, give or take six standard deviations of a fair draw.
    assert all(abs(tenths[tenth] - 400) < 6 * (4_000 * 0.1 * 0.9) ** 0.5 for tenth in range(10))


def test_the_numbers_are_those_that_were_released() -> None:
    # Recorded jitter and delays of retries follow from them, so that a replay by a later version must find the same.
    assert [spread_over(f"job-{number}", 600_000) for number in range(3)] == [323_332, 4_451, 217_097]
