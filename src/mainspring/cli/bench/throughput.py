"""Jobs per second from submit to result, and what each costs in CPU time."""

from mainspring.cli.bench.limits import measure_limits
from mainspring.cli.bench.load import many_handles, run_through
from mainspring.cli.bench.report import Figure, Report
from mainspring.cli.bench.site import Site

__all__ = ["measure"]

GOAL_US = 200.0


def measure(site: Site, jobs: int, warm_up: int, records: int) -> Report:
    """Runs `jobs` no-op jobs end to end, after a warm-up that the figures leave out."""
    limits = measure_limits(site, records)
    site.start()
    with many_handles(), site.client() as client:
        run_through(client, warm_up)
        bytes_before = site.log_bytes()
        meter = site.meter(site.scheduler, site.worker)
        took_s = run_through(client, jobs)
        used = meter.read()
    by_topic = site.log_bytes()
    log_bytes = (
        None
        if by_topic is None or bytes_before is None
        else {topic: round((size - bytes_before.get(topic, 0)) / jobs, 1) for topic, size in by_topic.items()}
    )
    per_job_us = used.per_job_us(jobs)
    per_s = round(jobs / took_s)
    per_job_bytes = None if log_bytes is None else round(sum(log_bytes.values()), 1)
    return Report(
        bench="throughput",
        what=f"{jobs:,} no-op jobs from submit to result: one client, one scheduler, one worker",
        data={
            "jobs": jobs,
            "jobs_per_s": per_s,
            "cpu_us_per_job": per_job_us,
            "broker_cpu_pct": used.percent("broker"),
            "log_bytes_per_job": per_job_bytes,
            "log_bytes_per_job_by_topic": log_bytes and {name: size for name, size in log_bytes.items() if size},
        },
        figures=(
            Figure(name="jobs, submit to result", value=per_s, unit="jobs/s"),
            Figure(name="CPU per job, all processes", value=per_job_us["sum"], unit="µs", goal=GOAL_US),
            *(Figure(name=f"  {name}", value=per_job_us.get(name), unit="µs") for name in _PROCESSES),
            Figure(name="log per job", value=per_job_bytes, unit="bytes"),
        ),
        limits=limits,
    )


_PROCESSES = ("scheduler", "worker", "client", "broker")
