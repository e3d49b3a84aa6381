"""How a simulated broker is set up. All times in microseconds of virtual time."""

from dataclasses import dataclass, field

from tests.sim.world import SECOND, World

__all__ = ["BrokerSettings"]


@dataclass(slots=True, kw_only=True)
class BrokerSettings:
    """What a broker's configuration and the speed of its disks and network decide."""

    world: World = field(repr=False)
    txn_sweep: int = SECOND
    """How often the broker looks for transactions that have timed out."""
    rebalance_delay: int = 0
    """How long the first member of an empty group waits for others."""
    latency: tuple[int, int] = (200, 1_500)
    """One way, per packet."""
    tail_chance: float = 0.0
    """How often a packet takes far longer..."""
    tail: tuple[int, int] = (5_000, 400_000)
    """...and then how long."""
    markers: tuple[int, int] = (100, 3_000)
    """From the answer to a commit until a partition has its marker."""
    slow_marker_chance: float = 0.0
    slow_markers: tuple[int, int] = (50_000, 2 * SECOND)

    def delay(self) -> int:
        """How long the next packet takes."""
        rng = self.world.rng
        low, high = self.tail if self.tail_chance and rng.random() < self.tail_chance else self.latency
        return low + int(rng.random() * (high - low))

    def marker_delay(self) -> int:
        """How long the next marker takes."""
        rng = self.world.rng
        if self.slow_marker_chance and rng.random() < self.slow_marker_chance:
            return rng.randrange(*self.slow_markers)
        return rng.randrange(*self.markers)
