"""The commands of `mainspring bench`. What each measures is in the module of its name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from mainspring.cli.context import globals_of
from mainspring.cli.option_groups import grouped
from mainspring.cli.output import Output, OutputOption, progress

if TYPE_CHECKING:
    from mainspring.cli.bench.report import Report
    from mainspring.cli.bench.site import Plan, Site

__all__ = ["app"]

_EPILOG = (
    "Each starts a Kafka of its own unless kafka.bootstrap is set, one scheduler and one worker, and measures in the "
    "same run what bare clients get. CPU time per job is the figure that also holds on a machine with other work to do."
)
app = typer.Typer(
    name="bench",
    help="Measure throughput, latency, lateness, herd, schedules, restart and idle cost.",
    epilog=_EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

Partitions = Annotated[int, typer.Option(help="Partitions of every topic.", min=1, metavar="N")]
Memory = Annotated[bool, typer.Option("--memory", help="Keep the scheduler's tables in memory, not in RocksDB.")]
Records = Annotated[int, typer.Option(help="Records with which the bare clients are measured.", min=1, metavar="N")]

_PARTITIONS, _RECORDS = 4, 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteOptions:
    """The installation that is measured, as it was asked for."""

    partitions: Partitions = _PARTITIONS
    slots: Annotated[int, typer.Option(help="Attempts that the worker runs at once.", min=1, metavar="N")] = 2_000
    memory: Memory = False

    def plan(self) -> "Plan":
        """What it is made from."""
        from mainspring.cli.bench.site import Plan

        return Plan(partitions=self.partitions, slots=self.slots, rocksdb=not self.memory)


@app.command()
@grouped
def throughput(
    ctx: typer.Context,
    *,
    jobs: Annotated[int, typer.Option(help="Jobs that are measured.", min=1, metavar="N")] = 100_000,
    warm_up: Annotated[int, typer.Option(help="Jobs run before that.", min=1, metavar="N")] = 10_000,
    records: Records = 100_000,
    asked: SiteOptions,
    output: OutputOption = Output.TABLE,
) -> None:
    """No-op jobs from submit to result: jobs per second, and CPU time per job of each process."""
    from mainspring.cli.bench import throughput as bench

    _run(ctx, asked.plan(), output, lambda site: bench.measure(site, jobs, warm_up, records))


@app.command()
@grouped
def latency(
    ctx: typer.Context,
    *,
    rate: Annotated[float, typer.Option(help="Jobs per second.", min=0.1, metavar="N")] = 50.0,
    seconds: Annotated[float, typer.Option(help="For how long.", min=0.1, metavar="S")] = 20.0,
    records: Records = _RECORDS,
    asked: SiteOptions,
    output: OutputOption = Output.TABLE,
) -> None:
    """From submit to start at a moderate rate."""
    from mainspring.cli.bench import latency as bench

    _run(ctx, asked.plan(), output, lambda site: bench.measure(site, rate, seconds, records))


@app.command()
@grouped
def lateness(
    ctx: typer.Context,
    *,
    rate: Annotated[int, typer.Option(help="Jobs that are due in each second.", min=1, metavar="N")] = 1_000,
    seconds: Annotated[int, typer.Option(help="For how long.", min=1, metavar="S")] = 60,
    records: Records = _RECORDS,
    asked: SiteOptions,
    output: OutputOption = Output.TABLE,
) -> None:
    """How late delayed jobs start, second of the minute by second of the minute."""
    from mainspring.cli.bench import lateness as bench

    _run(ctx, asked.plan(), output, lambda site: bench.measure(site, rate, seconds, records))


@app.command()
@grouped
def herd(
    ctx: typer.Context,
    *,
    jobs: Annotated[int, typer.Option(help="Jobs due at one instant.", min=2, metavar="N")] = 10_000,
    records: Records = _RECORDS,
    asked: SiteOptions,
    output: OutputOption = Output.TABLE,
) -> None:
    """Many jobs due at one instant, a CRITICAL one of it submitted last, and one in the middle of them."""
    from mainspring.cli.bench import herd as bench

    _run(ctx, asked.plan(), output, lambda site: bench.measure(site, jobs, records))


@app.command()
def restart(
    ctx: typer.Context,
    *,
    jobs: Annotated[int, typer.Option(help="Jobs that are pending.", min=1, metavar="N")] = 100_000,
    records: Records = _RECORDS,
    partitions: Partitions = _PARTITIONS,
    output: OutputOption = Output.TABLE,
) -> None:
    """A scheduler that starts again: from its store, after kill -9, from the changelog; and others in its place."""
    from mainspring.cli.bench import restart as bench

    _run(ctx, SiteOptions(partitions=partitions).plan(), output, lambda site: bench.measure(site, jobs, records))


@app.command()
def idle(
    ctx: typer.Context,
    *,
    seconds: Annotated[float, typer.Option(help="For how long.", min=0.1, metavar="S")] = 15.0,
    records: Records = _RECORDS,
    partitions: Partitions = _PARTITIONS,
    memory: Memory = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """What an installation uses that has nothing to do."""
    from mainspring.cli.bench import idle as bench

    plan = SiteOptions(partitions=partitions, memory=memory).plan()
    _run(ctx, plan, output, lambda site: bench.measure(site, seconds, records))


@app.command()
@grouped
def schedules(
    ctx: typer.Context,
    *,
    count: Annotated[int, typer.Option("--schedules", help="Schedules of one second.", min=1, metavar="N")] = 10_000,
    records: Records = _RECORDS,
    asked: SiteOptions,
    output: OutputOption = Output.TABLE,
) -> None:
    """Many schedules with the same cron expression: how late the last one is fired."""
    from mainspring.cli.bench import schedules as bench

    _run(ctx, asked.plan(), output, lambda site: bench.measure(site, count, records))


def _run(ctx: typer.Context, plan: "Plan", output: Output, measure: "Callable[[Site], Report]") -> None:
    from mainspring.cli.bench.report import show
    from mainspring.cli.bench.site import open_site

    with progress("Measuring…"), open_site(globals_of(ctx), plan) as site:
        report = measure(site)
        settings = site.layout()
    show(report, output, settings)
