"""What a projector says about itself."""

from dataclasses import dataclass

__all__ = ["PartitionStatus", "ProjectorStatus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """One partition of `events`: the next offset to fold, the log's end, whether all committed events are folded."""

    partition: int
    next_offset: int
    end_offset: int
    last_event_at_ms: int
    at_end: bool

    @property
    def lag(self) -> int:
        """Offsets still to fold; control records count until they are passed."""
        return max(0, self.end_offset - self.next_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectorStatus:
    """A projector at one moment. `error` tells what it is waiting for, None while all is well."""

    running: bool
    events: int
    unreadable: int
    batches: int
    loop_age_s: float
    """Since when its loop has not come round, in seconds; waiting for a database or a broker is coming round."""
    partitions: tuple[PartitionStatus, ...]
    error: str | None = None

    @property
    def lag(self) -> int:
        """Offsets still to fold over all partitions."""
        return sum(partition.lag for partition in self.partitions)

    @property
    def is_caught_up(self) -> bool:
        """Whether every committed event of every partition is in the view."""
        return self.running and bool(self.partitions) and all(partition.at_end for partition in self.partitions)

    @property
    def last_event_at_ms(self) -> int:
        """When the newest folded event was decided; 0 before the first."""
        return max((partition.last_event_at_ms for partition in self.partitions), default=0)
