"""What a crowd of commands does to the leases of workers that are well: nothing, however far reading runs ahead."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mainspring.processors.core import Rules
from mainspring.schemas import AttemptHeartbeat, JobRetryScheduled, JobStarted, JobSubmitted
from mainspring.schemas.common import HeldAttempt
from tests.engine.fake_worker import FakeWorker
from tests.engine.support import installation

pytestmark = pytest.mark.broker

CROWD = 30_000
FAR_MS = 4_000_000_000_000
"""When the crowd is due: in 2096."""
LEASE_MS = 1_500
BEAT_S = 0.05


@contextmanager
def heartbeats(worker: FakeWorker, job_id: str) -> Iterator[None]:
    """A worker that is well, in a thread of its own: it says so many times a lease."""
    over = threading.Event()
    held = (HeldAttempt(job_id=job_id, attempt=1),)
    beat = AttemptHeartbeat(worker_id=worker.worker_id, incarnation=worker.incarnation, reported_at_ms=0, attempts=held)

    def beating() -> None:
        while not over.wait(BEAT_S):
            worker.send(beat, 0)

    thread = threading.Thread(target=beating)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_no_lease_runs_out_while_heartbeats_wait_behind_a_crowd_of_commands(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        # Given a job that runs, and a scheduler that has read ahead as far as it does while a crowd of commands came in
        here.engine("a", rules=Rules(partitions=1, lease_ms=LEASE_MS))
        worker = FakeWorker(here.connection, here.topology, report=False)
        here.helpers.append(worker)
        here.submit(["running"])
        here.until(lambda: worker.seen.started)
        with heartbeats(worker, "running"):
            here.submit((f"crowd-{number}" for number in range(CROWD)), run_at_ms=FAR_MS)

            # When it takes the scheduler longer than a lease to come to the heartbeats behind all of them
            here.until(lambda: len(here.events(JobSubmitted)) > CROWD)

        # Then it has not taken that for silence
        assert here.events(JobRetryScheduled) == []
        assert len(here.events(JobStarted)) == 1
