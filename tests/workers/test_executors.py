"""Each way of running a job: how it ends, stops, dies and what it writes."""

import contextlib
import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psutil
import pytest

from mainspring.jobs import JobContext
from mainspring.schemas.bounds import RETRY_DELAY_MAX_MS
from mainspring.workers.attempt import Attempt, OutcomeKind, StopReason
from mainspring.workers.capture import captured
from mainspring.workers.executors import JobExecutor
from mainspring.workers.registry import Registry
from tests.support import worker_jobs

MODELS = ("a", "t", "p")
PATIENCE_S = 20.0


@contextlib.contextmanager
def an_executor() -> Iterator[JobExecutor]:
    worker_jobs.gate.clear()
    running = JobExecutor(Registry(worker_jobs.app), slots=4)
    running.start()
    yield running
    worker_jobs.gate.set()
    running.shutdown(5.0)


@pytest.fixture
def executor() -> Iterator[JobExecutor]:
    with an_executor() as running:
        yield running


def attempt_of(
    name: str, timeout_ms: int | None = None, may_retry: bool = False, job_id: str | None = None, **args: Any
) -> Attempt:
    handler = Registry(worker_jobs.app).get(name)
    assert handler is not None
    return Attempt(
        handler=handler,
        context=JobContext(job_id=job_id or f"job-{name}", name=name, attempt=3),
        payload=json.dumps(args).encode(),
        timeout_ms=timeout_ms,
        may_retry=may_retry,
    )


def until(executor: JobExecutor, met: Callable[[], bool]) -> list[Attempt]:
    """Collects until a condition is met."""
    news: list[Attempt] = []
    ends = time.monotonic() + PATIENCE_S
    while not met():
        assert time.monotonic() < ends, "the condition was not met in time"
        news += executor.collect(wait_s=0.05)
    return news


def run(executor: JobExecutor, *attempts: Attempt) -> list[Attempt]:
    executor.invoke(attempts)
    until(executor, lambda: all(attempt.returned for attempt in attempts))
    executor.collect()
    return list(attempts)


def has_outcome(attempt: Attempt) -> bool:
    return attempt.outcome is not None


def is_over(executor: JobExecutor, attempt: Attempt) -> bool:
    return attempt.returned and executor.running == 0


def kind_of(attempt: Attempt) -> OutcomeKind | None:
    return attempt.outcome.kind if attempt.outcome else None


def error_of(attempt: Attempt) -> tuple[str, str]:
    assert attempt.outcome is not None
    assert attempt.outcome.error is not None, attempt.outcome
    return attempt.outcome.error.type, attempt.outcome.error.message


@pytest.mark.parametrize("model", MODELS)
def test_a_result_comes_back_as_encoded_bytes(executor: JobExecutor, model: str) -> None:
    [attempt] = run(executor, attempt_of(f"{model}_echo", value={"é": [1, None, "\x00"]}))
    assert attempt.outcome is not None
    assert attempt.outcome.kind is OutcomeKind.SUCCEEDED
    assert json.loads(attempt.outcome.result or b"") == {"é": [1, None, "\x00"]}
    assert executor.running == 0


@pytest.mark.parametrize("model", MODELS)
def test_none_is_a_result_of_no_bytes(executor: JobExecutor, model: str) -> None:
    [attempt] = run(executor, attempt_of(f"{model}_echo"))
    assert attempt.outcome is not None
    assert (attempt.outcome.kind, attempt.outcome.result) == (OutcomeKind.SUCCEEDED, None)


@pytest.mark.parametrize(
    ("name", "args", "result"),
    [("Add", {"a": 2}, 3), ("Concat", {"words": ["a", "b"]}, "a b"), ("Square", {"n": 7}, 49)],
)
def test_a_job_class_runs_by_its_base_class(
    executor: JobExecutor, name: str, args: dict[str, Any], result: Any
) -> None:
    [attempt] = run(executor, attempt_of(name, **args))
    assert attempt.outcome is not None
    assert json.loads(attempt.outcome.result or b"null") == result


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("kind", "error_type", "message", "retryable", "delay_ms"),
    [
        ("value", "ValueError", "no good", True, None),
        ("final", "mainspring.jobs.errors.NonRetryableError", "give up", False, None),
        ("later", "mainspring.jobs.errors.RetryLater", "not now", True, 2500),
        ("never", "mainspring.jobs.errors.RetryLater", "not in this world", True, RETRY_DELAY_MAX_MS),
        ("half", "tests.support.worker_jobs.HalfMadeRetry", "half made", True, None),
        ("mute", "tests.support.worker_jobs.MuteError", "its text cannot be made", True, None),
        ("timeout", "TimeoutError", "the job's own", True, None),
        ("two", "tests.support.worker_jobs.TwoArgumentsError", "one and two", True, None),
        ("exit", "SystemExit", "3", True, None),
        ("base", "tests.support.worker_jobs.OwnBaseError", "base", True, None),
        ("cancelled", "asyncio.exceptions.CancelledError", "", True, None),
        ("lambda", "mainspring.jobs.errors.ResultNotEncodableError", "function", False, None),
        ("lock", "mainspring.jobs.errors.ResultNotEncodableError", "lock", False, None),
        ("nan", "mainspring.jobs.errors.ResultNotEncodableError", "a[1]", False, None),
        ("large", "mainspring.jobs.errors.ResultTooLargeError", "300002 bytes", False, None),
    ],
)
def test_a_failure_comes_back_as_data_and_the_next_job_runs(
    executor: JobExecutor, model: str, kind: str, error_type: str, message: str, retryable: bool, delay_ms: int | None
) -> None:
    [attempt] = run(executor, attempt_of(f"{model}_raise", kind=kind))
    assert attempt.outcome is not None
    assert attempt.outcome.kind is OutcomeKind.FAILED
    assert error_of(attempt)[0] == error_type
    assert message in error_of(attempt)[1]
    assert (attempt.outcome.retryable, attempt.outcome.retry_delay_ms) == (retryable, delay_ms)
    [after] = run(executor, attempt_of(f"{model}_echo", value=1))
    assert kind_of(after) is OutcomeKind.SUCCEEDED


@pytest.mark.parametrize("model", MODELS)
def test_a_traceback_begins_in_the_users_code(executor: JobExecutor, model: str) -> None:
    [attempt] = run(executor, attempt_of(f"{model}_raise", kind="value"))
    assert attempt.outcome is not None
    assert attempt.outcome.error is not None
    trace = attempt.outcome.error.traceback or ""
    assert "worker_jobs.py" in trace
    assert "mainspring/workers" not in trace


@pytest.mark.parametrize("model", MODELS)
def test_a_payload_that_does_not_fit_is_never_retried_and_names_the_field(executor: JobExecutor, model: str) -> None:
    [attempt] = run(executor, attempt_of(f"{model}_raise", sort="x"))
    assert attempt.outcome is not None
    assert not attempt.outcome.retryable
    assert error_of(attempt)[0].endswith("PayloadMismatchError")
    assert "kind: " in error_of(attempt)[1]
    assert "sort: " in error_of(attempt)[1]


@pytest.mark.parametrize("model", MODELS)
def test_a_handler_knows_which_attempt_it_is(executor: JobExecutor, model: str) -> None:
    [attempt] = run(executor, attempt_of(f"{model}_context", job_id="j1"))
    assert attempt.outcome is not None
    told = json.loads(attempt.outcome.result or b"{}")
    assert (told["id"], told["token"], told["key"]) == ("j1", 3, "j1")


@pytest.mark.parametrize(("name", "fraction", "note"), [("a_context", 0.5, "half"), ("p_context", 0.25, "quarter")])
def test_progress_reaches_the_worker(executor: JobExecutor, name: str, fraction: float, note: str) -> None:
    [attempt] = run(executor, attempt_of(name))
    assert (attempt.context.progress_fraction, attempt.context.note) == (fraction, note)


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


def test_a_process_that_times_out_is_killed_although_it_ignores_signals_and_the_pool_survives(
    executor: JobExecutor,
) -> None:
    run(executor, attempt_of("p_echo"))  # the start of the child is not what is measured
    [pid] = executor._processes.process_ids
    began = time.monotonic()
    [attempt] = run(executor, attempt_of("p_ignore_signals", timeout_ms=200, may_retry=True))
    assert kind_of(attempt) is OutcomeKind.TIMED_OUT
    assert time.monotonic() - began < 10
    assert not psutil.pid_exists(pid)
    [after] = run(executor, attempt_of("p_echo", value=1))
    assert kind_of(after) is OutcomeKind.SUCCEEDED


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


def test_a_handler_that_stops_the_event_loop_does_not_stop_the_other_jobs(executor: JobExecutor) -> None:
    [stopper] = run(executor, attempt_of("a_stop_loop"))
    [after] = run(executor, attempt_of("a_echo", value=1))

    assert (kind_of(stopper), kind_of(after)) == (OutcomeKind.SUCCEEDED, OutcomeKind.SUCCEEDED)


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


def test_a_cancelled_process_may_finish_within_its_grace(executor: JobExecutor) -> None:
    attempt = attempt_of("p_cooperate")
    executor.invoke([attempt])
    until(executor, lambda: attempt.running)
    executor.stop(attempt, StopReason.CANCELLED)
    until(executor, lambda: attempt.returned)
    # Killed during its start it is CANCELLED; once it sees the flag it succeeds. Both are right, nothing else is.
    assert kind_of(attempt) in {OutcomeKind.SUCCEEDED, OutcomeKind.CANCELLED}


def test_a_cancelled_process_that_goes_on_is_killed(executor: JobExecutor) -> None:
    attempt = attempt_of("p_wait")
    executor.invoke([attempt])
    until(executor, lambda: attempt.running)
    executor.stop(attempt, StopReason.CANCELLED)
    until(executor, lambda: attempt.returned)
    assert kind_of(attempt) is OutcomeKind.CANCELLED
    assert executor._processes.process_ids == ()


@pytest.mark.parametrize(("name", "how"), [("p_kill_self", "signal 9"), ("p_exit_hard", "exit code 7")])
def test_a_dead_child_fails_its_own_job_only_and_the_pool_recovers(executor: JobExecutor, name: str, how: str) -> None:
    bystander = attempt_of("p_wait", job_id="bystander")
    executor.invoke([bystander])
    [dead] = run(executor, attempt_of(name))
    assert kind_of(dead) is OutcomeKind.FAILED
    assert error_of(dead)[0] == "mainspring.jobs.errors.ProcessDiedError"
    assert how in error_of(dead)[1]
    assert dead.outcome is not None
    assert dead.outcome.retryable, "it counts as a failed attempt"
    assert bystander.outcome is None
    assert [kind_of(a) for a in run(executor, attempt_of("p_echo"), attempt_of("p_echo"))] == [
        OutcomeKind.SUCCEEDED
    ] * 2


def test_what_a_killed_process_wrote_before_is_kept(executor: JobExecutor) -> None:
    [dead] = run(executor, attempt_of("p_kill_self"))
    output = captured(dead.context)
    assert output is not None
    assert output.text() == "about to die\n"


def test_process_children_are_reused(executor: JobExecutor) -> None:
    pids = set()
    for _ in range(3):
        [attempt] = run(executor, attempt_of("p_context"))
        assert attempt.outcome is not None
        pids.add(json.loads(attempt.outcome.result or b"{}")["pid"])
    assert len(pids) == 1


def test_hooks_run_in_the_worker_and_in_its_children(executor: JobExecutor) -> None:
    assert worker_jobs.app.state.resource == f"open in {os.getpid()}"
    assert worker_jobs.app.state.async_resource
    [attempt] = run(executor, attempt_of("p_hooked"))
    [pid] = executor._processes.process_ids
    assert attempt.outcome is not None
    assert json.loads(attempt.outcome.result or b"") == f"open in {pid}"


@pytest.mark.parametrize("model", MODELS)
def test_the_output_of_concurrent_jobs_is_kept_apart(model: str) -> None:
    jobs = [attempt_of(f"{model}_print", word=word, times=20, job_id=word) for word in ("red", "green", "blue")]
    with an_executor() as executor:  # not the fixture: pytest changes the streams between a fixture and its test
        run(executor, *jobs)
    for attempt in jobs:
        output = captured(attempt.context)
        assert output is not None
        text, word = output.text(), attempt.job_id
        assert text.count(f"{word}\n") >= 20
        assert f"{word} to stderr\n" in text
        assert f"logged {word}" in text
        assert not any(other in text for other in {"red", "green", "blue"} - {word})


@pytest.mark.parametrize("model", MODELS)
def test_the_middle_of_a_huge_output_is_cut(model: str) -> None:
    with an_executor() as executor:
        [attempt] = run(executor, attempt_of(f"{model}_print", word="0123456789", times=20_000))
    output = captured(attempt.context)
    assert output is not None
    text = output.text()
    assert len(text.encode()) <= 64 * 1024
    assert output.dropped_bytes > 100_000
    assert text.startswith("0123456789\n")
    assert "logged 0123456789" in text[-200:]


def test_output_outside_of_jobs_goes_where_it_always_went(capsys: pytest.CaptureFixture[str]) -> None:
    with an_executor() as executor:
        run(executor, attempt_of("t_print", word="inside"))
        print("outside")
    assert capsys.readouterr().out == "outside\n"


def test_more_attempts_than_slots_are_refused_and_the_peak_is_known(executor: JobExecutor) -> None:
    attempts = [attempt_of("a_wait", job_id=str(n)) for n in range(4)]
    executor.invoke(attempts)
    with pytest.raises(RuntimeError, match="4 of 4 slots"):
        executor.invoke([attempt_of("a_echo")])
    for attempt in attempts:
        executor.stop(attempt, StopReason.DRAINING)
    until(executor, lambda: executor.running == 0)
    assert {kind_of(attempt) for attempt in attempts} == {OutcomeKind.RELEASED}
    assert executor.peak_running == 4


def test_time_outs_of_ended_jobs_do_not_pile_up(executor: JobExecutor) -> None:
    for _ in range(600):
        run(executor, *(attempt_of("a_echo", timeout_ms=3_600_000) for _ in range(4)))
    assert len(executor._expiries) < 1_200


def test_children_die_with_the_process_that_started_them(tmp_path: Any) -> None:
    script = (
        "import sys, threading\n"
        "from tests.workers.test_executors import attempt_of\n"
        "from mainspring.workers.executors import JobExecutor\n"
        "from mainspring.workers.registry import Registry\n"
        "from tests.support import worker_jobs\n"
        "e = JobExecutor(Registry(worker_jobs.app), slots=1); e.start()\n"
        "e.invoke([attempt_of('p_hold_gil', seconds=60.0)])\n"
        "while not e._processes.process_ids: e.collect(0.01)\n"
        "print(e._processes.process_ids[0], file=sys.__stdout__, flush=True)\n"
        "threading.Event().wait()\n"
    )
    import subprocess

    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    gone, alive = psutil.wait_procs([child], timeout=10)
    assert (len(gone), alive) == (1, [])


def test_shutdown_leaves_no_thread_and_no_process_behind() -> None:
    before = {thread.name for thread in threading.enumerate()}
    executor = JobExecutor(Registry(worker_jobs.app), slots=2)
    executor.start()
    run(executor, attempt_of("p_echo"), attempt_of("t_echo"))
    pids = executor._processes.process_ids
    executor.shutdown(5.0)
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert {thread.name for thread in threading.enumerate()} == before
    assert worker_jobs.app.state.resource is None
    gc.collect()  # an unclosed socket or loop would warn here, and warnings are errors
