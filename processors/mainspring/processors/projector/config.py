"""What one projector needs to know."""

from dataclasses import dataclass, field

from mainspring.schemas import Codec
from mainspring.topics import Connection, Topology

__all__ = ["ProjectorConfig", "Retention"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How many finished jobs the view keeps, and for how long; likewise of the settled entries of ledgers.

    None keeps all. Waiting and running jobs always stay, and schedules until they are deleted.
    """

    max_count: int | None = None
    max_age_ms: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("max_count", self.max_count), ("max_age_ms", self.max_age_ms)):
            if value is not None and value < 0:
                raise ValueError(f"retention {name} is {value}: give a number from 0 on, or None to keep everything")

    @property
    def is_unlimited(self) -> bool:
        """Whether nothing is ever removed."""
        return self.max_count is None and self.max_age_ms is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectorConfig:
    """One projector: where the log is, where the view goes, and how large it may grow.

    `url` is an SQLAlchemy URL (`sqlite:///file.db`, `postgresql://…`). `rebuild` drops the view and folds the log from
    its beginning. `batch` bounds the events of one database transaction, `payload_bytes` and `result_bytes` what the
    view keeps of each payload and result (their true sizes are kept beside them). A topic that is being made when the
    projector starts is waited for, `topic_patience_s` seconds at least.
    """

    connection: Connection
    topology: Topology
    codec: Codec
    url: str
    rebuild: bool = False
    batch: int = 5_000
    payload_bytes: int = 65_536
    result_bytes: int = 262_144
    retention: Retention = field(default_factory=Retention)
    retention_every_ms: int = 60_000
    topic_check_ms: int = 30_000
    admin_timeout_s: float = 15.0
    topic_patience_s: float = 5.0
