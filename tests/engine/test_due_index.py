"""What waits on disk, on a real broker: small windows, restarts in the midst of it, and a kill before the disk knew."""

import signal
import time
from pathlib import Path
from typing import Any

import pytest

from mainspring.processors.core.index.entries import COUNTS_KEY, IN_FLIGHT_KEY, decode_counts, decode_ids
from mainspring.processors.core.index.lanes import LANE_PREFIX
from mainspring.processors.engine.tables.rocks import RocksTables
from mainspring.schemas import CancelJob, JobCancelled, JobCompleted, JobStarted, JobSubmitted, Priority
from tests.engine.fake_worker import FakeWorker
from tests.engine.support import Installation, installation
from tests.engine.test_kill import dying_scheduler

pytestmark = pytest.mark.broker

JOBS = [f"job-{number:03}" for number in range(120)]
CANCELLED = JOBS[::10]
PARTITIONS = 2


def index(here: Installation, state_dir: Path, slot: str) -> list[dict[bytes, Any]]:
    """The index rows of each partition, with the rows they follow from."""
    (path,) = (each for each in state_dir.glob(f"*/{slot}") if each.is_dir())
    tables = RocksTables(path)
    found: list[dict[bytes, Any]] = []
    for number in range(PARTITIONS):
        table = tables.open(number, here.table_origin())
        rows: dict[bytes, Any] = {key: row for key, row in table.scan(b"") if not key.startswith(LANE_PREFIX)}
        rows[COUNTS_KEY] = decode_counts(rows.get(COUNTS_KEY))
        rows[IN_FLIGHT_KEY] = set(decode_ids(rows.get(IN_FLIGHT_KEY)))
        found.append(rows)
    tables.close()
    return found


def restored(here: Installation, state_dir: Path, slot: str) -> list[dict[bytes, Any]]:
    """The same from the changelog alone, on an empty disk."""
    engine = here.engine(slot, state_dir=state_dir)
    here.ready()
    here.drop(engine)
    return index(here, state_dir, slot)


def test_a_backlog_that_does_not_fit_into_memory_runs_once_each_through_a_restart(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    with installation(kafka, prefix, partitions=PARTITIONS) as here:
        # Given far more jobs for one instant than the indexes may keep in memory, some of them cancelled,
        small: dict[str, Any] = {"state_dir": tmp_path / "one", "window_jobs": 1}
        first = here.engine("a", **small)
        due_ms = time.time_ns() // 1_000_000 + 3_000
        for number, job in enumerate(JOBS):
            here.submit([job], run_at_ms=due_ms, priority=Priority(number % 4))
        here.until(lambda: len(here.events(JobSubmitted)) == len(JOBS))
        for job in CANCELLED:
            cancel = CancelJob(command_id=f"cancel-{job}", actor="test", requested_at_ms=0, job_id=job)
            here.produce(here.topology.commands, job.encode(), cancel)
        here.flush()
        here.until(lambda: len(here.events(JobCancelled)) == len(CANCELLED))

        # when they fall due, and the scheduler starts again in the midst of them,
        worker = FakeWorker(here.connection, here.topology)
        here.helpers.append(worker)
        here.until(lambda: len(here.events(JobCompleted)) >= 20)
        here.drop(first)
        second = here.engine("a", **small)
        here.until(lambda: len(here.events(JobCompleted)) == len(JOBS) - len(CANCELLED))

        # then each of the others has run once, not before its time, and the disk says what the changelog says.
        assert sorted(worker.seen.started) == sorted(set(JOBS) - set(CANCELLED))
        assert all(event.decided_at_ms >= due_ms for event in here.events(JobStarted))
        here.drop(second)
        assert index(here, tmp_path / "one", "a") == restored(here, tmp_path / "two", "a")


def test_a_kill_after_the_commit_and_before_the_disk_knew_of_it_costs_nothing(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    with installation(kafka, prefix, partitions=PARTITIONS) as here:
        # Given a scheduler that dies when its transaction is committed, and its local table has not been told,
        due_ms = time.time_ns() // 1_000_000 + 4_000
        with dying_scheduler(here, "after-commit", 4, str(tmp_path / "one")) as process:
            for job in JOBS:
                here.submit([job], run_at_ms=due_ms)
                if process.poll() is not None:
                    break
            here.until(lambda: process.poll() is not None)
            assert process.returncode == -signal.SIGKILL

        # when the next one begins with that table,
        heir = here.engine("dying", state_dir=tmp_path / "one")
        here.ready()
        here.submit(JOBS[JOBS.index(job) + 1 :], run_at_ms=due_ms)
        worker = FakeWorker(here.connection, here.topology)
        here.helpers.append(worker)
        here.until(lambda: len(here.events(JobCompleted)) == len(JOBS))

        # then no job is missing, none ran twice, and the disk says what the changelog says.
        assert sorted(worker.seen.started) == JOBS
        here.drop(heir)
        assert index(here, tmp_path / "one", "dying") == restored(here, tmp_path / "two", "dying")
