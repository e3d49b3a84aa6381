"""Workers that die every two seconds under jobs that are flaky, long or deadly: what is lost, and what is repeated."""

from pathlib import Path
from typing import Any

import pytest

from tests.proof.site import a_site
from tests.proof.worker_storm import EVERY_S, WorkerStorm
from tests.support.proofs import Report

pytestmark = [pytest.mark.broker, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(300)]

WORKERS, SLOTS = 8, 8


def test_no_job_is_lost_while_a_worker_is_killed_every_two_seconds(
    kafka: str, prefix: str, tmp_path: Path, report: Report
) -> None:
    with a_site(kafka, prefix, tmp_path, leases_of(5_000)) as site:
        storm_of_workers(WorkerStorm(site=site, count=600, kills=8, seconds=(0.2, 1.0), lease_ms=5_000), report)


def leases_of(lease_ms: int) -> dict[str, dict[str, Any]]:
    """Settings of schedulers and workers."""
    return {"worker": {"lease_ms": lease_ms, "heartbeat_ms": lease_ms // 5}}


def storm_of_workers(storm: WorkerStorm, report: Report) -> None:
    """The storm on eight workers, and what must hold after it."""
    # given
    site = storm.site
    site.scheduler("s1")
    workers = [site.worker(f"w{number}", slots=SLOTS) for number in range(WORKERS)]

    # when
    ledger = storm.run(workers)

    # then
    assert storm.with_attempts_running == storm.kills, "void"
    storm.assert_nothing_was_lost_or_doubled(ledger)
    storm.assert_the_log_agrees()
    report(
        f"{storm.count} jobs on {WORKERS} workers, {storm.kills} kill -9 (every {EVERY_S:g} s, if one runs something), "
        f"more by jobs; leases of {storm.lease_ms} ms: 0 lost; {storm.findings(ledger)}"
    )
