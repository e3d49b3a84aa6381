"""AttemptClaimed: one claim is confirmed, every other is refused."""

import pytest

from mainspring.processors.core import Now
from mainspring.schemas.codes import ClaimRefusal
from mainspring.schemas.common import ConfirmedStart, JobStatus
from mainspring.schemas.events import JobCancelled, JobStarted
from mainspring.schemas.signals import ClaimRefused, StartConfirmed
from tests.core.spec import NOON, Partition


def refusal(partition: Partition) -> str:
    return partition.signal(ClaimRefused).refusal


def test_the_first_claim_wins_and_the_second_is_refused() -> None:
    partition = Partition().submit().dispatch().claim(worker="w1").claim(attempt=1, worker="w2")
    assert refusal(partition) == ClaimRefusal.STALE_ATTEMPT
    assert partition.signal(ClaimRefused).incarnation == "w2#1"
    assert partition.names().count("JobStarted") == 1
    assert partition.state().worker_id == "w1"


def test_a_repeated_claim_of_the_winner_is_confirmed_again_without_an_event() -> None:
    partition = Partition().submit().dispatch().claim().later(500).claim()
    assert partition.last.events == []
    signal = partition.signal(StartConfirmed)
    assert (signal.starts, signal.confirmed_at_ms) == ((ConfirmedStart(job_id="job", attempt=1),), NOON)


def test_a_claim_without_an_offer_is_refused() -> None:
    assert refusal(Partition().submit().claim(attempt=1)) == ClaimRefusal.NOT_OFFERED


@pytest.mark.parametrize("attempt", [0, -1])
def test_a_claim_of_an_attempt_that_cannot_be_is_refused(attempt: int) -> None:
    assert refusal(Partition().submit().claim(attempt=attempt)) == ClaimRefusal.STALE_ATTEMPT


def test_a_claim_of_an_unknown_job_is_refused() -> None:
    assert refusal(Partition().claim(attempt=1)) == ClaimRefusal.UNKNOWN_JOB


def test_a_claim_of_a_finished_job_is_refused() -> None:
    assert refusal(Partition().submit().start().succeed().claim()) == ClaimRefusal.TERMINAL


def test_a_claim_of_an_earlier_attempt_is_refused() -> None:
    partition = Partition().submit(max_retries=1, retry_base_delay_ms=0).start().fail().dispatch().claim(attempt=1)
    assert refusal(partition) == ClaimRefusal.STALE_ATTEMPT
    assert partition.claim(attempt=2).event(JobStarted).attempt == 2


def test_a_claim_of_an_attempt_nobody_offered_is_refused() -> None:
    partition = Partition().submit().dispatch().claim(attempt=2)
    assert refusal(partition) == ClaimRefusal.NOT_OFFERED
    assert partition.status() is JobStatus.PENDING


def test_a_job_does_not_start_before_its_time_when_the_clock_was_set_back_after_the_offer() -> None:
    partition = Partition().submit(delay_ms=1000).later(1000).dispatch()
    partition.now = Now(NOON + 500, partition.now.mono_ms)
    partition.claim()
    assert refusal(partition) == ClaimRefusal.NOT_OFFERED
    assert partition.later(500).start().event(JobStarted).decided_at_ms == NOON + 1000


def test_a_claim_after_the_start_deadline_expires_the_job_instead() -> None:
    partition = Partition().submit(start_deadline_ms=NOON + 10).dispatch().later(10).claim()
    assert partition.event(JobCancelled).cancel_code == "EXPIRED"
    assert refusal(partition) == ClaimRefusal.TERMINAL


def test_the_starts_one_worker_won_are_confirmed_in_one_record_before_anything_stops_them() -> None:
    partition = Partition()
    for job_id in ("a", "b", "c"):
        partition.submit(job_id)
    partition.dispatch()
    core, drain = partition.core, partition.drain
    partition.drain = lambda: partition  # type: ignore[method-assign] # the shell drains once per transaction
    partition.claim("a").claim("b").claim("c", worker="w2").cancel("a")
    partition.drain = drain  # type: ignore[method-assign] # as above
    partition.last = core.drain()
    kinds = [type(signal).__name__ for signal in partition.last.signals]
    assert kinds == ["StartConfirmed", "StartConfirmed", "CancelAttempt"]
    first = partition.last.signals[0]
    assert isinstance(first, StartConfirmed)
    assert [start.job_id for start in first.starts] == ["a", "b"]


@pytest.mark.parametrize("attempts", [2, 5])
def test_attempts_are_numbered_without_a_gap(attempts: int) -> None:
    partition = Partition().submit(max_retries=attempts, retry_base_delay_ms=0)
    for _ in range(attempts):
        partition.start().fail()
    started = [event.attempt for event in partition.events if isinstance(event, JobStarted)]
    assert started == list(range(1, attempts + 1))
