"""One seeded fault of the product, and on which site it shows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.sim.faults import Menu
from tests.sim.run import Plan, draw_plan

__all__ = ["SECONDS", "Mutant", "Patch"]

Patch = Callable[[Any, str, Any], None]

SECONDS = 200
"""Of faults, for each."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault.

    `caught_by`: the invariant that breaks. It shows within so many `tries` of seeds from 1 on, under the faults of
    `menu` (None: those that the seed draws) and on a site that differs from the seed's in `shape`. One seed would not
    do: every change of the product sends each seed another way.
    """

    name: str
    apply: Callable[[Patch], None]
    caught_by: str
    menu: Menu | None = None
    shape: Mapping[str, Any] = field(default_factory=dict)
    tries: int = 30

    def plan(self, seed: int) -> Plan:
        """What may show the fault."""
        drawn = draw_plan(seed, SECONDS)
        shape = replace(drawn.shape, **self.shape)
        return replace(drawn, menu=self.menu or drawn.menu, shape=shape, leaves_one=False)
