"""Many jobs due at one instant, a critical one of that instant submitted last, and one submitted in their middle."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from mainspring.cli.bench.limits import measure_limits
from mainspring.cli.bench.load import (
    many_handles,
    patience_s,
    rest_until_due,
    run_through,
    stage,
    submit_each,
    wait_for,
)
from mainspring.cli.bench.report import Figure, Report, by_second, lateness_of
from mainspring.cli.bench.site import Site
from mainspring.cli.bench.usage import peak_resident_mib
from mainspring.jobs import JobPriority

if TYPE_CHECKING:
    from mainspring.cli.bench.limits import Limits
    from mainspring.client import Client

__all__ = ["measure"]

GOAL_SHARE_PCT, GOAL_PEAK_MIB = 80.0, 600.0
_COMPARED_JOBS = 100_000
"""More say no more about the end-to-end rate, and take their time."""
_HEAD_START = timedelta(seconds=3)
_ACCEPTING_SHARE = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class _Goals:
    first_ms: float
    critical_ms: float


_SMALL, _LARGE = _Goals(first_ms=200.0, critical_ms=500.0), _Goals(first_ms=500.0, critical_ms=1_000.0)
_LARGE_FROM = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drained:
    """What one herd did; lateness in nanoseconds, in order."""

    late_ns: Sequence[int]
    critical_ms: float
    critical_last_ms: float
    spare_s: float
    end_to_end_per_s: float
    peak_mib: float | None


def measure(site: Site, jobs: int, records: int) -> Report:
    """Submits `jobs` jobs for one instant, and compares how fast they start with an end-to-end run of up to 100,000."""
    stage("limits of this machine")
    limits = measure_limits(site, records)
    site.start()
    with many_handles(), site.client() as client:
        compared = min(jobs, _COMPARED_JOBS)
        run_through(client, max(1, compared // 5))
        stage(f"{compared:,} jobs from submit to result, to compare with")
        end_to_end_per_s = compared / run_through(client, compared)
        return _report(jobs, _drain(site, client, jobs, end_to_end_per_s), limits)


def _drain(site: Site, client: "Client", jobs: int, end_to_end_per_s: float) -> _Drained:
    # As far ahead as submitting and accepting them takes, with room: the run before did two or three times as much.
    due_at = datetime.now(UTC) + timedelta(seconds=_ACCEPTING_SHARE * jobs / end_to_end_per_s) + _HEAD_START
    due_ns = int(due_at.timestamp() * 1_000) * 1_000_000
    stage(f"submitting {jobs:,} jobs for {due_at:%H:%M:%S} UTC")
    herd = submit_each(client, ["since"] * jobs, [{"at_ns": due_ns}] * jobs, run_at=due_at)
    last = client.submit("since", {"at_ns": due_ns}, run_at=due_at, priority=JobPriority.CRITICAL)
    spare_s = rest_until_due(
        herd,
        due_ns,
        late="all were due, so there was no herd",
        hint="Measure fewer, with --jobs, or when the machine has less to do.",
        then="half of them",
    )
    # The one in the middle, and not all before it: one whose worker was too slow for its lease comes behind the herd.
    wait_for(herd[jobs // 2 - 1 : jobs // 2], patience_s(jobs))
    critical = client.submit("since", {"at_ns": time.time_ns()}, priority=JobPriority.CRITICAL)
    critical_ms = round(critical.result(patience_s(jobs)) / 1e6, 2)
    stage("the other half")
    return _Drained(
        late_ns=sorted(wait_for(herd, patience_s(jobs))),
        critical_ms=critical_ms,
        critical_last_ms=round(last.result(patience_s(jobs)) / 1e6, 2),
        spare_s=spare_s,
        end_to_end_per_s=end_to_end_per_s,
        peak_mib=peak_resident_mib(site.scheduler.pid),
    )


def _report(jobs: int, herd: _Drained, limits: "Limits") -> Report:
    late = lateness_of(herd.late_ns)
    starts_per_s = round(jobs / (herd.late_ns[-1] / 1e9))
    share_pct = round(100 * starts_per_s / herd.end_to_end_per_s, 1)
    end_to_end_per_s = round(herd.end_to_end_per_s)
    goals = _LARGE if jobs >= _LARGE_FROM else _SMALL
    return Report(
        bench="herd",
        what=f"{jobs:,} jobs due at one instant, a CRITICAL one of it submitted last, and one when half have ended",
        data={
            "jobs": jobs,
            "first_ms": late.first_ms,
            "p50_ms": late.p50_ms,
            "p99_ms": late.p99_ms,
            "max_ms": late.max_ms,
            "jobs_per_s": end_to_end_per_s,
            "starts_per_s": starts_per_s,
            "starts_share_pct": share_pct,
            "starts_by_second": by_second(herd.late_ns),
            "critical_ms": herd.critical_ms,
            "critical_last_ms": herd.critical_last_ms,
            "scheduler_peak_mib": herd.peak_mib,
            "accepted_before_due_s": round(herd.spare_s, 2),
        },
        figures=(
            Figure(name="first start, late", value=late.first_ms, unit="ms", goal=goals.first_ms),
            Figure(name="half started, late", value=late.p50_ms, unit="ms"),
            Figure(name="last start, late", value=late.max_ms, unit="ms"),
            Figure(name="starts", value=starts_per_s, unit="jobs/s"),
            Figure(name="of the end-to-end rate", value=share_pct, unit="%", goal=GOAL_SHARE_PCT, at_least=True),
            Figure(name="end-to-end rate", value=end_to_end_per_s, unit="jobs/s"),
            Figure(name="CRITICAL, submit to start", value=herd.critical_ms, unit="ms", goal=goals.critical_ms),
            Figure(
                name="CRITICAL of the same instant, late",
                value=herd.critical_last_ms,
                unit="ms",
                goal=goals.critical_ms,
            ),
            Figure(name="scheduler, peak of resident memory", value=herd.peak_mib, unit="MiB", goal=GOAL_PEAK_MIB),
        ),
        limits=limits,
    )
