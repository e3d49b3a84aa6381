"""The life of a job that simply succeeds."""

from mainspring.schemas.common import ConfirmedStart, JobStatus
from mainspring.schemas.events import JobCompleted, JobStarted, JobSubmitted
from mainspring.schemas.signals import StartConfirmed
from tests.core.spec import Partition


def test_a_job_is_submitted_offered_claimed_confirmed_and_completed() -> None:
    partition = Partition()

    submitted = partition.submit().event(JobSubmitted)
    assert (submitted.revision, submitted.seq, submitted.due_at_ms) == (1, 0, partition.now.wall_ms)

    (offer,) = partition.dispatch().last.offers
    assert (offer.record.job_id, offer.record.attempt, offer.record.offer, offer.avoid) == ("job", 1, 1, None)

    started = partition.claim().event(JobStarted)
    assert (started.attempt, started.worker_id, started.revision) == (1, "w1", 2)
    assert partition.signal(StartConfirmed).starts == (ConfirmedStart(job_id="job", attempt=1),)

    completed = partition.succeed().event(JobCompleted)
    assert (completed.result, completed.revision) == (b"42", 3)
    assert partition.status() is JobStatus.COMPLETED
