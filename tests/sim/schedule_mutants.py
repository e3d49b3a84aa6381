"""Seeded faults of schedules, patched in where their rules meet the rest."""

from dataclasses import replace
from typing import Any

from mainspring.processors.core.schedule import decide_due, decide_instances, draft, fire, keeper
from mainspring.processors.core.timing import Occurrence
from mainspring.schemas import IntervalRule, Overlap, ScheduleStatus
from tests.sim.faults import Menu
from tests.sim.kafka.producer import SimOutput
from tests.sim.mutant import SECONDS, Mutant, Patch
from tests.sim.recurring import RecurringShape
from tests.sim.world import SECOND

__all__ = ["SCHEDULE_MUTANTS"]


def _fire_outside(patch: Patch) -> None:
    original = SimOutput._append

    def append(self: SimOutput, pid: int, epoch: int, place: Any, batch: Any) -> int:
        if place[0].endswith("followups"):
            return self._broker.log(place).append(batch)
        return original(self, pid, epoch, place, batch)

    patch(SimOutput, "_append", append)


def _accumulated(patch: Patch) -> None:
    original = draft.Definition.next_after

    def next_after(self: draft.Definition, after_ms: int) -> Occurrence | None:
        found = original(self, after_ms)
        rules = self.spec.timing.rules
        if found is None or len(rules) > 1 or not isinstance(rules[0], IntervalRule):
            return found
        nominal_ms = after_ms + rules[0].every_ms
        return Occurrence(nominal_ms=nominal_ms, fire_at_ms=nominal_ms)

    patch(draft.Definition, "next_after", next_after)


def _fires_while_paused(patch: Patch) -> None:
    decide, due_at_ms = decide_due.decide_due, decide_due.due_at_ms

    def paused_or_not(given: draft.Draft, definition: draft.Definition, room: int) -> None:
        state = given.present
        if state.status is not ScheduleStatus.PAUSED:
            decide(given, definition, room)
            return
        given.state = replace(state, status=ScheduleStatus.ACTIVE)
        decide(given, definition, room)
        given.state = replace(given.present, status=ScheduleStatus.PAUSED)

    def due(state: Any, overlap: Overlap, fire_at_ms: int | None) -> int | None:
        return due_at_ms(replace(state, status=ScheduleStatus.ACTIVE), overlap, fire_at_ms)

    patch(keeper, "decide_due", paused_or_not)
    patch(keeper, "due_at_ms", due)


def _entry_left_out(patch: Patch) -> None:
    original = fire.skip

    def skip(given: draft.Draft, definition: draft.Definition, outcome: str, *rest: Any) -> None:
        if outcome != "COALESCED":
            original(given, definition, outcome, *rest)  # type: ignore[arg-type]  # it is the outcome that was given

    patch(decide_due, "skip", skip)


def _death_unheard(patch: Patch) -> None:
    original = decide_instances.decide_finished

    def decide_finished(given: draft.Draft, definition: Any, finished: Any) -> None:
        if finished.outcome == "COMPLETED":
            original(given, definition, finished)

    patch(keeper, "decide_finished", decide_finished)


def _nobody_waits(patch: Patch) -> None:
    patch(decide_due, "_WAITING", frozenset())


def _never_rewound(patch: Patch) -> None:
    patch(keeper, "decide_rewind", lambda _: False)
    patch(keeper, "rewind_to_ms", lambda *_: None)


def _fired_ahead_forgotten(patch: Patch) -> None:
    patch(draft, "open_times", lambda timing, _: timing)


def _filled_again(patch: Patch) -> None:
    original = decide_due._not_fired

    def not_fired(state: Any, *rest: Any) -> list[Occurrence]:
        return original(replace(state, fired_runs=()), *rest)

    patch(decide_due, "_not_fired", not_fired)


def _window_ignored(patch: Patch) -> None:
    original = decide_due._catch_up

    def catch_up(given: draft.Draft, definition: draft.Definition, room: int) -> None:
        spec = definition.spec
        definition.spec = replace(spec, catch_up_window_ms=86_400_000)
        original(given, definition, room)
        definition.spec = spec

    patch(decide_due, "_catch_up", catch_up)


_PLANS = {"recurring": RecurringShape(schedules=6, span=SECONDS * SECOND, pauses=3, backfills=4, triggers=6)}
_CALM = Menu(stops=0.5)
_DEATHS = Menu(kill_per_step=0.03)
_LEAPS = Menu(clock_leaps=3)
_AWAY = {**_PLANS, "schedulers": 1}

SCHEDULE_MUTANTS: tuple[Mutant, ...] = (
    Mutant("a fire is written outside of its transaction", _fire_outside, "schedule freed once", _DEATHS, _PLANS),
    Mutant("the next time is accumulated and not computed", _accumulated, "one outcome for each time", _CALM, _PLANS),
    Mutant("a paused schedule fires", _fires_while_paused, "paused fires nothing", _CALM, _PLANS),
    Mutant("an entry of the ledger is left out", _entry_left_out, "one outcome for each time", Menu(kills=3), _AWAY),
    Mutant("the end of an instance that failed is not heard", _death_unheard, "all ends", _CALM, _PLANS),
    Mutant("instances overlap whatever the policy", _nobody_waits, "overlap policy kept", _CALM, _PLANS),
    Mutant("what was long missed is fired", _window_ignored, "catch-up policy kept", Menu(pauses=3), _AWAY),
    Mutant("a clock that was ahead silences its schedules", _never_rewound, "no schedule silenced", _LEAPS, _AWAY),
    Mutant(
        "what a clock that was ahead has fired is forgotten",
        _fired_ahead_forgotten,
        "one outcome for each time",
        _LEAPS,
        _AWAY,
    ),
    Mutant("a backfill fires what was fired", _filled_again, "one fire, one job", _CALM, _PLANS),
)
