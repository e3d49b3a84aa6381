"""What an installation uses that has nothing to do."""

import time

from mainspring.cli.bench.limits import measure_limits
from mainspring.cli.bench.load import run_through
from mainspring.cli.bench.report import Figure, Report
from mainspring.cli.bench.site import Site

__all__ = ["measure"]

GOAL_PCT = 2.0
_SETTLE_S = 2.0


def measure(site: Site, seconds: float, records: int) -> Report:
    """Runs a few jobs, lets everything come to rest, and then watches for so long."""
    limits = measure_limits(site, records)
    site.start()
    with site.client() as client:
        run_through(client, 100)
    time.sleep(_SETTLE_S)
    meter = site.meter(site.scheduler, site.worker)
    time.sleep(seconds)
    used = meter.read()
    for process in (site.scheduler, site.worker):
        process.check()
    percents = used.percents()
    del percents["client"]
    return Report(
        bench="idle",
        what=f"one scheduler and one worker with nothing to do, {seconds:g} s",
        data={
            "seconds": seconds,
            "idle_cpu_pct": used.percent("scheduler"),
            "broker_cpu_pct": used.percent("broker"),
            "cpu_pct": percents,
        },
        figures=(
            Figure(name="scheduler", value=used.percent("scheduler"), unit="% of a core", goal=GOAL_PCT),
            Figure(name="worker", value=used.percent("worker"), unit="% of a core"),
            Figure(name="broker", value=used.percent("broker"), unit="% of a core"),
        ),
        limits=limits,
    )
