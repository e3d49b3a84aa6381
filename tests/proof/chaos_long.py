"""The long forms of the copy and of the storm of workers, for `make chaos`: pytest finds them only where named."""

import os
from pathlib import Path

import pytest

from mainspring.local import EmbeddedKafka
from tests.proof.site import a_site
from tests.proof.test_copy import copy_through_faults
from tests.proof.test_worker_storm import leases_of, storm_of_workers
from tests.proof.worker_storm import WorkerStorm
from tests.support.proofs import Report

pytestmark = [pytest.mark.broker, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(7_200)]

LEASE_MS = 10_000
KILLS = int(os.environ.get("KILLS", "300"))
JOBS = KILLS * 5_000 // 300


def test_the_copy_is_exact_through_three_rounds(broker: EmbeddedKafka, tmp_path: Path, report: Report) -> None:
    copy_through_faults(broker.bootstrap, "copy.", tmp_path, report, rounds=3)


def test_no_job_is_lost_through_hundreds_of_kills(broker: EmbeddedKafka, tmp_path: Path, report: Report) -> None:
    with a_site(broker.bootstrap, "storm.", tmp_path, leases_of(LEASE_MS)) as site:
        storm = WorkerStorm(site=site, count=JOBS, kills=KILLS, seconds=(0.2, 2.0), lease_ms=LEASE_MS)
        storm_of_workers(storm, report)
