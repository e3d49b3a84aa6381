"""One seed, from an empty cluster through its faults to rest, and the verdict.

`python -m tests.sim.run --seeds 1-300` runs many; a single seed with `-v` prints every event.
"""

import argparse
import gc
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random

from mainspring.schemas import SubmitJob
from tests.sim.faults import Chaos, Menu, draw_leaps, draw_menu, draw_moves, draw_projector_faults
from tests.sim.kafka import COMMITTED, PartitionLog
from tests.sim.load import LoadShape
from tests.sim.node import Node
from tests.sim.quiet import quiet
from tests.sim.rare import missing
from tests.sim.recurring import FOLD_MS, GAP_MS, RecurringShape
from tests.sim.site import Site, SiteShape
from tests.sim.verdict import check_end
from tests.sim.worker_node import WorkerShape
from tests.sim.world import EPOCH_MS, SECOND, Violation, World

__all__ = ["Outcome", "Plan", "draw_plan", "numbers", "run_plan", "run_seed"]

SETTLE = 240 * SECOND
"""After the last fault everything that is due ends within this.

A pause of a minute, an offer that is renewed after one, leases, retries, and the jobs themselves."""

PER_JOB = 15 * SECOND
"""...and for each job that has piled up, what it may cost a slot."""


_BEFORE_CHANGE_MS = 1_200_000
"""Where the clocks of a site's zone change, they do so within the run."""

_PROJECTED = 0.4
"""Share of the seeds with schedules that have a projector, which costs as much as a scheduler."""

LEAVES_ONE = 0.3
"""Share of the seeds after whose faults only one machine of each role is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a seed does."""

    seed: int
    duration: int
    menu: Menu
    shape: SiteShape
    leaves_one: bool = False
    """Faults need not end: afterwards, only one machine of each role is well, and the others stay away for ever."""

    @property
    def slots(self) -> int:
        """How many jobs can run at once after the last fault."""
        return self.shape.worker.slots * (1 if self.leaves_one else self.shape.workers)


@dataclass(slots=True, kw_only=True)
class Outcome:
    """How a seed went."""

    seed: int
    digest: str
    simulated_s: float
    took_s: float
    steps: int
    jobs: int
    events: int
    faults: int
    settled_s: float
    seen: Counter[str] = field(repr=False)
    violation: Violation | None = None
    error: BaseException | None = None
    tail: str = field(default="", repr=False)

    @property
    def ok(self) -> bool:
        """Whether everything held."""
        return self.violation is None and self.error is None

    @property
    def broken(self) -> str:
        """The invariant that did not hold, or the kind of the error that was raised; empty if all is well."""
        if self.violation is not None:
            return self.violation.invariant
        return "" if self.error is None else type(self.error).__name__

    def __str__(self) -> str:
        return (
            f"seed {self.seed:<6} {'ok  ' if self.ok else 'FAIL'} {self.jobs:>4} jobs {self.events:>5} events "
            f"{self.faults:>4} faults, settled in {self.settled_s:>4.0f} s, {self.simulated_s:>5.0f} s in "
            f"{self.took_s:.2f} s, {self.digest[:12]}"
        )

    def report(self) -> str:
        """What went wrong, and the last that happened before."""
        return f"{self.tail}\nseed {self.seed}: {self.violation or repr(self.error)}"


HERDS = 0.15
"""Share of the seeds whose jobs are for the most part one herd."""

STANDBY = 0.5
"""Share of the seeds with tables on disk whose schedulers follow each other's partitions."""


def draw_plan(seed: int, duration_s: int) -> Plan:
    """What a seed does: the same for ever, for this version of the simulation."""
    rng = Random(f"plan {seed}")
    duration = duration_s * SECOND
    lease_ms = rng.choice([6_000, 10_000, 10_000])
    shape = SiteShape(
        partitions=rng.choice([1, 2, 4, 4, 6]),
        work_partitions=rng.choice([1, 2, 4]),
        schedulers=rng.choice([1, 2, 2, 3]),
        workers=rng.choice([1, 2, 2, 3]),
        on_disk=rng.random() < 0.7,
        worker=WorkerShape(slots=rng.choice([1, 2, 4, 8]), lease_ms=lease_ms, heartbeat_ms=lease_ms * 3 // 10),
        load=LoadShape(
            jobs=round(duration_s * rng.choice([0.03, 0.1, 0.1, 0.2])) + 20,
            span=duration,
            bursts=rng.randrange(1, 12),
            long_ms=lease_ms * 3 // 2,
        ),
        deployed_at=rng.randrange(duration),
        history_max_count=rng.choice([100_000, 100_000, 8]),
        max_batch=rng.choice([4_000, 4_000, 20, 3]),
        commit_inputs_ms=rng.choice([60_000, 5_000]),
        patience_ms=rng.choice([20_000, 6_000, 2_000]),
        transaction_timeout_ms=rng.choice([3_000, 3_000, 10_000, 30_000]),
        session_timeout_ms=rng.choice([6_000, 6_000, 3_000]),
        txn_sweep=rng.choice([1, 1, 10]) * SECOND,
        rebalance_delay=rng.choice([0, 3]) * SECOND,
    )
    menu = draw_menu(rng)
    leaves_one = rng.random() < LEAVES_ONE
    shape = replace(shape, standby=shape.on_disk and rng.random() < STANDBY)
    menu = replace(menu, moves=draw_moves(Random(f"moves {seed}")))
    if Random(f"herd {seed}").random() < HERDS:
        shape = replace(shape, load=replace(shape.load, alike=0.8, jobs=max(shape.load.jobs, 120)))
    if seed % 2 == 0:
        shape, menu = _with_schedules(seed, shape, menu)
    return Plan(seed=seed, duration=duration, menu=menu, shape=shape, leaves_one=leaves_one)


def _with_schedules(seed: int, shape: SiteShape, menu: Menu) -> tuple[SiteShape, Menu]:
    """The same site with schedules, by a day on which its clocks change, or none."""
    rng = Random(f"schedules {seed}")
    recurring = RecurringShape(schedules=rng.randrange(1, 5), span=shape.load.span)
    load = replace(shape.load, jobs=shape.load.jobs // 2)
    leaps = draw_leaps(rng)
    epoch_ms = rng.choice([EPOCH_MS, GAP_MS - _BEFORE_CHANGE_MS, FOLD_MS - _BEFORE_CHANGE_MS])
    has_projector = rng.random() < _PROJECTED
    shape = replace(shape, recurring=recurring, load=load, epoch_ms=epoch_ms, has_projector=has_projector)
    return shape, replace(menu, clock_leaps=leaps, projector_faults=draw_projector_faults(rng))


def run_plan(plan: Plan, *, audit: bool = True, verbose: bool = False) -> Outcome:
    """Runs one plan."""
    began = time.process_time()
    world = World(plan.seed, epoch_ms=plan.shape.epoch_ms)
    if verbose:
        world.verbose = print
    site = Site(world, plan.shape)
    chaos = Chaos(site, plan.menu)
    violation: Violation | None = None
    error: BaseException | None = None
    settled_s = 0.0
    with quiet(world), _uncollected():
        try:
            site.start()
            world.run(plan.duration)
            chaos.stop()
            well = site.survivors() if plan.leaves_one else site.nodes
            chaos.abandon(well)
            site.be_quiet()
            settled_s = _settle(site, plan.slots)
            _rest(site, well)
            check_end(site, audit=audit)
        except Violation as found:
            violation = found
        except Exception as raised:  # noqa: BLE001 - a fault of the product or of the simulation: both are told
            error = raised
        tail = world.tail()
        digest = world.digest()
        _let_go(site)
    return Outcome(
        seed=plan.seed,
        digest=digest,
        simulated_s=world.now / SECOND,
        took_s=time.process_time() - began,
        steps=world.steps,
        jobs=len(site.oracle.jobs),
        events=site.oracle.events,
        faults=chaos.injected,
        settled_s=settled_s,
        seen=world.seen,
        violation=violation,
        error=error,
        tail=tail,
    )


@contextmanager
def _uncollected() -> Iterator[None]:
    """Looking for cycles again and again takes a third of the time; once, at the end, does."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def run_seed(seed: int, duration_s: int, *, audit: bool = True, verbose: bool = False) -> Outcome:
    """Runs one seed."""
    return run_plan(draw_plan(seed, duration_s), audit=audit, verbose=verbose)


def _settle(site: Site, slots: int) -> float:
    """After the last fault: everything that is due ends. Returns the seconds that took. Raises Violation."""
    world, healed = site.world, site.world.now
    last_due = (site.last_due_ms - world.epoch_ms) * 1000
    world.run(max(world.now, last_due))
    deadline = world.now + SETTLE + _backlog(site) * PER_JOB // slots
    while True:
        if _is_settled(site):
            return (world.now - max(healed, last_due)) / SECOND
        if world.now >= deadline:
            open_jobs = [f"{job.job_id} {job.status}" for job in site.oracle.jobs.values() if not job.is_over]
            open_jobs += site.oracle.schedules.unsettled()
            raise Violation(
                "all ends",
                f"{(world.now - healed) // SECOND} s after the last fault: {open_jobs[:5]} ({len(open_jobs)})",
            )
        world.run(world.now + SECOND)


def _backlog(site: Site) -> int:
    """Jobs that have not ended, and submits that may become some."""
    jobs = site.oracle.jobs
    return sum(not job.is_over for job in jobs.values()) + sum(
        isinstance(each.command, SubmitJob) and each.command.spec.job_id not in jobs for each in site.load.sent
    )


def _is_settled(site: Site) -> bool:
    if any(not job.is_over for job in site.oracle.jobs.values()) or site.oracle.schedules.unsettled():
        return False
    if site.projector is not None and not site.projector.is_level():
        return False
    for number in range(site.topology.partitions):
        row = site.oracle.position(number)
        log = site.broker.log((site.topology.commands.name, number))
        followups = site.broker.log((site.topology.followups.name, number))
        wanted = log.end or followups.end
        if wanted and (row is None or row.commands_offset < log.end or row.followups_offset < _readable(followups)):
            return False
    return True


def _readable(log: PartitionLog) -> int:
    """The offset after the last record that a reader of committed ones is given."""
    return next((record.at + 1 for record in reversed(log.records) if record.state == COMMITTED), 0)


def _rest(site: Site, well: Collection[Node]) -> None:
    """Lets what still runs come to its end, and commits what was only read."""
    site.world.run(site.world.now + 70 * SECOND)
    ready = [
        number for node in site.schedulers if node in well and node.engine for number in node.engine.status().ready
    ]
    if sorted(ready) != list(range(site.topology.partitions)):
        raise Violation("all partitions owned", f"ready are {sorted(ready)}")


def _let_go(site: Site) -> None:
    """Ends all processes, so that nothing of them is left in this one."""
    for node in site.nodes:
        node.on_gone = None
        if node.process is not None:
            node.process.kill()
    if site.projector is not None:
        site.projector.clear()


def numbers(text: str) -> Iterator[int]:
    """The seeds of such a list as `1-300,777`."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _run_one(seed: int, duration_s: int, *, audit: bool, verbose: bool) -> Outcome:
    """In a process of its own: what went wrong comes back as text, for not every exception can travel."""
    outcome = run_seed(seed, duration_s, audit=audit, verbose=verbose)
    if outcome.ok:
        return outcome
    report = f"{outcome.report()}\n  menu: {draw_plan(seed, duration_s).menu}"
    return replace(outcome, violation=None, error=AssertionError(report))


def _warm_up() -> None:
    """A short run of everything there is, so that what is loaded at first use is not loaded in each process anew."""
    plan = draw_plan(2, 20)
    run_plan(replace(plan, shape=replace(plan.shape, has_projector=True)))
    gc.collect()
    gc.freeze()


@dataclass(slots=True)
class Tally:
    """What many seeds came to."""

    seen: Counter[str] = field(default_factory=Counter)
    failed: dict[int, str] = field(default_factory=dict)
    """By seed, what went wrong."""
    simulated_s: float = 0.0
    took_s: float = 0.0

    def add(self, outcome: Outcome) -> None:
        """Counts one seed and tells of it."""
        self.seen += outcome.seen
        self.simulated_s += outcome.simulated_s
        self.took_s += outcome.took_s
        print(outcome, flush=True)
        if not outcome.ok:
            self.failed[outcome.seed] = str(outcome.error)
            print(outcome.error, flush=True)

    def tell(self) -> None:
        """Prints the whole."""
        speed = self.simulated_s / max(self.took_s, 1e-9)
        print(f"{self.simulated_s:.0f} simulated seconds in {self.took_s:.0f} s of a core: {speed:.0f} times real time")
        for what, count in sorted(self.seen.items()):
            print(f"  {count:>7} {what}")
        if never := missing(self.seen):
            print(f"never seen, so that this run says nothing about them: {', '.join(never)}")
        if self.failed:
            print(
                f"failed: {','.join(map(str, self.failed))}; one again, event by event: --seeds {min(self.failed)} -v"
            )


def run_many(seeds: Iterable[int], duration_s: int, *, jobs: int, audit: bool, verbose: bool) -> Tally:
    """Runs seeds in so many processes and tells of each."""
    tally = Tally()
    run = partial(_run_one, duration_s=duration_s, audit=audit, verbose=verbose)
    _warm_up()
    # A process for each seed: what a run leaves is given back with it, where looking through it for cycles would take
    # another fifth of the time.
    with get_context("fork").Pool(jobs, initializer=gc.disable, maxtasksperchild=1) as pool:
        for outcome in pool.imap(run, seeds):
            tally.add(outcome)
    return tally


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="1-20", help="seeds, such as 1-300,777")
    parser.add_argument("--seconds", type=int, default=2_000, help="virtual seconds of faults")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--nice", type=int, default=0, help="how far to stand back behind other processes")
    parser.add_argument("--told", type=Path, help="a file for what failed and what was seen, as JSON")
    parser.add_argument("--no-audit", action="store_true", help="leave the product's own audit out")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every event")
    given = parser.parse_args()
    os.nice(given.nice)
    audit = not given.no_audit
    tally = run_many(numbers(given.seeds), given.seconds, jobs=given.jobs, audit=audit, verbose=given.verbose)
    tally.tell()
    if given.told is not None:
        given.told.write_text(json.dumps({"failed": list(tally.failed.values()), "seen": tally.seen}))
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
