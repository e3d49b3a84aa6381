"""Workers under the kit: they die, fall silent, drain and come back, and the scheduler does what it promises."""

import asyncio
import time

import pytest

from mainspring.client import JobFailedError
from mainspring.jobs import App, ConcurrencyModel, JobStatus, RetryPolicy, current_context
from mainspring.processors.core import FIFOStrategy, QueueRules
from mainspring.schemas.codes import FailReason, ReportRefusal
from mainspring.schemas.events import JobFailed, JobRetryScheduled, JobStarted, ReportRefused
from mainspring.testing import Mainspring, WorkerGoneError, WorkerLife

app = App("workers")
trace: list[str] = []


@pytest.fixture(autouse=True)
def _empty_trace() -> None:
    trace.clear()


async def _side(name: str) -> None:
    try:
        await asyncio.sleep(1)
        trace.append(name)
    finally:
        trace.append(f"{name} unwound")


@app.job
async def steps() -> int:
    context = current_context()
    token = context.fencing_token
    async with asyncio.TaskGroup() as group:
        group.create_task(_side(f"side {token}"))
        trace.append(f"begin {token}")
        await asyncio.sleep(20)
    trace.append(f"end {token}")
    return token


@app.job
def blocking_steps() -> int:
    context = current_context()
    trace.append(f"begin {context.attempt}")
    time.sleep(20)
    trace.append(f"end {context.attempt}")
    return context.attempt


@app.job(model=ConcurrencyModel.PROCESS)
def process_steps(seconds: float) -> int:
    trace.append("begin")
    time.sleep(seconds)
    trace.append("end")
    return current_context().attempt


@app.job
async def note(name: str) -> None:
    trace.append(name)


@pytest.mark.parametrize(
    "job", [steps.job(), blocking_steps.job(), process_steps.job(20.0)], ids=["async", "thread", "process"]
)
def test_what_ran_on_a_dead_worker_runs_again_with_the_next_token(mainspring: Mainspring, job: object) -> None:
    # given
    handle = mainspring.submit(job)  # type: ignore[arg-type]  # parametrize loses the type
    mainspring.advance("500ms")
    dead = mainspring.worker_of(handle)

    # when
    dead.kill()
    mainspring.start_worker()
    mainspring.advance("9s999ms")
    handle.assert_status(JobStatus.RUNNING)
    mainspring.advance("1ms")

    # then
    assert mainspring.worker_of(handle).worker_id == "worker-2"
    assert handle.result() == 2
    handle.assert_events("JobSubmitted", "JobStarted", "JobRetryScheduled", "JobStarted", "JobCompleted")
    lost = [event for event in handle.events if isinstance(event, JobRetryScheduled)]
    assert [(event.reason, event.lost, event.retries) for event in lost] == [("LOST", 1, 0)]
    assert dead.life is WorkerLife.KILLED


def test_the_code_of_a_dead_worker_stops_where_it_stands() -> None:
    # given
    with Mainspring(app) as kit:
        job = kit.submit(steps.job())
        kit.advance("500ms")

        # when
        kit.worker_of(job).kill()
        kit.advance("1h")

        # then
        assert trace == ["begin 1"]
        job.assert_status(JobStatus.RETRY_WAIT)
    assert trace == ["begin 1", "side 1 unwound"], "unwound when the test is over, so that nothing is left behind"


@app.job
async def takes_its_worker_along() -> str:
    context = current_context()
    if context.attempt == 1:
        KITS[-1].workers[0].kill()
        await asyncio.sleep(0)
        trace.append("still alive")
    return "done"


@app.job
def takes_its_worker_along_in_a_thread() -> str:
    context = current_context()
    if context.attempt == 1:
        KITS[-1].workers[0].kill()
        trace.append("still alive")
    return "done"


KITS: list[Mainspring] = []


@pytest.mark.parametrize("job", [takes_its_worker_along, takes_its_worker_along_in_a_thread], ids=["async", "thread"])
def test_a_job_can_take_its_worker_along(mainspring: Mainspring, job: object) -> None:
    KITS.append(mainspring)
    handle = mainspring.submit(job)  # type: ignore[arg-type]  # parametrize loses the type
    mainspring.advance("1s")
    mainspring.start_worker()

    assert handle.result() == "done"
    assert trace == []
    handle.assert_attempts(2)


def test_a_job_that_is_lost_too_often_fails(mainspring: Mainspring) -> None:
    job = mainspring.submit(steps.job(), max_lost=1)

    for _ in range(2):
        mainspring.advance("1s")
        mainspring.worker_of(job).kill()
        mainspring.start_worker()
        mainspring.advance("9s")

    with pytest.raises(JobFailedError) as caught:
        job.result()
    assert caught.value.reason == FailReason.LOST
    assert isinstance(job.events[-1], JobFailed)


def test_the_late_result_of_a_worker_that_was_out_of_contact_is_refused(mainspring: Mainspring) -> None:
    # given
    job = mainspring.submit(blocking_steps.job())
    mainspring.advance("1s")
    zombie = mainspring.worker_of(job)

    # when
    zombie.disconnect()
    mainspring.start_worker()
    mainspring.advance("25s")
    assert trace == ["begin 1", "begin 2", "end 1"]
    zombie.reconnect()

    # then
    assert job.result() == 2
    refused = [event for event in job.events if isinstance(event, ReportRefused)]
    assert [(event.attempt, event.refusal) for event in refused] == [(1, ReportRefusal.STALE_ATTEMPT)]


def test_a_worker_that_is_out_of_contact_for_less_than_its_lease_loses_nothing(mainspring: Mainspring) -> None:
    job = mainspring.submit(blocking_steps.job())
    mainspring.advance("1s")

    mainspring.workers[0].disconnect()
    mainspring.advance("9s")
    mainspring.workers[0].reconnect()

    assert job.result() == 1


def test_a_drain_hands_back_what_does_not_end_in_time_and_counts_it_as_no_retry(mainspring: Mainspring) -> None:
    # given
    job = mainspring.submit(steps.job(), retry=RetryPolicy(max_retries=0))
    mainspring.advance("1s")
    draining = mainspring.worker_of(job)
    mainspring.start_worker()

    # when
    draining.drain("5s")

    # then
    assert draining.life is WorkerLife.STOPPED
    assert job.result() == 2
    released = next(event for event in job.events if isinstance(event, JobRetryScheduled))
    assert (released.reason, released.retries, released.lost, released.delay_ms) == ("RELEASED", 0, 0, 0)


def test_a_drain_lets_end_what_ends_in_time_and_takes_nothing_new(mainspring: Mainspring) -> None:
    job = mainspring.submit(steps.job())
    mainspring.advance("1s")
    mainspring.workers[0].drain("30s", wait=False)
    late = mainspring.submit(note.job("late"))

    mainspring.advance("1m")

    job.assert_completed(1)
    late.assert_status(JobStatus.PENDING)
    with pytest.raises(WorkerGoneError, match="stopped"):
        mainspring.workers[0].kill()
    mainspring.start_worker()
    late.wait()


def test_jobs_wait_until_there_is_a_worker(mainspring: Mainspring) -> None:
    mainspring.workers[0].kill()
    job = mainspring.submit(note.job("x"))
    mainspring.advance("1d")
    job.assert_status(JobStatus.PENDING)

    mainspring.start_worker()
    mainspring.advance(0)

    job.assert_completed()


def test_a_name_that_only_newer_workers_know_waits_for_one(mainspring: Mainspring) -> None:
    # given
    old, new = App("old"), App("new")

    @new.job
    async def novelty() -> str:
        return "new"

    with Mainspring(old) as kit:
        job = kit.submit("novelty")
        kit.advance("1m")
        job.assert_status(JobStatus.PENDING)

        # when
        kit.start_worker(new)

        # then
        assert job.result(timeout=6) == "new"


def test_a_name_that_nobody_knows_is_cancelled_in_the_end(mainspring: Mainspring) -> None:
    job = mainspring.submit("nobody knows me")

    assert job.wait() is JobStatus.CANCELLED
    job.assert_cancelled("UNKNOWN_NAME")


def test_a_scheduler_that_is_replaced_forgets_nothing(mainspring: Mainspring) -> None:
    running, waiting = mainspring.submit(steps.job()), mainspring.submit(note.job("x"), delay=60)
    mainspring.advance("5s")

    mainspring.restart_scheduler()
    mainspring.join()

    running.assert_completed(1)
    waiting.assert_completed()


@pytest.mark.mainspring(slots=2, workers=2)
def test_work_is_spread_and_never_runs_more_at_once_than_there_are_slots(mainspring: Mainspring) -> None:
    handles = [mainspring.submit(steps.job()) for _ in range(10)]

    mainspring.advance("1s")
    assert [len(worker.running) for worker in mainspring.workers] == [2, 2]
    mainspring.join()

    for handle in handles:
        handle.assert_completed(1)
    assert {event.worker_id for event in mainspring.events(JobStarted) if isinstance(event, JobStarted)} == {
        "worker-1",
        "worker-2",
    }


@pytest.mark.mainspring(slots=1, queues={"default": QueueRules(strategy=FIFOStrategy())})
def test_the_strategy_of_a_queue_is_the_real_one(mainspring: Mainspring) -> None:
    names = [f"{number}" for number in range(6)]

    for number, name in enumerate(names):
        mainspring.submit(note.job(name), priority=number % 4)  # type: ignore[arg-type]  # a priority is a number
    mainspring.join()

    assert trace == names
