"""How soon a scheduler decides again, with many jobs pending: after a stop, after `kill -9`, without its store.

And how soon another one decides in its place, cold and as a warm standby.
"""

import itertools
import shutil
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from mainspring.cli.bench.limits import Consumed, measure_limits, read_through
from mainspring.cli.bench.load import patience_s, stage, submit
from mainspring.cli.bench.report import Figure, Report
from mainspring.cli.bench.site import ASSIGNED, Process, Site
from mainspring.cli.bench.usage import peak_resident_mib

if TYPE_CHECKING:
    from mainspring.cli.bench.limits import Limits
    from mainspring.client import Client, JobHandle

__all__ = ["accept_all", "measure"]

GOAL_STORE_S, GOAL_KILLED_S, GOAL_CHANGELOG_S = 3.0, 5.0, 10.0
GOAL_CHANGELOG_S_PER_JOB = 40e-6
GOAL_STANDBY_S = 2.0
_LATER_S = 86_400.0
_CHUNK, _TOLD_EVERY = 20_000, 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """Seconds from the start of the process until every partition decides."""

    graceful: float
    killed: float
    changelog: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Takeover:
    """What follows when one of two schedulers dies."""

    takeover_s: float
    """Seconds from its death until every partition decides."""
    noticed_s: float
    """How many of them the group took to notice, and to give its partitions to the other."""

    @property
    def taken_s(self) -> float:
        """How many were left for the takeover itself."""
        return round(self.takeover_s - self.noticed_s, 2)


def measure(site: Site, jobs: int, records: int) -> Report:
    """Leaves `jobs` jobs pending, restarts the scheduler three times, and kills it beside a second one.

    Ready is when a command that lay there before the start has its verdict in every partition: the time from starting
    the process to then, the start of the interpreter included.
    """
    stage("limits of this machine")
    limits = measure_limits(site, records)
    site.start()
    with site.client() as client:
        stage(f"{jobs:,} jobs, until the last is accepted")
        accept_all(site, client, jobs)
        site.scheduler.stop()
        stage("from its local store, after SIGTERM")
        graceful_s = _ready_s(site, client, jobs)
        peak_mib = peak_resident_mib(site.scheduler.pid)
        site.scheduler.kill()
        stage("from its local store, after kill -9")
        killed_s = _ready_s(site, client, jobs)
        site.scheduler.stop()
        shutil.rmtree(site.state_dir, ignore_errors=True)
        stage("from the changelog alone")
        changelog_s = _ready_s(site, client, jobs)
        restored_mib = peak_resident_mib(site.scheduler.pid)
        stage("the changelog by a bare consumer")
        consumed = read_through(site.settings, site.settings.topology().scheduler_changelog.name)
        stage("a second scheduler")
        site.second.start()
        site.second.wait_joined(patience_s(jobs))
        cold = _takeover(site, client, site.scheduler, site.second, jobs)
        stage("a warm standby")
        site.standby.start()
        site.standby.wait_warm(site.plan.partitions, patience_s(jobs))
        warm = _takeover(site, client, site.second, site.standby, jobs)
    ready = _Ready(graceful=graceful_s, killed=killed_s, changelog=changelog_s)
    return _report(jobs, ready, (cold, warm), consumed, (peak_mib, restored_mib), limits)


def _report(
    jobs: int,
    ready: _Ready,
    takeovers: tuple[_Takeover, _Takeover],
    consumed: Consumed,
    peaks_mib: tuple[float | None, float | None],
    limits: "Limits",
) -> Report:
    share_pct = round(100 * consumed.seconds / ready.changelog, 1)
    restored_per_s, raw_per_s = round(consumed.records / ready.changelog), round(consumed.records / consumed.seconds)
    from_store_mib, from_changelog_mib = peaks_mib
    cold, warm = takeovers
    return Report(
        bench="restart",
        what=f"a scheduler with {jobs:,} pending jobs, from its start until every partition decides",
        data={
            "jobs": jobs,
            "ready_s": asdict(ready),
            **asdict(cold),
            "standby": asdict(warm),
            "changelog_records": consumed.records,
            "changelog_raw_per_s": raw_per_s,
            "restored_per_s": restored_per_s,
            "restored_share_pct": share_pct,
            "scheduler_peak_mib": from_store_mib,
            "scheduler_restoring_peak_mib": from_changelog_mib,
        },
        figures=(
            Figure(name="local store, after SIGTERM", value=ready.graceful, unit="s", goal=GOAL_STORE_S),
            Figure(name="local store, after kill -9", value=ready.killed, unit="s", goal=GOAL_KILLED_S),
            Figure(
                name="changelog alone",
                value=ready.changelog,
                unit="s",
                goal=max(GOAL_CHANGELOG_S, jobs * GOAL_CHANGELOG_S_PER_JOB),
            ),
            Figure(name="  of the raw consume rate of the changelog", value=share_pct, unit="%"),
            Figure(name="  restored", value=restored_per_s, unit="records/s"),
            Figure(name="  limit: the changelog by a bare consumer", value=raw_per_s, unit="records/s"),
            Figure(name="second scheduler in its place, after kill -9", value=cold.takeover_s, unit="s"),
            Figure(name="  of that, until the group has noticed", value=cold.noticed_s, unit="s"),
            Figure(name="warm standby in its place, after kill -9", value=warm.takeover_s, unit="s"),
            Figure(name="  of that, until the group has noticed", value=warm.noticed_s, unit="s"),
            Figure(name="  warm standby, after the notice", value=warm.taken_s, unit="s", goal=GOAL_STANDBY_S),
            Figure(name="peak of resident memory, from the local store", value=from_store_mib, unit="MiB"),
            Figure(name="peak of resident memory, from the changelog", value=from_changelog_mib, unit="MiB"),
        ),
        limits=limits,
    )


def accept_all(site: Site, client: "Client", jobs: int) -> None:
    """Submits jobs for tomorrow and returns when the last of each partition is accepted."""
    last: dict[int, JobHandle] = {}
    for first in range(0, jobs, _CHUNK):
        if first and first % _TOLD_EVERY == 0:
            stage(f"  {first:,} submitted")
        # Verdicts come in the order of the submits, partition by partition: all other handles are let go.
        chunk = submit(client, min(_CHUNK, jobs - first), delay=_LATER_S)
        last.update({_partition_of(site, handle.job_id): handle for handle in chunk})
    for handle in last.values():
        handle.accepted(patience_s(jobs))


def _ready_s(site: Site, client: "Client", jobs: int) -> float:
    probes = _probes(site, client)
    began_s = time.monotonic()
    site.scheduler.start()
    for probe in probes:
        probe.accepted(patience_s(jobs))
    return round(time.monotonic() - began_s, 2)


def _takeover(site: Site, client: "Client", dying: Process, heir: Process, jobs: int) -> _Takeover:
    """Kills one of two schedulers that share the partitions."""
    noticed_before = sum(1 for _ in heir.told(ASSIGNED))
    stage("the other one dies")
    began_s, began_at = time.monotonic(), time.time()
    dying.kill()
    for probe in _probes(site, client):
        probe.accepted(patience_s(jobs))
    took_s = time.monotonic() - began_s
    noticed_at = next(itertools.islice(heir.told(ASSIGNED), noticed_before, None))
    return _Takeover(takeover_s=round(took_s, 2), noticed_s=round(noticed_at - began_at, 2))


def _probes(site: Site, client: "Client") -> "list[JobHandle]":
    """A pending job in every partition, sent while not every partition decides."""
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
