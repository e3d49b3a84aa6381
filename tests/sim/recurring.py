"""What users do with recurring schedules: they make, change, pause, trigger, backfill and delete them, by the seed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from mainspring.schemas import (
    BackfillSchedule,
    CatchUp,
    CreateSchedule,
    CronRule,
    DeleteSchedule,
    FoldRule,
    GapRule,
    IntervalRule,
    JobSpec,
    Overlap,
    PauseSchedule,
    Priority,
    ResumeSchedule,
    ScheduleSpec,
    ScheduleTiming,
    TriggerSchedule,
    UpdateSchedule,
)
from tests.sim.jobs import KNOWN, UNKNOWN, Behaviour
from tests.sim.load import Load
from tests.sim.planned import EXPRESSIONS, TIMES_OF_DAY
from tests.sim.world import SECOND, World

__all__ = ["FOLD_MS", "GAP_MS", "QUIET", "Recurring", "RecurringShape"]

GAP_MS: Final = 1_901_149_200_000
FOLD_MS: Final = 1_919_293_200_000
"""When clocks change in Berlin, in the spring and in the autumn of 2030."""

QUIET: Final = 180 * SECOND
"""Schedules go on for so long after the last fault, and the later part of it is as it should be without any."""

_CLOSING_MS: Final = 30_000
"""Between the last update of a schedule and the end that it sets."""


_EXPRESSIONS: Final = (*EXPRESSIONS, *TIMES_OF_DAY, *TIMES_OF_DAY)
"""What changes of the clock are about is there more often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurringShape:
    """How many schedules, and what is done to each. Chances are per schedule; the others are counts at most."""

    schedules: int = 4
    span: int = 300 * SECOND
    pauses: int = 2
    triggers: int = 3
    backfills: int = 2
    updates: int = 2
    delete: float = 0.25
    again: float = 0.1
    """The same command twice, as a client does that did not hear the answer."""
    fast: float = 0.3
    """Schedules of a few seconds, which end soon."""


class Recurring:
    """The users of schedules. What they send goes the way of every other command."""

    def __init__(self, world: World, load: Load, shape: RecurringShape) -> None:
        self._world = world
        self._load = load
        self._shape = shape
        self._specs: dict[str, ScheduleSpec] = {}

    @property
    def last_due_ms(self) -> int:
        """When the last schedule has come to its end."""
        return self._world.epoch_ms + (self._shape.span + QUIET) // 1000 + _CLOSING_MS

    def start(self) -> None:
        """Plans everything."""
        rng, shape = self._world.rng, self._shape
        for number in range(shape.schedules):
            schedule_id = f"plan-{number}"
            at = rng.randrange(max(1, shape.span * 2 // 3))
            self._world.at(at, lambda each=schedule_id: self._create(each))  # type: ignore[misc]
            self._plan_life(schedule_id, at, rng)
            self._world.at(shape.span + QUIET, lambda each=schedule_id: self._close(each))  # type: ignore[misc]

    def _plan_life(self, schedule_id: str, created: int, rng: Random) -> None:
        shape = self._shape
        steps: list[tuple[int, Callable[[str], None]]] = [
            (shape.triggers, self._trigger),
            (shape.backfills, self._backfill),
            (shape.updates, self._update),
        ]
        for most, act in steps:
            for _ in range(rng.randrange(most + 1)):
                self._later(created, schedule_id, act)
        for _ in range(rng.randrange(shape.pauses + 1)):
            paused = self._later(created, schedule_id, self._pause)
            self._world.at(paused + rng.randrange(1, 200 * SECOND), lambda: self._resume(schedule_id))
        if rng.random() < shape.delete:
            deleted = self._later(created, schedule_id, self._delete)
            if rng.random() < 0.7:
                self._world.at(deleted + rng.randrange(60 * SECOND), lambda: self._create(schedule_id))

    def _later(self, created: int, schedule_id: str, act: Callable[[str], None]) -> int:
        at = self._world.rng.randrange(created, max(created + 1, self._shape.span))
        self._world.at(at, lambda: act(schedule_id))
        return at

    # Definitions.

    def _definition(self, schedule_id: str) -> ScheduleSpec:
        rng = self._world.rng
        is_fast = rng.random() < self._shape.fast
        every_ms = rng.randrange(2, 9) * 1_000 if is_fast else rng.randrange(12, 121) * 1_000
        overlap = rng.choice(list(Overlap))
        return ScheduleSpec(
            schedule_id=schedule_id,
            timing=self._timing(every_ms, is_fast=is_fast),
            job=self._job(every_ms, overlap),
            overlap=overlap,
            catch_up=rng.choice(list(CatchUp)),
            catch_up_window_ms=rng.choice([0, 30_000, 300_000]),
            buffer_max=rng.choice([1, 3, 10]),
            max_runs=rng.randrange(1, 15) if rng.random() < 0.15 else None,
            pause_on_failure=rng.random() < 0.2,
        )

    def _timing(self, every_ms: int, *, is_fast: bool) -> ScheduleTiming:
        rng, now_ms = self._world.rng, self._load.now_ms()
        anchor_ms = rng.choice([None, None, now_ms - now_ms % 60_000, now_ms + 100_000])
        interval = IntervalRule(every_ms=every_ms, anchor_ms=anchor_ms, phase_ms=rng.choice([0, every_ms // 3]))
        cron = CronRule(expression=rng.choice(_EXPRESSIONS))
        whole = replace(interval, phase_ms=0, anchor_ms=now_ms - now_ms % 60_000)
        rules: tuple[CronRule | IntervalRule, ...] = (interval,)
        exclude: tuple[CronRule | IntervalRule, ...] = ()
        kind = rng.random()
        if kind < 0.4 and not is_fast:
            rules = (cron,)
        elif kind < 0.55:
            rules = (whole, cron)
        elif kind < 0.7:
            rules, exclude = (whole,), (replace(whole, every_ms=every_ms * rng.choice([2, 3])),)
        return ScheduleTiming(
            rules=rules,
            exclude=exclude,
            timezone=rng.choice(["UTC", "Europe/Berlin", "Europe/Berlin"]),
            start_ms=now_ms + rng.randrange(60_000) if rng.random() < 0.1 else None,
            end_ms=now_ms + 100_000 if is_fast else None,
            jitter_ms=rng.choice([0, 0, 0, 1_500, every_ms // 2]),
            gap=rng.choice(list(GapRule)),
            fold=rng.choice(list(FoldRule)),
        )

    def _job(self, every_ms: int, overlap: Overlap) -> JobSpec:
        rng = self._world.rng
        ms = round(10 ** rng.uniform(1, 3.3))
        if rng.random() < 0.25 and overlap is not Overlap.ALLOW_ALL:
            # Where it is short, longer than it takes until the next is due.
            ms = min(every_ms * 3 // 2, 20_000)
        fails = rng.choice([0, 0, 0, 0, 0, 1, -1])
        return JobSpec(
            job_id="",
            name=UNKNOWN if rng.random() < 0.02 else KNOWN,
            queue=rng.choice(self._load.topology.queues),
            priority=rng.choice(list(Priority)),
            payload=Behaviour(ms=ms, fails=fails, deaf=rng.random() < 0.1).payload(),
            timeout_ms=rng.randrange(200, 5_000) if rng.random() < 0.1 else None,
            max_retries=rng.randrange(2),
            retry_base_delay_ms=rng.randrange(100, 2_000),
            retry_max_delay_ms=5_000,
        )

    # What they ask for.

    def _create(self, schedule_id: str) -> None:
        spec = self._specs[schedule_id] = self._definition(schedule_id)
        self._send(schedule_id, CreateSchedule(spec=spec, **self._head()))

    def _update(self, schedule_id: str) -> None:
        """Another timing, other policies, or only a note."""
        rng = self._world.rng
        old = self._specs.get(schedule_id)
        if old is None:
            return
        new = self._definition(schedule_id)
        kind = rng.random()
        if kind < 0.3:
            new = replace(old, note=f"at {self._load.now_ms()}")
        elif kind < 0.6:
            new = replace(new, timing=old.timing)
        self._specs[schedule_id] = new
        expected = rng.choice([None, None, None, 1])
        self._send(schedule_id, UpdateSchedule(spec=new, expected_version=expected, **self._head()))

    def _pause(self, schedule_id: str) -> None:
        self._send(schedule_id, PauseSchedule(schedule_id=schedule_id, note="for now", **self._head()))

    def _resume(self, schedule_id: str) -> None:
        self._send(schedule_id, ResumeSchedule(schedule_id=schedule_id, **self._head()))

    def _trigger(self, schedule_id: str) -> None:
        self._send(schedule_id, TriggerSchedule(schedule_id=schedule_id, **self._head()))

    def _backfill(self, schedule_id: str) -> None:
        rng, now_ms = self._world.rng, self._load.now_ms()
        from_ms = now_ms - rng.randrange(1, 200_000)
        until_ms = now_ms - rng.randrange(-1_000, 20_000)
        command = BackfillSchedule(
            schedule_id=schedule_id, from_ms=from_ms, until_ms=max(from_ms, until_ms), **self._head()
        )
        self._send(schedule_id, command)

    def _delete(self, schedule_id: str) -> None:
        self._send(schedule_id, DeleteSchedule(schedule_id=schedule_id, **self._head()))

    def _close(self, schedule_id: str) -> None:
        """The last command about each: it goes, or it is given an end."""
        spec = self._specs.get(schedule_id)
        if spec is None or self._world.rng.random() < 0.4:
            self._delete(schedule_id)
            return
        timing = ScheduleTiming(
            rules=(IntervalRule(every_ms=5_000),), end_ms=self._load.now_ms() + _CLOSING_MS, jitter_ms=1_000
        )
        # What still waits then is over soon.
        job = replace(spec.job, payload=Behaviour(ms=200).payload())
        self._send(schedule_id, UpdateSchedule(spec=replace(spec, timing=timing, job=job), **self._head()))

    def _head(self) -> dict[str, Any]:
        return {
            "command_id": self._load.command_id(),
            "actor": "user",
            "requested_at_ms": self._load.now_ms(),
        }

    def _send(self, schedule_id: str, command: Any) -> None:
        self._load.send(command, schedule_id, again=self._world.rng.random() < self._shape.again)
