"""Many jobs due at one instant, and a critical one submitted in the middle of them."""

import time
from datetime import UTC, datetime, timedelta

from mainspring.cli.bench.limits import measure_limits
from mainspring.cli.bench.load import run_through, submit_each, wait_for
from mainspring.cli.bench.report import Figure, Report, lateness_of
from mainspring.cli.bench.site import Site
from mainspring.cli.bench.usage import peak_resident_mib
from mainspring.jobs import JobPriority

__all__ = ["measure"]

GOAL_FIRST_MS, GOAL_CRITICAL_MS, GOAL_SHARE_PCT = 200.0, 500.0, 80.0
GOAL_PEAK_MIB = 600.0
_COMPARED_JOBS = 100_000
"""More say no more about the end-to-end rate, and take their time."""
_HEAD_START = timedelta(seconds=3)
_ACCEPTED_S = 120.0


def measure(site: Site, jobs: int, records: int) -> Report:
    """Submits `jobs` jobs for one instant, and compares how fast they start with an end-to-end run of up to 100,000."""
    limits = measure_limits(site, records)
    site.start()
    with site.client() as client:
        compared = min(jobs, _COMPARED_JOBS)
        run_through(client, max(1, compared // 5))
        end_to_end_per_s = compared / run_through(client, compared)
        # As far ahead as submitting and accepting them takes, with room: the run above did three times as much.
        due_at = datetime.now(UTC) + timedelta(seconds=jobs / end_to_end_per_s) + _HEAD_START
        due_ns = int(due_at.timestamp() * 1_000) * 1_000_000
        herd = submit_each(client, ["since"] * jobs, [{"at_ns": due_ns}] * jobs, run_at=due_at)
        herd[-1].accepted(max(_ACCEPTED_S, jobs / end_to_end_per_s))
        spare_s = due_ns / 1e9 - time.time()
        wait_for(herd[: jobs // 2])
        critical = client.submit("since", {"at_ns": time.time_ns()}, priority=JobPriority.CRITICAL)
        critical_ms = round(critical.result(_ACCEPTED_S) / 1e6, 2)
        late_ns = sorted(wait_for(herd))
        peak_mib = peak_resident_mib(site.scheduler.pid)
    late = lateness_of(late_ns)
    starts_per_s = round(jobs / (late_ns[-1] / 1e9))
    share_pct = round(100 * starts_per_s / end_to_end_per_s, 1)
    return Report(
        bench="herd",
        what=f"{jobs:,} jobs due at one instant, a CRITICAL one submitted when half have ended",
        data={
            "jobs": jobs,
            "first_ms": late.first_ms,
            "p50_ms": late.p50_ms,
            "p99_ms": late.p99_ms,
            "max_ms": late.max_ms,
            "jobs_per_s": round(end_to_end_per_s),
            "starts_per_s": starts_per_s,
            "starts_share_pct": share_pct,
            "critical_ms": critical_ms,
            "scheduler_peak_mib": peak_mib,
            "accepted_before_due_s": round(spare_s, 2),
        },
        figures=(
            Figure(name="first start, late", value=late.first_ms, unit="ms", goal=GOAL_FIRST_MS),
            Figure(name="half started, late", value=late.p50_ms, unit="ms"),
            Figure(name="last start, late", value=late.max_ms, unit="ms"),
            Figure(name="starts", value=starts_per_s, unit="jobs/s"),
            Figure(name="of the end-to-end rate", value=share_pct, unit="%", goal=GOAL_SHARE_PCT, at_least=True),
            Figure(name="end-to-end rate", value=round(end_to_end_per_s), unit="jobs/s"),
            Figure(name="CRITICAL, submit to start", value=critical_ms, unit="ms", goal=GOAL_CRITICAL_MS),
            Figure(name="scheduler, peak of resident memory", value=peak_mib, unit="MiB", goal=GOAL_PEAK_MIB),
        ),
        limits=limits,
    )
