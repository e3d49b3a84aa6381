"""Each way of running a job: what comes back of it."""

import json
from typing import Any

import pytest

from mainspring.schemas.bounds import RETRY_DELAY_MAX_MS
from mainspring.workers.attempt import OutcomeKind, StopReason
from mainspring.workers.executors import JobExecutor
from tests.workers.executing import MODELS, attempt_of, error_of, kind_of, run, until


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


def test_a_handler_that_stops_the_event_loop_does_not_stop_the_other_jobs(executor: JobExecutor) -> None:
    [stopper] = run(executor, attempt_of("a_stop_loop"))
    [after] = run(executor, attempt_of("a_echo", value=1))

    assert (kind_of(stopper), kind_of(after)) == (OutcomeKind.SUCCEEDED, OutcomeKind.SUCCEEDED)


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
