"""How soon a scheduler decides again, with many jobs pending: after a stop, after `kill -9`, without its store."""

import shutil
import time
from typing import TYPE_CHECKING

from mainspring.cli.bench.limits import measure_limits
from mainspring.cli.bench.load import submit
from mainspring.cli.bench.report import Figure, Report
from mainspring.cli.bench.site import Site
from mainspring.cli.bench.usage import peak_resident_mib

if TYPE_CHECKING:
    from mainspring.client import Client, JobHandle

__all__ = ["measure"]

GOAL_STORE_S, GOAL_KILLED_S, GOAL_CHANGELOG_S = 3.0, 5.0, 10.0
GOAL_CHANGELOG_S_PER_JOB = 40e-6
_LATER_S = 86_400.0
_ACCEPTED_S = 300.0


def measure(site: Site, jobs: int, records: int) -> Report:
    """Leaves `jobs` jobs pending and restarts the scheduler three times.

    Ready is when a command that lay there before the start has its verdict in every partition: the time from starting
    the process to then, the start of the interpreter included.
    """
    limits = measure_limits(site, records)
    site.start()
    with site.client() as client:
        accept_all(site, client, jobs)
        site.scheduler.stop()
        graceful_s = _ready_s(site, client)
        peak_mib = peak_resident_mib(site.scheduler.pid)
        site.scheduler.kill()
        killed_s = _ready_s(site, client)
        site.scheduler.stop()
        shutil.rmtree(site.state_dir, ignore_errors=True)
        changelog_s = _ready_s(site, client)
    changelog_goal_s = max(GOAL_CHANGELOG_S, jobs * GOAL_CHANGELOG_S_PER_JOB)
    ready_s = {"graceful": graceful_s, "killed": killed_s, "changelog": changelog_s}
    return Report(
        bench="restart",
        what=f"a scheduler with {jobs:,} pending jobs, from its start until every partition decides",
        data={"jobs": jobs, "ready_s": ready_s, "scheduler_peak_mib": peak_mib},
        figures=(
            Figure(name="local store, after SIGTERM", value=graceful_s, unit="s", goal=GOAL_STORE_S),
            Figure(name="local store, after kill -9", value=killed_s, unit="s", goal=GOAL_KILLED_S),
            Figure(name="changelog alone", value=changelog_s, unit="s", goal=changelog_goal_s),
            Figure(name="peak of resident memory, from the local store", value=peak_mib, unit="MiB"),
        ),
        limits=limits,
    )


def accept_all(site: Site, client: "Client", jobs: int) -> None:
    """Submits jobs for tomorrow and returns when the last of each partition is accepted."""
    handles = submit(client, jobs, delay=_LATER_S)
    # Verdicts come in the order of the submits, partition by partition.
    last = {_partition_of(site, handle.job_id): handle for handle in handles}
    for handle in last.values():
        handle.accepted(_ACCEPTED_S)


def _ready_s(site: Site, client: "Client") -> float:
    probes = _probes(site, client)
    began_s = time.monotonic()
    site.scheduler.start()
    for probe in probes:
        probe.accepted(_ACCEPTED_S)
    return round(time.monotonic() - began_s, 2)


def _probes(site: Site, client: "Client") -> "list[JobHandle]":
    """A pending job in every partition, sent while nobody decides."""
    from mainspring.client import Submission
    from mainspring.jobs.ids import new_job_id
    from mainspring.jobs.options import JobOptions

    ids: dict[int, str] = {}
    while len(ids) < site.plan.partitions:
        job_id = new_job_id()
        ids.setdefault(_partition_of(site, job_id), job_id)
    jobs = [Submission("noop", {}, JobOptions(job_id=job_id, delay=_LATER_S)) for job_id in ids.values()]
    return client.submit_many(jobs)


def _partition_of(site: Site, job_id: str) -> int:
    from mainspring.topics import partition_for

    return partition_for(job_id.encode(), site.plan.partitions)
