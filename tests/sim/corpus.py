"""Runs that once showed a fault of the product, each in a file of `tests/sim_corpus` with what it taught.

A seed goes another way whenever the product changes, so a file may also say which faults there were, on what site.
"""

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from tests.sim.faults import Menu
from tests.sim.load import LoadShape
from tests.sim.recurring import RecurringShape
from tests.sim.run import Plan, draw_plan
from tests.sim.worker_node import WorkerShape
from tests.sim.world import SECOND

__all__ = ["Lesson", "lessons"]

_FOLDER = Path(__file__).parents[1] / "sim_corpus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One run: the invariant that broke, what that taught, and how to run it again."""

    name: str
    found: str
    taught: str
    plan: Plan

    @staticmethod
    def read(path: Path) -> "Lesson":
        """From a file. Raises TypeError for a name that nothing has."""
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        seconds = given["seconds"]
        plan = draw_plan(given["seed"], seconds)
        shape = replace(plan.shape, **given.get("shape", {}))
        if "worker" in given:
            shape = replace(shape, worker=WorkerShape(**given["worker"]))
        if "menu" in given or "load" in given:
            # Told in full: what the seed would add is no part of it.
            shape = replace(shape, recurring=None)
        if "recurring" in given:
            shape = replace(shape, recurring=RecurringShape(span=seconds * SECOND, **given["recurring"]))
        if "load" in given:
            shape = replace(shape, load=LoadShape(span=seconds * SECOND, **given["load"]))
        menu = Menu(**given["menu"]) if "menu" in given else plan.menu
        return Lesson(
            name=path.stem, found=given["found"], taught=given["taught"], plan=replace(plan, menu=menu, shape=shape)
        )


def lessons() -> list[Lesson]:
    """All of them."""
    return [Lesson.read(path) for path in sorted(_FOLDER.glob("*.toml"))]
