"""Jobs of one instant, spread over a while: the time of each follows from its id."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.client.schedules import Cron
from mainspring.client.schedules.definition import define
from mainspring.jobs import App, AsyncJob, InvalidJobError, JobOptions
from mainspring.jobs.payload import JSON
from mainspring.jobs.spec import to_spec

MIDNIGHT = datetime(2030, 1, 1, tzinfo=UTC)
MIDNIGHT_MS = int(MIDNIGHT.timestamp()) * 1_000
IDS = st.from_regex(r"[a-z0-9-]{1,40}", fullmatch=True)


@given(IDS, st.integers(0, 10 * 86_400_000))
def test_a_job_is_due_within_its_window_and_always_at_the_same_time(job_id: str, window_ms: int) -> None:
    # Given a job with a window, when it is submitted twice,
    options = JobOptions(job_id=job_id, run_at=MIDNIGHT, spread=timedelta(milliseconds=window_ms))
    first, again = to_spec("x", options=options), to_spec("x", options=options)

    # then it is due in the window, both times at the same instant.
    assert first == again
    assert first.run_at_ms is not None
    assert 0 <= first.run_at_ms - MIDNIGHT_MS < max(1, window_ms)


@given(IDS, st.integers(1, 86_400_000), st.integers(0, 86_400_000))
def test_a_delay_grows_by_as_much_as_a_time_moves(job_id: str, window_ms: int, delay_ms: int) -> None:
    own: dict[str, Any] = {"job_id": job_id, "spread": timedelta(milliseconds=window_ms)}
    at = to_spec("x", options=JobOptions(run_at=MIDNIGHT, **own))
    after = to_spec("x", options=JobOptions(delay=timedelta(milliseconds=delay_ms), **own))

    assert at.run_at_ms is not None
    assert after.delay_ms is not None
    assert after.delay_ms - delay_ms == at.run_at_ms - MIDNIGHT_MS


def test_jobs_with_drawn_ids_and_shared_terms_are_spread_over_the_whole_window() -> None:
    # Given a thousand jobs of one instant with one value for their terms, as `submit_many` has it,
    terms = JobOptions(run_at=MIDNIGHT, spread=600)

    # when their times are counted by minutes,
    minutes = Counter(((to_spec("x", options=terms).run_at_ms or 0) - MIDNIGHT_MS) // 60_000 for _ in range(1_000))

    # then none of the ten has less than half or more than twice its share.
    assert set(minutes) == set(range(10))
    assert all(50 <= jobs <= 200 for jobs in minutes.values())


def test_a_handler_and_a_class_may_have_a_spread_of_their_own() -> None:
    app = App("reports")

    @app.job(spread=60)
    async def report() -> None:
        """Nothing."""

    class Report(AsyncJob):
        spread = 60

        async def run(self) -> None:
            """Nothing."""

    expected = to_spec("x", options=JobOptions(job_id="r-1", run_at=MIDNIGHT, spread=60)).run_at_ms
    assert to_spec(report, options=JobOptions(job_id="r-1", run_at=MIDNIGHT)).run_at_ms == expected
    assert to_spec(Report(job_id="r-1", run_at=MIDNIGHT)).run_at_ms == expected
    assert expected != MIDNIGHT_MS


@pytest.mark.parametrize("spread", [-1, float("nan"), "10m", True, timedelta(days=4_000)])
def test_a_window_that_cannot_be_is_refused_by_name(spread: Any) -> None:
    with pytest.raises(InvalidJobError) as refused:
        to_spec("x", options=JobOptions(run_at=MIDNIGHT, spread=spread))

    assert refused.value.field == "spread"


def test_a_spread_without_a_time_is_refused_rather_than_ignored() -> None:
    with pytest.raises(InvalidJobError, match="needs run_at or delay") as refused:
        to_spec("x", options=JobOptions(spread=60))

    assert refused.value.field == "spread"


def test_the_template_of_a_schedule_has_no_spread_for_all_instances_would_be_moved_alike() -> None:
    with pytest.raises(InvalidJobError, match="spread"):
        define("s", Cron("0 0 * * *"), "x", None, JobOptions(spread=60), JSON, {})
