"""One partition that this process owns."""

from dataclasses import dataclass, field

from mainspring.processors.core import Now
from mainspring.processors.engine.ports import Pending, Place
from mainspring.processors.engine.program import PartitionProgram
from mainspring.processors.engine.tables import Table
from mainspring.processors.engine.takeover import Takeover

__all__ = ["Barrier", "Partition"]


@dataclass(slots=True, kw_only=True)
class Barrier:
    """The end of the barrier topic, asked for at `asked_at`; `end` once the answer is there."""

    asked_at: Now
    answer: Pending[dict[Place, int]]
    end: int | None = None


@dataclass(slots=True, kw_only=True)
class Partition:
    """A partition is either being taken over (`takeover`) or ready (`program`)."""

    number: int
    places: list[Place]
    takeover: Takeover | None = None
    program: PartitionProgram | None = None
    table: Table | None = None
    position: dict[Place, int] = field(default_factory=dict)
    """By input place, the next offset to process."""
    committed: dict[Place, int] = field(default_factory=dict)
    """By input place, what the last transaction committed."""
    uncommitted_since_ms: int | None = None
    """Since when inputs have been processed that needed no transaction (monotonic)."""
    reached: dict[Place, int] = field(default_factory=dict)
    """By input place, the end that was met when reading it last."""
    barrier: Barrier | None = None
    ticked_at_ms: int = 0
    """When its program was last told the time (monotonic)."""
    assigned_at_ms: int = 0
    """When the group gave it to this process (monotonic)."""

    def has_reached(self, place: Place, end: int) -> bool:
        """Whether everything before `end` has been processed, records that are never delivered included."""
        return max(self.position.get(place, 0), self.reached.get(place, 0)) >= end
