"""Configuration of the core: frozen, complete, and told rather than read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from mainspring.processors.core.strategies import PriorityStrategy, SchedulingStrategy

__all__ = ["QueueRules", "Rules"]


def _no_weights() -> Mapping[str, float]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRules:
    """One queue: its order, and the weights of the tenants that share it (1 where none is given)."""

    strategy: SchedulingStrategy = field(default_factory=PriorityStrategy)
    tenant_weights: Mapping[str, float] = field(default_factory=_no_weights)

    def __post_init__(self) -> None:
        """Raises ValueError for a weight that is not a finite number above 0."""
        for tenant, weight in self.tenant_weights.items():
            if not 0 < weight < float("inf"):
                raise ValueError(f"weight of tenant {tenant!r} must be a finite number above 0, not {weight!r}")


def _default_queue() -> Mapping[str, QueueRules]:
    return {"default": QueueRules()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What every partition of an installation agrees on. Times are in milliseconds."""

    queues: Mapping[str, QueueRules] = field(default_factory=_default_queue)
    """The declared queues; a submit to another is refused."""

    partitions: int = 12
    """Partitions that share `history_max_count`."""

    lease_ms: int = 10_000
    """How long an attempt may go without a heartbeat before it counts as lost."""

    history_max_count: int = 100_000
    """Finished jobs kept in the tables, over all partitions; the log keeps them all."""

    history_max_age_ms: int = 7 * 86_400_000
    """How long a finished job is kept in the tables."""

    unknown_name_after_ms: int = 600_000
    """How long workers may not know a job's name before it is cancelled: longer than a rolling deploy."""

    park_min_ms: int = 1_000
    """First pause of a job whose name a worker did not know; it doubles..."""

    park_max_ms: int = 5_000
    """...up to this, which is how late a worker that knows the name may get the job."""

    renew_min_ms: int = 1_000
    """An offer without an answer is renewed after this; the pause doubles..."""

    renew_max_ms: int = 60_000
    """...up to this."""

    window_start: int = 8
    """Offers and runs in flight that a queue of a partition begins with."""

    window_max: int = 4_096
    """Bound of that window, however free the workers are."""

    window_cut_ms: int = 300
    """Declines and unanswered offers halve the window at most once in this time: a burst is one piece of news."""

    grow_within_ms: int = 400
    """A claim that came later than this after its offer no longer grows a window of more than `window_calm`: offers lie
    in front of the workers, and with more of them they would be renewed before they are answered."""

    window_calm: int = 256
    """A window up to this size grows however late its claims are, and is not cut for them: where every round trip is
    slow, too."""

    probe_ms: int = 1_000
    """With a full window, one job is offered regardless after this long without an offer: slots may have come back."""

    def __post_init__(self) -> None:
        """Raises ValueError for a number that makes no sense."""
        for name in ("partitions", "lease_ms", "park_min_ms", "renew_min_ms", "window_start", "window_max", "probe_ms"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)!r}")
        for name in (
            "history_max_count",
            "history_max_age_ms",
            "unknown_name_after_ms",
            "window_cut_ms",
            "grow_within_ms",
            "window_calm",
        ):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, and is {getattr(self, name)!r}")

    @property
    def history_share(self) -> int:
        """Finished jobs that one partition keeps; rounded up, so that a small bound still keeps some."""
        return -(-self.history_max_count // self.partitions)
