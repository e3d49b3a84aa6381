"""How jobs are stopped, by their time-outs and by cancels, and when their slots are free again."""

import time
from functools import partial

from mainspring.workers.attempt import OutcomeKind, StopReason
from mainspring.workers.executors import JobExecutor
from tests.support import worker_jobs
from tests.workers.executing import attempt_of, has_outcome, is_over, kind_of, run, until


def test_an_async_job_that_times_out_is_cancelled_and_told_apart_from_its_own_timeout_error(
    executor: JobExecutor,
) -> None:
    began = time.monotonic()
    [attempt] = run(executor, attempt_of("a_wait", timeout_ms=100, may_retry=True))
    assert kind_of(attempt) is OutcomeKind.TIMED_OUT
    assert 0.1 <= time.monotonic() - began < 10
    assert attempt.context.is_cancelled


def test_a_thread_that_times_out_is_told_at_once_and_keeps_its_slot_until_it_returns(executor: JobExecutor) -> None:
    attempt = attempt_of("t_wait", timeout_ms=100)
    executor.invoke([attempt])
    until(executor, lambda: attempt.outcome is not None)
    assert kind_of(attempt) is OutcomeKind.TIMED_OUT
    assert not attempt.returned
    assert (executor.running, executor.overdue) == (1, 1)
    worker_jobs.gate.set()
    until(executor, lambda: attempt.returned and executor.running == 0)
    assert executor.overdue == 0
    assert kind_of(attempt) is OutcomeKind.TIMED_OUT, "the late result must not count"


def test_a_thread_whose_job_may_be_retried_is_told_only_when_its_call_is_over(executor: JobExecutor) -> None:
    attempt = attempt_of("t_wait", timeout_ms=50, may_retry=True)
    executor.invoke([attempt])
    until(executor, lambda: attempt.stop_reason is StopReason.TIMED_OUT)
    assert attempt.outcome is None
    worker_jobs.gate.set()
    until(executor, lambda: attempt.returned)
    assert kind_of(attempt) is OutcomeKind.TIMED_OUT


def test_ten_time_outs_on_few_slots_leave_every_slot_usable(executor: JobExecutor) -> None:
    for _ in range(10):
        late = attempt_of("t_wait", timeout_ms=5)
        executor.invoke([late])
        until(executor, partial(has_outcome, late))
        worker_jobs.gate.set()
        until(executor, partial(is_over, executor, late))
        worker_jobs.gate.clear()
    quick = [attempt_of("t_echo", value=n) for n in range(4)]
    assert {kind_of(attempt) for attempt in run(executor, *quick)} == {OutcomeKind.SUCCEEDED}
    assert executor._threads.thread_count <= executor.slots


def test_cancelling_an_async_job_stops_it_at_its_next_await(executor: JobExecutor) -> None:
    attempt = attempt_of("a_wait")
    executor.invoke([attempt])
    until(executor, lambda: attempt.running)
    executor.stop(attempt, StopReason.CANCELLED)
    until(executor, lambda: attempt.returned)
    assert kind_of(attempt) is OutcomeKind.CANCELLED


def test_cancelling_an_async_job_before_its_first_step_still_ends_it(executor: JobExecutor) -> None:
    attempt = attempt_of("a_wait")
    executor.invoke([attempt])
    executor.stop(attempt, StopReason.CANCELLED)
    until(executor, lambda: attempt.returned)
    assert kind_of(attempt) is OutcomeKind.CANCELLED


def test_an_async_job_that_swallows_its_cancellation_is_told_and_keeps_its_slot(executor: JobExecutor) -> None:
    attempt = attempt_of("a_stubborn", timeout_ms=50)
    executor.invoke([attempt])
    until(executor, lambda: attempt.outcome is not None)
    assert kind_of(attempt) is OutcomeKind.TIMED_OUT
    assert (attempt.returned, executor.running) == (False, 1)
    worker_jobs.gate.set()
    until(executor, lambda: attempt.returned and executor.running == 0)


def test_cancelling_a_thread_is_told_at_once_and_seen_by_the_handler(executor: JobExecutor) -> None:
    attempt = attempt_of("t_wait")
    executor.invoke([attempt])
    until(executor, lambda: attempt.running)
    executor.stop(attempt, StopReason.CANCELLED)
    executor.collect()
    assert kind_of(attempt) is OutcomeKind.CANCELLED
    assert attempt.context.is_cancelled
    assert not attempt.returned


def test_time_outs_of_ended_jobs_do_not_pile_up(executor: JobExecutor) -> None:
    for _ in range(600):
        run(executor, *(attempt_of("a_echo", timeout_ms=3_600_000) for _ in range(4)))
    assert len(executor._expiries) < 1_200
