"""Who comes and goes: a scheduler with an identity that it keeps, and workers that come late."""

from collections import Counter
from pathlib import Path

import pytest

from mainspring.client import Submission
from mainspring.jobs import JobOptions
from mainspring.schemas import JobCompleted, JobStarted, Priority
from tests.engine.support import CODEC, read_all
from tests.proof import jobs
from tests.proof.site import Site, a_site, names

pytestmark = [pytest.mark.broker, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(180)]

RENEWALS = 2


def submit_quick(site: Site, kind: str, count: int) -> list[str]:
    ids = list(names(kind, count))
    site.client.submit_many([Submission(jobs.quick.job(), options=JobOptions(job_id=job_id)) for job_id in ids])
    return ids


def test_a_killed_scheduler_that_keeps_its_identity_has_its_partitions_again_long_before_its_session_is_over(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    # Given two schedulers whose sessions outlast every patience of this test
    fixed = {"scheduler.static_member": "true", "scheduler.session_timeout_ms": 300_000}
    with a_site(kafka, prefix, tmp_path) as site:
        victim, other = (site.scheduler(name, **fixed) for name in ("s1", "s2"))
        site.worker("w1")
        site.until(lambda: set(site.owners().values()) == {victim.name, other.name}, "both to have partitions")
        before = site.owners()

        # When one of them is killed and comes back
        victim.kill()
        victim.start()

        # Then it decides again for its partitions, and nobody had to wait for the end of a session
        ids = submit_quick(site, "after", 40)
        site.until(lambda: all(site.board.has(JobCompleted, job_id) for job_id in ids), "every job to complete")
        assert site.owners() == before


def test_a_worker_that_comes_after_offers_were_renewed_starts_each_job_once(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    # Given jobs that were offered again and again, and no worker
    with a_site(kafka, prefix, tmp_path) as site:
        site.scheduler("s1")
        ids = submit_quick(site, "early", 20)
        lane = site.topology.work("default", Priority.MEDIUM)

        def offers() -> Counter[str]:
            read = read_all(site.settings.connection(), lane)
            return Counter(CODEC.decode(message.value()).job_id for message in read)  # type: ignore[union-attr]  # offers only

        site.until(lambda: all(offers()[job_id] > RENEWALS for job_id in ids), f"{RENEWALS} renewals of each offer")

        # When a worker comes and finds all of them
        site.worker("late")
        site.until(lambda: all(site.board.has(JobCompleted, job_id) for job_id in ids), "every job to complete")

        # Then each was started once, in its first attempt
        ledger = site.ledger()
        assert sorted(ledger.began) == [(job_id, 1) for job_id in ids]
        assert ledger.begun_twice() == set()
        assert Counter(event.job_id for event in site.board.kinds[JobStarted]) == Counter(ids)
