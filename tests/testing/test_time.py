"""Time under the kit: it stands still until a test moves it, and then everything happens exactly when it is due."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

from mainspring.client import JobCancelledError, JobFailedError, JobTimedOutError, ResultTimeoutError
from mainspring.jobs import App, JobStatus, RetryLater, RetryPolicy, current_context
from mainspring.processors.core.explain import ScheduledUntil
from mainspring.schemas.events import JobRetryScheduled, JobStarted, JobSubmitted
from mainspring.testing import Mainspring, StandstillError
from mainspring.testing.kit import START

app = App("time")


@app.job
async def nap(seconds: float) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.sleep(seconds)
    return loop.time() - began


@app.job
def doze(seconds: float) -> str:
    time.sleep(seconds)
    return "rested"


@app.job
async def fails(message: str) -> None:
    raise ValueError(message)


@app.job
async def hangs() -> None:
    await asyncio.Event().wait()


@app.job
async def later() -> int:
    context = current_context()
    if context.attempt == 1:
        raise RetryLater(timedelta(hours=6))
    return context.attempt


def test_nothing_happens_while_time_stands_still(mainspring: Mainspring) -> None:
    job = mainspring.submit(nap.job(0.0))

    assert mainspring.now == START
    job.assert_status(None)
    assert job.status() is JobStatus.PENDING, "asking decides the submit and starts nothing"
    assert job.attempts == 0


def test_a_delayed_job_starts_at_its_very_millisecond(mainspring: Mainspring) -> None:
    # given
    job = mainspring.submit(nap.job(0.25), delay=7200)

    # when
    before = mainspring.advance("1h59m59s999ms")
    after = mainspring.advance("1ms")

    # then
    assert [type(event) for event in before] == [JobSubmitted]
    assert [type(event) for event in after] == [JobStarted]
    assert job.result() == 0.25
    assert mainspring.now == START + timedelta(hours=2, milliseconds=250)


def test_a_year_passes_in_one_step(mainspring: Mainspring) -> None:
    job = mainspring.submit(doze.job(86_400.0), run_at=datetime(2031, 1, 1, tzinfo=UTC))

    mainspring.advance_to(datetime(2031, 1, 3, tzinfo=UTC))

    job.assert_completed("rested")
    assert mainspring.get(job.job_id).finished_at == datetime(2031, 1, 2, tzinfo=UTC)


def test_sleeps_end_in_time_after_years_too(mainspring: Mainspring) -> None:
    job = mainspring.submit(nap.job(0.02), delay=timedelta(days=3_650) + timedelta(milliseconds=1))

    assert job.result() == pytest.approx(0.02, abs=1e-6)

    assert mainspring.now - START == timedelta(days=3_650, milliseconds=21)


def test_time_does_not_go_back(mainspring: Mainspring) -> None:
    mainspring.advance("1h")

    with pytest.raises(ValueError, match="time does not go back"):
        mainspring.advance_to(START)
    with pytest.raises(ValueError, match="negative"):
        mainspring.advance(-1)
    with pytest.raises(ValueError, match="write it like"):
        mainspring.advance("soon")


def test_the_back_off_doubles_up_to_its_cap(mainspring: Mainspring) -> None:
    policy = RetryPolicy(max_retries=5, base_delay=10, max_delay=60, jitter=False)
    job = mainspring.submit(fails.job("no"), retry=policy)

    with pytest.raises(JobFailedError, match="no"):
        job.result()

    delays = [event.delay_ms for event in job.events if isinstance(event, JobRetryScheduled)]
    assert delays == [10_000, 20_000, 40_000, 60_000, 60_000]
    assert mainspring.now == START + timedelta(seconds=190)


def _delays(seed: int) -> list[int]:
    with Mainspring(app, seed=seed) as kit:
        kit.submit(fails.job("no"), retry=RetryPolicy(max_retries=4, base_delay=60)).wait()
        return [event.delay_ms for event in kit.events(JobRetryScheduled) if isinstance(event, JobRetryScheduled)]


def test_the_seed_decides_the_jitter() -> None:
    assert _delays(1) == _delays(1)
    assert _delays(1) != _delays(2)


def test_a_handler_may_say_itself_when_to_try_again(mainspring: Mainspring) -> None:
    job = mainspring.submit(later.job(), retry=RetryPolicy(max_retries=1))

    assert job.result() == 2
    assert mainspring.now == START + timedelta(hours=6)


def test_what_takes_long_without_a_sleep_can_be_made_to_take_virtual_time(mainspring: Mainspring) -> None:
    mainspring.takes(nap, "10m")
    mainspring.takes("doze", 300)
    jobs = [mainspring.submit(nap.job(1.0)), mainspring.submit(doze.job(1.0))]

    mainspring.join()

    ran = [job.get() for job in jobs]
    assert [(info.finished_at or START) - START for info in ran] == [timedelta(seconds=601), timedelta(seconds=301)]


@pytest.mark.parametrize("job", [nap.job(60.0), doze.job(60.0)], ids=["async", "thread"])
def test_a_time_out_comes_exactly_in_time(mainspring: Mainspring, job: object) -> None:
    handle = mainspring.submit(job, timeout=5)  # type: ignore[arg-type]  # parametrize loses the type

    with pytest.raises(JobTimedOutError):
        handle.result()

    handle.assert_timed_out()
    assert mainspring.now == START + timedelta(seconds=5)


def test_a_start_deadline_that_passes_cancels_the_job(mainspring: Mainspring) -> None:
    job = mainspring.submit(nap.job(0.0), delay=60, start_deadline=START + timedelta(seconds=30))

    mainspring.advance("2m")

    job.assert_cancelled("EXPIRED")
    job.assert_attempts(0)


def test_a_waiting_job_can_be_put_off(mainspring: Mainspring) -> None:
    # given
    job = mainspring.submit(nap.job(0.0), delay=60)

    # when
    due_at = job.reschedule(delay=3600)

    # then
    assert due_at == START + timedelta(hours=1)
    mainspring.advance("59m59s")
    assert isinstance(mainspring.explain(job.job_id), ScheduledUntil)
    mainspring.advance("1s")
    job.assert_completed()


def test_waiting_ends_with_its_patience_and_harms_nothing(mainspring: Mainspring) -> None:
    job = mainspring.submit(nap.job(60.0))

    with pytest.raises(ResultTimeoutError) as caught:
        job.result(timeout=59.5)

    assert caught.value.status is JobStatus.RUNNING
    assert mainspring.now == START + timedelta(seconds=59.5)
    assert job.result() == 60


def test_waiting_for_ever_for_what_never_ends_is_told_with_the_history(mainspring: Mainspring) -> None:
    job = mainspring.submit(hangs.job())

    with pytest.raises(StandstillError, match="attempt 1 on worker-1"):
        job.result()
    with pytest.raises(StandstillError):
        mainspring.join()
    assert not mainspring.join(timeout="1h")

    assert job.cancel("enough")
    with pytest.raises(JobCancelledError, match="enough"):
        job.result()


def test_an_assertion_that_fails_tells_the_history_of_the_job(mainspring: Mainspring) -> None:
    job = mainspring.submit(fails.job("out of paper"), delay=90)
    mainspring.advance("5m")

    with pytest.raises(AssertionError) as caught:
        job.assert_completed()

    told = str(caught.value)
    assert "expected COMPLETED, found FAILED" in told
    assert "+0:01:30  JobStarted    attempt 1 on worker-1" in told
    assert "JobFailed     attempt 1 FAILED: ValueError: out of paper" in told
