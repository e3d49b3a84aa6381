"""From submit to start at a moderate rate, and what the broker uses for it."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from mainspring.cli.bench.limits import measure_limits
from mainspring.cli.bench.load import run_through, wait_for
from mainspring.cli.bench.report import Figure, Report, lateness_of
from mainspring.cli.bench.site import Site

if TYPE_CHECKING:
    from mainspring.client import Client, JobHandle

__all__ = ["measure"]

GOAL_P50_MS, GOAL_P99_MS, GOAL_BROKER_PCT = 40.0, 200.0, 25.0
_SUBMITTERS = 8


def measure(site: Site, rate: float, seconds: float, records: int) -> Report:
    """Submits jobs one by one, `rate` per second for so long. Each says how long after its submit it was started."""
    limits = measure_limits(site, records)
    site.start()
    with site.client() as client:
        run_through(client, max(1, int(rate)))
        _paced(client, rate, 1.0)
        meter = site.meter(site.scheduler, site.worker)
        handles = _paced(client, rate, seconds)
        late_ns = wait_for(handles)
        used = meter.read()
    late = lateness_of(late_ns)
    broker_pct = used.percent("broker")
    return Report(
        bench="latency",
        what=f"submit to start at {rate:g} jobs/s, {len(handles):,} jobs",
        data={
            "jobs": len(handles),
            "rate_per_s": rate,
            "first_ms": late.first_ms,
            "p50_ms": late.p50_ms,
            "p99_ms": late.p99_ms,
            "max_ms": late.max_ms,
            "broker_cpu_pct": broker_pct,
            "cpu_pct": used.percents(),
        },
        figures=(
            Figure(name="submit to start, p50", value=late.p50_ms, unit="ms", goal=GOAL_P50_MS),
            Figure(name="submit to start, p99", value=late.p99_ms, unit="ms", goal=GOAL_P99_MS),
            Figure(name="submit to start, max", value=late.max_ms, unit="ms"),
            Figure(name="broker", value=broker_pct, unit="% of a core", goal=GOAL_BROKER_PCT),
            Figure(name="scheduler", value=used.percent("scheduler"), unit="% of a core"),
            Figure(name="worker", value=used.percent("worker"), unit="% of a core"),
        ),
        limits=limits,
    )


def _paced(client: "Client", rate: float, seconds: float) -> "list[JobHandle]":
    """One job each 1/rate seconds, also where a submit takes longer than that: several threads take turns."""

    def submit_at(due_s: float) -> "JobHandle":
        time.sleep(max(0.0, due_s - time.monotonic()))
        return client.submit("since", {"at_ns": time.time_ns()})

    began_s = time.monotonic()
    with ThreadPoolExecutor(_SUBMITTERS) as submitters:
        return list(submitters.map(submit_at, (began_s + n / rate for n in range(max(1, round(rate * seconds))))))
