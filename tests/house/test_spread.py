"""The order of a parallel run."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.spread import spread


@given(st.integers(0, 50), st.integers(0, 500), st.integers(3, 8))
def test_every_test_is_run_once_and_slow_ones_begin_two_shares(slow: int, quick: int, workers: int) -> None:
    heavy = [f"slow-{number}" for number in range(slow)]
    light = [f"quick-{number}" for number in range(quick)]
    ordered = spread(heavy, light, workers)
    assert sorted(ordered) == sorted(heavy + light)
    share = len(ordered) // workers
    if share > slow:
        beginnings = [ordered[: len(heavy[0::2])], ordered[share : share + len(heavy[1::2])]]
        assert beginnings == [heavy[0::2], heavy[1::2]]
