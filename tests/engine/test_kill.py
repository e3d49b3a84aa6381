"""`kill -9` of a scheduler at each step of its loop: another one goes on, and nothing is lost or done twice."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from structlog.testing import capture_logs

from mainspring.processors.core.index.entries import FINISHED_PREFIX
from mainspring.processors.engine import takeover
from mainspring.processors.engine.tables.rocks import RocksTables
from mainspring.schemas import JobCompleted, JobStarted, JobSubmitted
from tests.engine.fake_worker import FakeWorker
from tests.engine.support import Installation, installation, txns_are_whole

pytestmark = pytest.mark.broker

JOBS = [f"job-{number}" for number in range(40)]
ROOT = Path(__file__).parents[2]
MAX_TAKEOVER_S = 5.0


@contextmanager
def dying_process(here: Installation, point: str, transactions: int = 0, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A scheduler that will kill itself at the point; it is running, and no more."""
    command = [sys.executable, str(Path(__file__).with_name("dying.py"))]
    arguments = [here.connection.bootstrap, here.topology.prefix, point, str(transactions), *more]
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT)
    assert process.stdout is not None
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def dying_scheduler(
    here: Installation, point: str, transactions: int = 0, *more: str
) -> Iterator[subprocess.Popen[str]]:
    """A scheduler that has all partitions and will kill itself at the point."""
    with dying_process(here, point, transactions, *more) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line == "ready\n":
                break
        else:
            raise AssertionError("the scheduler did not become ready")
        yield process


@pytest.mark.parametrize(
    ("point", "what_died"),
    [
        ("before-begin", "decided, nothing written"),
        ("after-send_offsets", "offsets sent, nothing written"),
        ("after-flush", "written, not committed"),
        ("after-commit", "committed, not applied"),
    ],
)
def test_a_killed_scheduler_is_succeeded_within_seconds_and_no_job_is_lost_or_started_twice(
    kafka: str, prefix: str, point: str, what_died: str
) -> None:
    with installation(kafka, prefix) as here, dying_scheduler(here, point, 3) as process:
        worker = FakeWorker(here.connection, here.topology)
        here.helpers.append(worker)
        for job in JOBS:
            here.submit([job])
            if process.poll() is not None:
                break
            worker.step(0.03)
        here.submit(JOBS[JOBS.index(job) + 1 :])
        here.until(lambda: process.poll() is not None, f"death: {what_died}")
        assert process.returncode == -signal.SIGKILL

        died_at = time.monotonic()
        here.engine("heir")
        here.ready()
        took_s = time.monotonic() - died_at
        here.until(lambda: len(here.events(JobCompleted)) == len(JOBS))

        events = here.all_events()
        assert txns_are_whole(events)
        for job in JOBS:
            mine = [event for event in events if event.job_id == job]
            assert [type(event).__name__ for event in mine] == ["JobSubmitted", "JobStarted", "JobCompleted"]
        assert sorted(worker.seen.started) == sorted(JOBS)
        assert took_s < MAX_TAKEOVER_S


def test_rows_that_were_committed_behind_a_dead_owners_open_transaction_are_restored(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        first = here.engine("first")
        here.ready()
        # What a dead owner leaves: an open transaction in the changelog, in front of all rows that follow.
        timeout_ms = 4_000
        dead = Producer(
            here.connection.producer_config(
                **{"transactional.id": f"{prefix}dead", "transaction.timeout.ms": timeout_ms}
            )
        )
        dead.init_transactions(10)
        dead.begin_transaction()
        dead.produce(here.topology.scheduler_changelog.name, b"never committed", b"Jghost", 0)
        dead.flush()
        here.submit(JOBS)
        here.until(lambda: len(here.events(JobSubmitted)) == len(JOBS))
        here.drop(first)

        heir = here.engine("heir")
        here.until(lambda: heir.status().restoring == (0,))
        assert heir.status().ready == ()
        here.ready()
        program = heir.programs()[0]

        assert program.counter == len(JOBS)
        here.helpers.append(FakeWorker(here.connection, here.topology))
        here.until(lambda: len(here.events(JobCompleted)) == len(JOBS))
        assert len(here.all_events()) == 3 * len(JOBS)


def test_a_transaction_in_the_changelog_that_never_ends_is_told_with_the_command_that_ends_it(
    kafka: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(takeover, "HANGS_AFTER_MS", 1_000)
    with installation(kafka, prefix, partitions=1) as here:
        first = here.engine("first")
        here.ready()
        here.submit(JOBS)
        here.until(lambda: len(here.events(JobSubmitted)) == len(JOBS))
        here.drop(first)
        # Nobody knows its name, so nobody can end it.
        options = {"transactional.id": f"{prefix}forgotten", "transaction.timeout.ms": 60_000}
        forgotten = Producer(here.connection.producer_config(**options))
        forgotten.init_transactions(10)
        forgotten.begin_transaction()
        forgotten.produce(here.topology.scheduler_changelog.name, b"never committed", b"Jghost", 0)
        forgotten.flush()
        topic = here.topology.scheduler_changelog.name

        with capture_logs() as lines:
            here.engine("heir")
            here.until(lambda: [line for line in lines if line["log_level"] == "error"], "an error in the log")

        (line,) = (line for line in lines if line["log_level"] == "error")
        assert f"abort --topic {topic} --partition 0 --start-offset {line['offset']}`" in line["hint"]
        forgotten.abort_transaction(10)
        here.ready()


def test_a_dead_owner_is_shut_out_by_the_name_it_left_long_before_its_transaction_times_out(
    kafka: str, prefix: str
) -> None:
    with installation(kafka, prefix) as here, dying_scheduler(here, "after-send_offsets", 0) as process:
        here.submit(JOBS)
        here.until(lambda: process.poll() is not None)
        died_at = time.monotonic()

        here.engine("heir")
        here.ready()

        # The dead one's transaction has a time-out of a minute.
        assert time.monotonic() - died_at < MAX_TAKEOVER_S
        here.until(lambda: len(here.events(JobSubmitted)) == len(JOBS))


def test_after_a_kill_the_local_tables_open_again_and_only_the_tail_is_read(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    with installation(kafka, prefix) as here:
        with dying_scheduler(here, "never", 0, str(tmp_path)) as process:
            here.submit(JOBS)
            here.until(lambda: len(here.events(JobSubmitted)) == len(JOBS))
            here.until(lambda: sum(_stored(here, tmp_path, copy=number) for number in range(2)) == len(JOBS))
            here.submit(["tail"])
            here.until(lambda: len(here.events(JobSubmitted)) == len(JOBS) + 1)
            process.send_signal(signal.SIGKILL)
            process.wait()

        reopened_at = time.monotonic()
        heir = here.engine("dying", state_dir=tmp_path)
        opened_s = time.monotonic() - reopened_at
        tables = {number: heir._tables.open(number, here.table_origin()) for number in range(2)}
        before_restore = sum(1 for table in tables.values() for _ in table.scan(b"J"))
        here.ready()

        assert opened_s < 2.0
        assert len(JOBS) <= before_restore <= len(JOBS) + 1
        assert sum(program.counter for program in heir.programs().values()) == len(JOBS) + 1
        here.helpers.append(FakeWorker(here.connection, here.topology))
        here.until(lambda: len(here.events(JobCompleted)) == len(JOBS) + 1)
        assert len(here.events(JobStarted)) == len(JOBS) + 1


def test_tables_restored_from_an_empty_disk_equal_those_that_were_lost(kafka: str, prefix: str, tmp_path: Path) -> None:
    with installation(kafka, prefix) as here:
        first = here.engine("a", state_dir=tmp_path / "one")
        here.helpers.append(FakeWorker(here.connection, here.topology))
        here.submit(JOBS)
        here.until(lambda: len(here.events(JobCompleted)) == len(JOBS))
        here.drop(first)
        second = here.engine("a", state_dir=tmp_path / "two")
        here.ready()
        here.drop(second)

        def everything(where: Path) -> list[list[tuple[bytes, bytes]]]:
            (path,) = (each for each in where.glob("*/a") if each.is_dir())
            tables = RocksTables(path)
            rows = [list(tables.open(number, here.table_origin()).scan(b"")) for number in range(2)]
            tables.close()
            return rows

        before, after = everything(tmp_path / "one"), everything(tmp_path / "two")
        assert before == after
        keys = [key for rows in before for key, _ in rows]
        assert sum(not key.startswith(b"#") for key in keys) == 2 * len(JOBS) + 2
        assert sum(key.startswith(FINISHED_PREFIX) for key in keys) == len(JOBS), "the index is restored with the rows"


def _stored(here: Installation, state_dir: Path, copy: int) -> int:
    """Jobs of a partition in the tables of a live process: in a copy, since it has them open."""
    (path,) = (each for each in state_dir.glob("*/dying") if each.is_dir())
    snapshot = state_dir / f"snapshot-{copy}-{time.monotonic_ns()}"
    try:
        shutil.copytree(path, snapshot, ignore=shutil.ignore_patterns("LOCK"))
    except shutil.Error:
        # A file went away while it was copied.
        return 0
    tables = RocksTables(snapshot / ".", hold_rows=1)
    count = sum(1 for _ in tables.open(copy, here.table_origin()).scan(b"J"))
    tables.close()
    return count
