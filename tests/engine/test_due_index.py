"""What waits on disk, on a real broker: small windows, restarts in the midst of it, and a kill before the disk knew."""

import signal
import time
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from mainspring.processors.core import LAYOUT, Rules
from mainspring.processors.core.index.entries import (
    COUNTS_KEY,
    IN_FLIGHT_KEY,
    WAITING_PREFIX,
    decode_counts,
    decode_ids,
    waiting_range,
)
from mainspring.processors.core.index.lanes import LANE_PREFIX
from mainspring.processors.engine.tables.rocks import RocksTables
from mainspring.schemas import CancelJob, JobCancelled, JobCompleted, JobStarted, JobSubmitted, Priority
from tests.engine.fake_worker import FakeWorker
from tests.engine.support import CODEC, Installation, SettableClock, installation
from tests.engine.test_kill import dying_scheduler

pytestmark = pytest.mark.broker

JOBS = [f"job-{number:03}" for number in range(120)]
CANCELLED = JOBS[::10]
PARTITIONS = 2
HOUR_MS = 3_600_000
HERD = [f"herd-{number:03}" for number in range(600)]
URGENT = [f"urgent-{number:02}" for number in range(60)]
IN_FLIGHT = 16
"""Offers and runs in flight in a partition at most, where the order of starts is looked at."""


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


def starts_by_partition(here: Installation) -> list[list[str]]:
    """The jobs of each partition in the order of their starts."""
    starts: list[list[str]] = [[] for _ in range(PARTITIONS)]
    for message in here.messages(here.topology.events):
        event = CODEC.decode(message.value())
        if isinstance(event, JobStarted):
            starts[message.partition()].append(event.job_id)
    return starts


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


def test_urgent_jobs_submitted_last_start_before_the_herd_of_their_instant_also_when_their_owner_dies_amid_it(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    with installation(kafka, prefix, partitions=PARTITIONS) as here:
        # Given more jobs of one instant than are moved at once or fit into memory, the urgent ones submitted last,
        due_ms = time.time_ns() // 1_000_000 + HOUR_MS
        one = str(tmp_path / "one")
        with dying_scheduler(here, "herd", len(HERD) + len(URGENT), one) as process:
            here.submit(HERD, run_at_ms=due_ms, priority=Priority.MEDIUM)
            here.submit(URGENT, run_at_ms=due_ms, priority=Priority.CRITICAL)

            # when their time comes, and their owner is killed with a part of them moved and the first on offer,
            here.until(lambda: process.poll() is not None, "death amid the herd")
            assert process.returncode == -signal.SIGKILL
        offered = {each.job_id for lane in Priority for each in here.records(here.topology.work("default", lane))}
        assert offered
        assert offered <= set(URGENT)

        # and another goes on from its disk,
        rules = Rules(partitions=PARTITIONS, window_start=IN_FLIGHT, window_max=IN_FLIGHT, probe_ms=HOUR_MS)
        small: dict[str, Any] = {"state_dir": tmp_path / "one", "window_jobs": 1, "rules": rules}
        heir = here.engine("dying", clock=SettableClock(HOUR_MS), **small)
        worker = FakeWorker(here.connection, here.topology)
        here.helpers.append(worker)
        here.until(lambda: len(here.events(JobCompleted)) == len(HERD) + len(URGENT), "every job's end")

        # then in every partition another starts only when no urgent one is left to be offered,
        starts = starts_by_partition(here)
        for started in starts:
            urgent = sum(job in URGENT for job in started)
            assert urgent > IN_FLIGHT
            assert len(list(takewhile(URGENT.__contains__, started))) > urgent - IN_FLIGHT
        # nothing is lost or runs twice, and the disk says what the changelog says.
        assert sorted(job for started in starts for job in started) == sorted(HERD + URGENT)
        assert sorted(worker.seen.started) == sorted(HERD + URGENT)
        here.drop(heir)
        assert index(here, tmp_path / "one", "dying") == restored(here, tmp_path / "two", "dying")


def as_in_layout_3(tables: RocksTables, number: int, topic_id: str) -> list[bytes]:
    """Makes a table what the former version would have left: no priority in the keys of what waits. Returns these."""
    table = tables.open(number, f"{topic_id}/{LAYOUT}")
    offset, as_of_ms = table.offset, table.as_of_ms
    rows = list(table.scan(b""))
    former = [(WAITING_PREFIX + key[len(waiting_range(0)) :], row) for key, row in rows if key[:2] == WAITING_PREFIX]
    kept = [(key, row) for key, row in rows if key[:2] != WAITING_PREFIX]
    # Another origin: all that is there is wiped.
    table = tables.open(number, f"{topic_id}/3")
    assert table.offset == 0
    table.write([*kept, *former], offset, as_of_ms)
    return [key for key, _ in former]


def test_a_table_of_the_former_layout_is_made_again_and_every_job_runs_once_in_the_right_order(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    with installation(kafka, prefix, partitions=PARTITIONS) as here:
        # Given jobs of one instant that wait, the urgent ones submitted last,
        small: dict[str, Any] = {"state_dir": tmp_path / "one", "window_jobs": 1}
        first = here.engine("a", **small)
        due_ms = time.time_ns() // 1_000_000 + HOUR_MS
        herd, urgent = HERD[:80], URGENT[:40]
        here.submit(herd, run_at_ms=due_ms, priority=Priority.MEDIUM)
        here.submit(urgent, run_at_ms=due_ms, priority=Priority.CRITICAL)
        here.until(lambda: len(here.events(JobSubmitted)) == len(herd) + len(urgent))
        here.drop(first)

        # in tables as the former version left them,
        (path,) = (each for each in (tmp_path / "one").glob("*/a") if each.is_dir())
        tables = RocksTables(path)
        topic_id = here.table_origin().removesuffix(f"/{LAYOUT}")
        former = {key for number in range(PARTITIONS) for key in as_in_layout_3(tables, number, topic_id)}
        tables.close()
        assert len(former) == len(herd) + len(urgent)

        # when this version begins with them, and the instant comes,
        rules = Rules(partitions=PARTITIONS, probe_ms=HOUR_MS, window_max=8)
        second = here.engine("a", clock=SettableClock(HOUR_MS), rules=rules, **small)
        worker = FakeWorker(here.connection, here.topology)
        here.helpers.append(worker)
        here.until(lambda: len(here.events(JobCompleted)) == len(herd) + len(urgent), "every job's end")

        # then each runs once, the urgent ones first, and the disk says what the changelog says, of the former nothing.
        assert sorted(worker.seen.started) == sorted(herd + urgent)
        for started in starts_by_partition(here):
            count = sum(job in urgent for job in started)
            assert count > 8
            assert len(list(takewhile(urgent.__contains__, started))) > count - 8
        here.drop(second)
        left = index(here, tmp_path / "one", "a")
        assert left == restored(here, tmp_path / "two", "a")
        assert not former & {key for rows in left for key in rows}
