"""A job's whole life on a real broker."""

import time
from dataclasses import replace

import pytest

from mainspring.schemas import (
    AttemptHeartbeat,
    CommandRejected,
    JobCompleted,
    JobState,
    JobStatus,
    JobSubmitted,
    PositionRow,
)
from tests.engine.fake_worker import FakeWorker
from tests.engine.support import CODEC, installation, submit, txns_are_whole

pytestmark = pytest.mark.broker


def test_a_submitted_job_is_offered_confirmed_and_completed(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix) as here:
        here.engine()
        worker = FakeWorker(here.connection, here.topology)
        here.helpers.append(worker)
        jobs = [f"job-{number}" for number in range(20)]

        here.submit(jobs)
        here.until(lambda: len(here.events(JobCompleted)) == len(jobs))

        events = here.all_events()
        for job in jobs:
            life = [type(event).__name__ for event in events if event.job_id == job]
            assert life == ["JobSubmitted", "JobStarted", "JobCompleted"]
        assert sorted(worker.seen.started) == sorted(jobs)
        assert txns_are_whole(events)


def test_every_transaction_leaves_rows_that_equal_its_events(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix) as here:
        here.engine()
        here.helpers.append(FakeWorker(here.connection, here.topology))

        here.submit(["one", "two", "three"])
        here.until(lambda: len(here.events(JobCompleted)) == 3)

        rows = {key: CODEC.decode(value) for key, value in here.rows().items()}
        states = {row.job_id: row for row in rows.values() if isinstance(row, JobState)}
        assert {job: (row.status, row.revision) for job, row in states.items()} == dict.fromkeys(
            ("one", "two", "three"), (JobStatus.COMPLETED, 3)
        )
        submitted = here.events(JobSubmitted)
        positions = [row for row in rows.values() if isinstance(row, PositionRow)]
        assert sum(row.next_seq for row in positions) == len(submitted)
        assert sum(row.commands_offset for row in positions) == 3


def test_a_job_starts_when_its_delay_is_over_and_not_before(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix) as here:
        here.engine()
        worker = FakeWorker(here.connection, here.topology)
        here.helpers.append(worker)

        here.submit(["later"], delay_ms=700)
        here.until(lambda: worker.seen.started)

        submitted, started, *_ = here.all_events()
        assert 0 <= started.decided_at_ms - submitted.due_at_ms < 2_000


def test_a_second_submit_of_an_id_is_refused_on_the_same_log(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix) as here:
        here.engine()
        here.submit(["twice"])
        here.until(lambda: here.events(JobSubmitted))

        here.produce(here.topology.commands, b"twice", replace(submit("twice"), command_id="another"))
        here.flush()
        here.until(lambda: here.events(CommandRejected))

        assert here.events(CommandRejected)[0].reject_code == "DUPLICATE_JOB"


def test_a_batch_of_large_commands_is_cut_into_several_transactions(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        here.submit([f"large-{number}" for number in range(12)], payload=b"x" * 100_000)
        here.submit(["huge"], payload=b"x" * 500_000)

        here.engine(max_batch_bytes=250_000)
        here.until(lambda: len(here.events(JobSubmitted)) == 13)

        submitted = [event for event in here.all_events() if isinstance(event, JobSubmitted)]
        assert [event.job_id for event in submitted] == [*(f"large-{number}" for number in range(12)), "huge"]
        assert max(event.txn.size for event in submitted) == 2


def test_an_idle_scheduler_makes_no_transactions(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix) as here:
        engine = here.engine()
        here.ready()
        before = engine.status().transactions

        idle_until = time.monotonic() + 1.0
        here.until(lambda: time.monotonic() > idle_until)

        assert engine.status().transactions == before == 0
        assert here.messages(here.topology.scheduler_changelog, committed=False) == []


def test_heartbeats_alone_make_no_transaction_but_are_committed_in_time(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        engine = here.engine(commit_inputs_ms=1_500)
        here.ready()
        heartbeat = AttemptHeartbeat(worker_id="w", incarnation="w-1", reported_at_ms=0, attempts=())

        for _ in range(5):
            here.produce(here.topology.attempts, b"w", heartbeat, 0)
        here.flush()
        seen_at = time.monotonic()
        here.until(lambda: engine.status().transactions == 1)

        assert time.monotonic() - seen_at > 1.0
        (position,) = (CODEC.decode(value) for value in here.rows().values())
        assert isinstance(position, PositionRow)
        assert position.attempts_offset == 5


def test_two_installations_on_one_cluster_do_not_see_each_other(kafka: str, prefix: str) -> None:
    with installation(kafka, f"{prefix}x.") as one, installation(kafka, f"{prefix}y.") as other:
        for here in (one, other):
            here.engine()
            here.helpers.append(FakeWorker(here.connection, here.topology))
        one.submit(["mine", "shared"])
        other.submit(["yours", "shared"])

        one.until(lambda: len(one.events(JobCompleted)) == 2)
        other.until(lambda: len(other.events(JobCompleted)) == 2)

        assert {event.job_id for event in one.all_events()} == {"mine", "shared"}
        assert {event.job_id for event in other.all_events()} == {"yours", "shared"}
