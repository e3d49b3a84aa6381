"""The processes of jobs: killed, dead, reused, and gone with the worker."""

import gc
import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

import psutil
import pytest

from mainspring.workers.attempt import OutcomeKind, StopReason
from mainspring.workers.executors import JobExecutor
from mainspring.workers.registry import Registry
from tests.support import worker_jobs
from tests.workers.executing import attempt_of, error_of, kind_of, run, until


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


def test_children_die_with_the_process_that_started_them(tmp_path: Any) -> None:
    script = (
        "import sys, threading\n"
        "from tests.workers.executing import attempt_of\n"
        "from mainspring.workers.executors import JobExecutor\n"
        "from mainspring.workers.registry import Registry\n"
        "from tests.support import worker_jobs\n"
        "e = JobExecutor(Registry(worker_jobs.app), slots=1); e.start()\n"
        "e.invoke([attempt_of('p_hold_gil', seconds=60.0)])\n"
        "while not e._processes.process_ids: e.collect(0.01)\n"
        "print(e._processes.process_ids[0], file=sys.__stdout__, flush=True)\n"
        "threading.Event().wait()\n"
    )
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
