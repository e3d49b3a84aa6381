"""Many delayed jobs a second: how late they start, second of the minute by second of the minute."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mainspring.cli.bench.limits import measure_limits
from mainspring.cli.bench.load import many_handles, rest_until_due, run_through, stage, submit_all, wait_for
from mainspring.cli.bench.report import Figure, Report, lateness_of
from mainspring.cli.bench.site import Site

if TYPE_CHECKING:
    from mainspring.client import Client

__all__ = ["histogram", "measure", "seconds_of_minute"]

GOAL_P50_MS, GOAL_P99_MS = 30.0, 250.0
_WARM_UP_S = 2
_HEAD_START_S = 5
_MINUTE_S = 60
_BAR_CHARS = 40
_BOUNDS_MS = (5, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200, 250, 500, 1_000, 2_000, 5_000)


def measure(site: Site, rate: int, seconds: int, records: int) -> Report:
    """Submits `rate` jobs for every second of the next `seconds`, evenly, before the first is due.

    Nothing is submitted while they start, so that what is measured is how soon what is due is started.
    """
    stage("limits of this machine")
    limits = measure_limits(site, records)
    site.start()
    jobs = rate * seconds
    with many_handles(), site.client() as client:
        warm_up = max(1, rate * _WARM_UP_S)
        run_through(client, warm_up)
        end_to_end_per_s = warm_up / run_through(client, warm_up)
        first_s = int(time.time() + jobs / end_to_end_per_s) + _HEAD_START_S
        due_ns = [first_s * 10**9 + number * 10**9 // rate for number in range(jobs)]
        meter = site.meter(site.scheduler, site.worker)
        late_ns = _run(client, due_ns)
        used = meter.read()
    late = lateness_of(late_ns)
    per_second = seconds_of_minute(due_ns, late_ns)
    return Report(
        bench="lateness",
        what=f"{rate:,} delayed jobs due in every second for {seconds} s, all submitted before: from due to start",
        data={
            "jobs": jobs,
            "rate_per_s": rate,
            "seconds": seconds,
            "first_ms": late.first_ms,
            "p50_ms": late.p50_ms,
            "p99_ms": late.p99_ms,
            "max_ms": late.max_ms,
            "by_second_of_minute": per_second,
            "histogram": histogram(late_ns),
            "cpu_us_per_job": used.per_job_us(jobs),
        },
        figures=(
            Figure(name="late, p50", value=late.p50_ms, unit="ms", goal=GOAL_P50_MS),
            Figure(name="late, p99", value=late.p99_ms, unit="ms", goal=GOAL_P99_MS),
            Figure(name="late, max", value=late.max_ms, unit="ms"),
        ),
        limits=limits,
        table=_table(per_second),
    )


def _run(client: "Client", due_ns: Sequence[int]) -> list[int]:
    """How late each started, in nanoseconds and in the order of `due_ns`."""
    from mainspring.client import Submission
    from mainspring.jobs.options import JobOptions

    first = datetime.fromtimestamp(due_ns[0] / 1e9, UTC)
    stage(f"submitting {len(due_ns):,} jobs, due from {first:%H:%M:%S} UTC on")
    submissions = [
        # A job is due in whole milliseconds, rounded up: the rest of one is no lateness.
        Submission(
            "since",
            {"at_ns": -(-at // 1_000_000) * 1_000_000},
            JobOptions(run_at=datetime.fromtimestamp(-(-at // 1_000_000) / 1e3, UTC)),
        )
        for at in due_ns
    ]
    handles = submit_all(client, submissions)
    rest_until_due(
        handles,
        due_ns[0],
        late="the first was due",
        hint="Measure fewer, with --rate or --seconds, or when the machine has less to do.",
        then="they start",
    )
    return wait_for(handles)


def seconds_of_minute(due_ns: Sequence[int], late_ns: Sequence[int]) -> list[dict[str, Any]]:
    """Jobs and their lateness by the second of the minute (UTC) that they were due in, for those that had any."""
    found: dict[int, list[int]] = {}
    for due, late in zip(due_ns, late_ns, strict=True):
        found.setdefault(due // 10**9 % _MINUTE_S, []).append(late)
    return [
        {"second": second, "jobs": len(found[second]), **asdict(lateness_of(found[second]))} for second in sorted(found)
    ]


def histogram(late_ns: Sequence[int]) -> list[dict[str, Any]]:
    """How many jobs were up to so late, and later than the bound before; the last bound, None, is for all the rest."""
    counts = [0] * (len(_BOUNDS_MS) + 1)
    for late in late_ns:
        counts[next((at for at, bound in enumerate(_BOUNDS_MS) if late <= bound * 1_000_000), len(_BOUNDS_MS))] += 1
    return [{"up_to_ms": bound, "jobs": jobs} for bound, jobs in zip((*_BOUNDS_MS, None), counts, strict=True)]


def _table(per_second: Sequence[dict[str, Any]]) -> list[Sequence[Any]]:
    longest = max(each["p99_ms"] for each in per_second) or 1.0
    rows = [
        (
            f":{each['second']:02}",
            f"{each['jobs']:,}",
            f"{each['p50_ms']:,.1f}",
            f"{each['p99_ms']:,.1f}",
            f"{each['max_ms']:,.1f}",
            "█" * round(_BAR_CHARS * max(0.0, each["p99_ms"]) / longest),
        )
        for each in per_second
    ]
    return [("SECOND", "JOBS", "P50 MS", "P99 MS", "MAX MS", "P99"), *rows]
