"""20,000 jobs through a dozen kills, and through a dozen pauses that are longer than every lease and session."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mainspring.schemas import AttemptSucceeded, Codec, JobRetryScheduled, JobStarted, ReportRefused
from tests.proof.board import refusals
from tests.proof.ledger import AttemptKey
from tests.proof.site import Member, Site, a_site
from tests.proof.storm import FAULTS, JOBS, Storm
from tests.support.proofs import Report

pytestmark = [pytest.mark.broker, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(300)]

SLOTS = 32
LEASE_S = {"kill": 6.0, "stop": 4.0}


def crew(site: Site) -> tuple[list[Member], list[Member]]:
    """Two schedulers that can be held, two workers, and a projector."""
    site.projector()
    schedulers = [site.held_scheduler(name) for name in ("s1", "s2")]
    return schedulers, [site.worker(name, slots=SLOTS) for name in ("w1", "w2")]


@pytest.fixture
def storm(kafka: str, prefix: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Storm]:
    lease_ms = int(LEASE_S[request.param] * 1000)
    changes = {"worker": {"lease_ms": lease_ms, "heartbeat_ms": lease_ms // 4}}
    with a_site(kafka, prefix, tmp_path, changes) as site:
        yield Storm(site=site)


@pytest.mark.parametrize("storm", ["kill"], indirect=True)
def test_twenty_thousand_jobs_complete_through_twelve_kills(storm: Storm, report: Report) -> None:
    site = storm.site
    schedulers, workers = crew(site)
    dead_at_ns: dict[str, int] = {}

    # when
    storm.begin()
    for fault in range(FAULTS):
        storm.next_part()
        if fault % 2 == 0:
            victim = schedulers[fault // 2 % 2]
            storm.hold(victim, fault // 2)
        else:
            victim, _ = storm.stop_while_running(workers)
        dead_at_ns[victim.life] = victim.kill()
        victim.start()
    ledger = storm.finish()

    # then
    storm.assert_not_void()
    storm.assert_nothing_was_lost_or_doubled(ledger)
    assert ledger.overlaps(dead_at_ns) == [], "a job ran twice at once"
    storm.assert_the_log_agrees()
    lost = site.board.kinds[JobRetryScheduled]
    duplicates = ledger.duplicates()
    assert {event.job_id for event in lost} >= set(duplicates), "a side effect was repeated without a lost attempt"
    report(
        f"{JOBS} jobs, {FAULTS} kill -9 ({storm.with_transaction_open} of schedulers with a transaction open, "
        f"{storm.with_attempts_running} of workers with attempts running): 0 lost; {len(lost)} attempts lost with "
        f"their worker and run again, side effects begun more than once by {len(duplicates)} jobs"
    )


@pytest.mark.parametrize("storm", ["stop"], indirect=True)
def test_twenty_thousand_jobs_complete_through_twelve_pauses_and_late_results_are_refused(
    storm: Storm, report: Report
) -> None:
    site = storm.site
    schedulers, workers = crew(site)
    late: set[AttemptKey] = set()

    # when
    storm.begin()
    for fault in range(FAULTS):
        storm.next_part()
        if fault % 2 == 0:
            storm.be_away(schedulers[fault // 2 % 2], fault // 2)
        else:
            late |= run_late(storm, workers)
    ledger = storm.finish()

    # then
    storm.assert_not_void()
    storm.assert_nothing_was_lost_or_doubled(ledger)
    assert len(late) >= FAULTS // 2
    kept = [Codec.embedded().decode(event.evidence) for event in site.board.kinds[ReportRefused]]
    assert sum(isinstance(refused, AttemptSucceeded) for refused in kept) >= FAULTS // 2
    storm.assert_the_log_agrees()
    report(
        f"{JOBS} jobs, {FAULTS} SIGSTOP past session and lease: 0 lost; {len(late)} attempts ran on unseen, each had "
        f"its late report refused; side effects begun more than once by {len(ledger.duplicates())} jobs"
    )


def run_late(storm: Storm, workers: list[Member]) -> set[AttemptKey]:
    """A worker stands still until what it ran has been started elsewhere, then goes on; what it ran."""
    board = storm.site.board
    # A thread cannot be stopped, so it returns a result however late it is.
    worker, running = storm.stop_while_running(workers, "block")

    def has_started_elsewhere(key: AttemptKey) -> bool:
        job_id, attempt = key
        return any(e.attempt > attempt and e.worker_id != worker.name for e in board.of(JobStarted, job_id))

    storm.site.until(lambda: all(map(has_started_elsewhere, running)), f"{len(running)} attempts to start elsewhere")
    worker.go_on()
    storm.site.until(
        lambda: all(refusals(board, job_id, attempt) for job_id, attempt in running),
        f"the late reports of {len(running)} attempts to be refused",
    )
    return running
