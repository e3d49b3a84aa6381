"""What goes wrong, and how often: every seed draws a menu of its own, so that no fault hides behind another."""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from functools import partial
from random import Random

from tests.sim.kafka.settings import BrokerSettings
from tests.sim.node import Node
from tests.sim.process import Process
from tests.sim.projector_node import ProjectorNode
from tests.sim.scheduler_node import SchedulerNode
from tests.sim.site import Site
from tests.sim.worker_node import WorkerNode
from tests.sim.world import FOR_EVER, SECOND, Event

__all__ = ["Chaos", "Menu", "draw_leaps", "draw_menu", "draw_moves", "draw_projector_faults"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """Rates of faults. Per step: the chance at each numbered step. Per minute: how many, for each machine. 0: never."""

    kill_per_step: float = 0.0
    pause_per_step: float = 0.0
    cut_per_step: float = 0.0
    kills: float = 0.0
    pauses: float = 0.0
    cuts: float = 0.0
    stops: float = 0.0
    """Schedulers that are told to stop, and started again."""
    worker_kills: float = 0.0
    worker_pauses: float = 0.0
    worker_cuts: float = 0.0
    drains: float = 0.0
    evictions: float = 0.0
    outages: float = 0.0
    """The whole cluster is away."""
    moves: float = 0.0
    """The coordinator of transactions moves from broker to broker."""
    clock_steps: float = 0.0
    clock_leaps: float = 0.0
    """A clock goes ahead by a day or an hour, or back by an hour, and is set right after a while."""
    lost_disks: float = 0.0
    """Chance, per death of a scheduler, that its disk is gone."""
    compactions: float = 0.0
    late: float = 0.0
    """Chance, per request of a producer, that a copy of it stays in the network."""
    slow_markers: float = 0.0
    tails: float = 0.0
    projector_faults: float = 0.0
    """Kills, pauses and cuts of the projector together."""
    twice: float = 0.0
    """Chance, per heartbeat, that it is written twice."""

    def __str__(self) -> str:
        drawn = {each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name)}
        return ", ".join(f"{name} {rate:.3g}" for name, rate in drawn.items()) or "nothing"


_RANGES: dict[str, tuple[float, float]] = {
    "kill_per_step": (0.0002, 0.01),
    "pause_per_step": (0.0002, 0.01),
    "cut_per_step": (0.0002, 0.005),
    "kills": (0.1, 3),
    "pauses": (0.1, 3),
    "cuts": (0.1, 3),
    "stops": (0.1, 3),
    "worker_kills": (0.1, 3),
    "worker_pauses": (0.1, 3),
    "worker_cuts": (0.1, 3),
    "drains": (0.1, 2),
    "evictions": (0.1, 2),
    "outages": (0.05, 0.5),
    "clock_steps": (0.1, 3),
    "lost_disks": (0.05, 0.8),
    "compactions": (0.5, 6),
    "late": (0.001, 0.05),
    "slow_markers": (0.001, 0.05),
    "tails": (0.0005, 0.02),
    "twice": (0.01, 0.5),
}


def draw_menu(rng: Random, *, appetite: float = 0.4) -> Menu:
    """A menu of the seed's own: which faults there are, and how often, over two orders of magnitude."""
    chosen: dict[str, float] = {}
    for name, (low, high) in _RANGES.items():
        rate = low * math.pow(high / low, rng.random())
        if rng.random() < appetite:
            chosen[name] = rate
    return Menu(**chosen)


def draw_projector_faults(rng: Random) -> float:
    """How often the projector is hit, in a menu of the seed's own."""
    return math.exp(rng.uniform(math.log(0.05), math.log(1))) if rng.random() < 0.7 else 0.0


def draw_leaps(rng: Random) -> float:
    """How often clocks are far off, in a menu of the seed's own."""
    return math.exp(rng.uniform(math.log(0.02), math.log(0.3))) if rng.random() < 0.4 else 0.0


def draw_moves(rng: Random) -> float:
    """How often the coordinator of transactions moves, in a menu of the seed's own."""
    return math.exp(rng.uniform(math.log(0.1), math.log(3))) if rng.random() < 0.4 else 0.0


_OFF_MS = 10_000
_IMPATIENT = 1 / 3
"""Who tells a worker to stop so often tells it again soon."""
_LEAPS_MS = (86_400_000, 3_600_000, -3_600_000)


class Chaos:
    """Lets the faults of a menu happen on a site, until `stop`."""

    def __init__(self, site: Site, menu: Menu) -> None:
        self.menu = menu
        self.injected = 0
        self._site = site
        self._world = site.world
        self._rng = site.world.rng
        self._events: list[Event] = []
        self._is_on = True
        settings: BrokerSettings = site.settings
        settings.slow_marker_chance = menu.slow_markers
        settings.tail_chance = menu.tails
        for node in site.nodes:
            node.on_gone = partial(self._again, node)
            self._regular(menu.clock_steps, partial(self._step_clock, node))
            self._regular(menu.clock_leaps, partial(self._leap, node))
        for scheduler in site.schedulers:
            scheduler.late = self._late
            scheduler.on_born.append(self._watch)
            self._regular(menu.kills, partial(self._kill, scheduler))
            self._regular(menu.pauses, partial(self._pause, scheduler))
            self._regular(menu.cuts, partial(self._cut, scheduler))
            self._regular(menu.stops, scheduler.stop)
        for worker in site.workers:
            worker.duplicates = menu.twice
            self._regular(menu.worker_kills, partial(self._kill, worker))
            self._regular(menu.worker_pauses, partial(self._pause, worker))
            self._regular(menu.worker_cuts, partial(self._cut, worker))
            self._regular(menu.drains, partial(self._drain, worker))
        if site.projector is not None:
            for fault in (self._kill, self._pause, self._cut):
                self._regular(menu.projector_faults / 3, partial(fault, site.projector))
            site.projector.on_born.append(partial(self._watch_view, site.projector))
        self._regular(menu.evictions, self._evict)
        self._regular(menu.outages, self._outage)
        self._regular(menu.moves, self._move)
        self._regular(menu.compactions, self._compact)

    def stop(self) -> None:
        """Nothing goes wrong any more; what is paused or cut off comes back within a minute."""
        self._is_on = False
        for event in self._events:
            event.cancel()
        self._site.settings.slow_marker_chance = self._site.settings.tail_chance = 0.0
        for worker in self._site.workers:
            worker.duplicates = 0.0
        for node in self._site.nodes:
            self._set_right(node)

    def abandon(self, survivors: Collection[Node]) -> None:
        """The other machines stay as they are found or worse: dead, stopped or cut off, for ever."""
        for node in self._site.nodes:
            if node in survivors:
                continue
            node.on_gone = None
            how = self._rng.choice(("killed", "paused", "cut off"))
            self._world.saw(f"{node.kind} {how} for ever")
            if node.process is None:
                continue
            if how == "killed" or node.process.is_silent:
                # What is away for a while only would come back.
                node.process.kill()
            elif how == "paused":
                node.process.pause(FOR_EVER)
            else:
                node.process.cut(FOR_EVER)

    # When.

    def _regular(self, per_minute: float, fault: Callable[[], None]) -> None:
        """Again and again, at random intervals."""
        if per_minute <= 0:
            return

        def strike() -> None:
            self.injected += 1
            fault()
            plan()

        def plan() -> None:
            if self._is_on:
                delay = round(self._rng.expovariate(per_minute) * 60 * SECOND)
                self._events.append(self._world.after(delay + 1, strike))

        plan()

    def _watch(self, process: Process) -> None:
        """At the numbered steps of a process: it dies, or is paused, right there."""
        until_kill = self._countdown(self.menu.kill_per_step)
        until_pause = self._countdown(self.menu.pause_per_step)
        until_cut = self._countdown(self.menu.cut_per_step)

        def at(name: str) -> None:
            nonlocal until_kill, until_pause, until_cut
            if not self._is_on:
                return
            until_kill -= 1
            until_pause -= 1
            until_cut -= 1
            if until_cut == 0:
                until_cut = self._countdown(self.menu.cut_per_step)
                self.injected += 1
                self._world.saw(f"cut off at {name}")
                # Before the request has left, on its way, or while the answer is on its way.
                duration = self._duration()
                self._world.after(self._rng.randrange(5_000), lambda: process.cut(duration))
            if until_kill == 0:
                self.injected += 1
                self._world.note("kill", process.name, "at", name)
                self._world.saw(f"killed at {name}")
                process.die()
            if until_pause == 0:
                until_pause = self._countdown(self.menu.pause_per_step)
                self.injected += 1
                self._world.saw(f"paused at {name}")
                process.pause(self._duration())

        process.on_point = at

    def _watch_view(self, projector: ProjectorNode, process: Process) -> None:
        """Now and then it dies between two statements of one transaction of its database."""

        def at(name: str) -> None:
            if self._is_on and name == "statement" and self._rng.random() < self.menu.projector_faults / 500:
                self.injected += 1
                self._world.saw("projector killed in the middle of a transaction")
                process.die()

        process.on_point = at

    def _countdown(self, chance: float) -> int:
        if chance <= 0:
            return -1
        return 1 + int(math.log(1.0 - self._rng.random()) / math.log1p(-chance))

    def _duration(self) -> int:
        """One to sixty seconds, short ones more often."""
        return round(math.pow(60, self._rng.random()) * SECOND)

    def _late(self, request: str) -> int | None:
        if self._is_on and self._rng.random() < self.menu.late:
            self.injected += 1
            return round(0.05 * SECOND * math.pow(400, self._rng.random()))
        return None

    # What.

    def _kill(self, node: Node) -> None:
        if node.process is not None and node.process.alive:
            self._world.note("kill", node.process.name)
            self._world.saw(f"killed {node.kind}")
            node.process.kill()

    def _drain(self, worker: WorkerNode) -> None:
        worker.stop()
        if self._rng.random() < _IMPATIENT:
            self._world.after(self._rng.randrange(2 * SECOND), worker.hurry)

    def _pause(self, node: Node) -> None:
        if node.process is not None:
            self._world.saw(f"paused {node.kind}")
            node.process.pause(self._duration())

    def _cut(self, node: Node) -> None:
        if node.process is not None:
            self._world.saw(f"cut off {node.kind}")
            node.process.cut(self._duration())

    def _step_clock(self, node: Node) -> None:
        # A clock is off by ten seconds at most: set further, it is set right.
        wanted = self._rng.randrange(-_OFF_MS, _OFF_MS)
        node.step_clock(wanted - node.clock_step_ms)
        self._site.oracle.clock_ahead_ms = max(self._site.oracle.clock_ahead_ms, wanted)

    def _leap(self, node: Node) -> None:
        by_ms = self._rng.choice(_LEAPS_MS)
        self._world.saw(f"clock {'ahead' if by_ms > 0 else 'behind'} by {abs(by_ms) // 3_600_000} h")
        node.step_clock(by_ms - node.clock_step_ms)
        self._site.oracle.clock_ahead_ms = max(self._site.oracle.clock_ahead_ms, by_ms)
        self._world.after(self._duration() * 2, lambda: self._set_right(node))

    def _set_right(self, node: Node) -> None:
        if abs(node.clock_step_ms) > _OFF_MS:
            node.step_clock(-node.clock_step_ms)

    def _evict(self) -> None:
        topology = self._site.topology
        group = self._rng.choice([topology.group("scheduler"), topology.group("worker")])
        self._world.saw("members evicted")
        self._site.broker.groups.get(group).evict()

    def _outage(self) -> None:
        self._world.saw("cluster away")
        duration = round(0.2 * SECOND * math.pow(100, self._rng.random()))
        for node in self._site.nodes:
            if node.process is not None:
                node.process.cut(duration)

    def _move(self) -> None:
        self._world.saw("coordinator moved")
        self._site.broker.transactions.move(round(0.1 * SECOND * math.pow(100, self._rng.random())))

    def _compact(self) -> None:
        for log in self._site.broker.logs(self._site.topology.scheduler_changelog.name):
            before = self._rng.randrange(log.end + 1)
            # A tombstone stays for longer than any local table is away.
            gone = log.compact(before, keep_tombstones_since=self._world.now - 3_600 * SECOND)
            if gone:
                self._world.saw("changelog compacted")

    def _again(self, node: Node) -> None:
        """After a death: the machine starts the process again, sooner or later."""
        if isinstance(node, SchedulerNode) and self._rng.random() < self.menu.lost_disks:
            self._world.saw("disk lost")
            node.disk.clear()
        delay = round(0.05 * SECOND * math.pow(200, self._rng.random())) if self._is_on else SECOND
        # A machine that was given up meanwhile is not started again.
        self._world.after(delay, lambda: node.start() if node.on_gone is not None else None)
