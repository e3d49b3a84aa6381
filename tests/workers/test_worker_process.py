"""A worker as a process: signals, stalls and sudden death."""

import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from mainspring.schemas.attempts import AttemptClaimed, AttemptHeartbeat, AttemptReleased, AttemptSucceeded
from tests.support.fake_scheduler import PATIENCE_S, FakeScheduler, fake_scheduler
from tests.support.waiting import eventually

pytestmark = pytest.mark.broker


@pytest.fixture
def scheduler(kafka: str, prefix: str) -> Iterator[FakeScheduler]:
    with fake_scheduler(kafka, prefix) as fake:
        yield fake


@contextmanager
def a_process(scheduler: FakeScheduler, **changes: Any) -> Iterator[subprocess.Popen[str]]:
    own = {"slots": 4, "lease_ms": 3_000, "heartbeat_ms": 500, "drain_ms": 20_000, "stall_ms": 0, **changes}
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.support.worker_process"),
            *(scheduler.connection.bootstrap, scheduler.topology.prefix, json.dumps(own)),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline().strip(), "the worker did not start"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_job_that_finishes_during_a_drain_is_reported_and_not_run_again(scheduler: FakeScheduler) -> None:
    with a_process(scheduler) as process:
        scheduler.offer("a_sleep", job_id="j", seconds=2.0)
        scheduler.wait(AttemptHeartbeat, "j")
        process.send_signal(signal.SIGTERM)
        assert scheduler.wait(AttemptSucceeded, "j").result == b'"slept"'
        assert process.wait(PATIENCE_S) == 0
    with a_process(scheduler):
        scheduler.offer("a_echo", job_id="next")
        scheduler.wait(AttemptSucceeded, "next")
        assert len(scheduler.all(AttemptClaimed, "j")) == 1


def test_a_second_signal_hurries_the_drain(scheduler: FakeScheduler) -> None:
    with a_process(scheduler, drain_ms=600_000) as process:
        scheduler.offer("a_wait", job_id="j")
        scheduler.wait(AttemptHeartbeat, "j")
        process.send_signal(signal.SIGTERM)
        scheduler.wait(AttemptHeartbeat, "j", count=len(scheduler.all(AttemptHeartbeat, "j")) + 2)
        assert process.poll() is None, "the first signal waits for what runs"
        process.send_signal(signal.SIGTERM)
        assert scheduler.wait(AttemptReleased, "j").reason == "DRAINING"
        assert process.wait(PATIENCE_S) == 0


def test_a_thread_that_outlasts_the_drain_ends_with_the_process_and_is_not_handed_back_before(
    scheduler: FakeScheduler,
) -> None:
    with a_process(scheduler, drain_ms=200) as process:
        scheduler.offer("t_wait", job_id="j")
        scheduler.wait(AttemptHeartbeat, "j")
        scheduler.offer("a_wait", job_id="last")
        scheduler.wait(AttemptHeartbeat, "last")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0

        # What is reported comes in order, so nothing of the thread is still to come behind this.
        assert scheduler.wait(AttemptReleased, "last").reason == "DRAINING"
        assert scheduler.all(AttemptReleased, "j") == []
        assert scheduler.all(AttemptSucceeded, "j") == []


def test_a_handler_that_holds_the_interpreter_costs_no_lease(scheduler: FakeScheduler) -> None:
    with a_process(scheduler, lease_ms=2_000, heartbeat_ms=400, stall_ms=60_000):
        scheduler.offer("a_wait", job_id="bystander")
        scheduler.offer("p_wait", job_id="child")
        for job_id in ("bystander", "child"):
            scheduler.wait(AttemptHeartbeat, job_id)
        scheduler.offer("t_hold_gil", job_id="hog", seconds=6.0)
        claimed = scheduler.wait(AttemptClaimed, "hog")
        done = scheduler.wait(AttemptSucceeded, "hog")
        assert done.reported_at_ms - done.started_at_ms >= 6_000
        for job_id in ("bystander", "child"):
            at = [beat.reported_at_ms for beat in scheduler.all(AttemptHeartbeat, job_id)]
            during = [ms for ms in at if ms > claimed.reported_at_ms]
            gaps = [later - earlier for earlier, later in itertools.pairwise(during)]
            assert max(gaps) < 2_000
        count = len(scheduler.all(AttemptHeartbeat, "bystander"))
        scheduler.wait(AttemptHeartbeat, "bystander", count=count + 2)
        assert scheduler.all(AttemptReleased) == [], "the worker itself must know that its leases were renewed"


def test_without_help_such_a_handler_silences_its_worker(scheduler: FakeScheduler) -> None:
    """Shows that the test above can fail."""
    with a_process(scheduler, lease_ms=2_000, heartbeat_ms=400, stall_ms=0):
        scheduler.offer("a_wait", job_id="bystander")
        scheduler.wait(AttemptHeartbeat, "bystander")
        scheduler.offer("t_hold_gil", job_id="hog", seconds=4.0)
        scheduler.wait(AttemptSucceeded, "hog")
        assert scheduler.wait(AttemptReleased, "bystander").reason == "LEASE_AT_RISK"


def test_a_stopped_worker_renews_nothing(scheduler: FakeScheduler) -> None:
    with a_process(scheduler, lease_ms=2_000, heartbeat_ms=400, stall_ms=60_000) as process:
        scheduler.offer("a_wait", job_id="j")
        scheduler.wait(AttemptHeartbeat, "j")
        process.send_signal(signal.SIGSTOP)
        stopped_ms = time.time() * 1000
        eventually(lambda: time.time() * 1000 > stopped_ms + 4_000)
        process.send_signal(signal.SIGCONT)
        assert scheduler.wait(AttemptReleased, "j").reason == "LEASE_AT_RISK"
        at = [beat.reported_at_ms for beat in scheduler.all(AttemptHeartbeat, "j")]
        assert [ms for ms in at if stopped_ms + 500 < ms < stopped_ms + 3_900] == []


def test_a_killed_worker_takes_its_children_along(scheduler: FakeScheduler) -> None:
    with a_process(scheduler, stall_ms=60_000) as process:
        scheduler.offer("p_hold_gil", job_id="j", seconds=60.0)
        scheduler.wait(AttemptHeartbeat, "j")
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) == 2, "the job's process and the side process"
        process.kill()
        _, alive = psutil.wait_procs(children, timeout=10)
        assert alive == []
