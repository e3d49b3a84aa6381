"""What one scheduler process needs to know."""

import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mainspring.processors.core import Rules
from mainspring.processors.engine.errors import ConfigurationError
from mainspring.processors.engine.options import EngineOptions
from mainspring.schemas import Codec
from mainspring.topics import Connection, Topology

__all__ = ["SchedulerConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig:
    """One scheduler process. Times in milliseconds."""

    connection: Connection
    topology: Topology
    codec: Codec
    rules: Rules
    slot: str | None = None
    """A name that no other scheduler of the installation has (an ordinal of a StatefulSet); None: host and a number."""
    state_dir: Path | None = None
    """Where the tables and the locks of slots are kept; None: tables in memory."""
    transaction_timeout_ms: int = 3_000
    session_timeout_ms: int | None = None
    """How long the group waits for a silent process; None: as short as the brokers allow, and at least 3 s."""
    static_member: bool = False
    """Whether the slot is the member's identity in the group, so that a quick restart moves no partition."""
    max_batch: int = 4_000
    max_batch_bytes: int = 8 << 20
    max_decided_bytes: int = 16 << 20
    max_decide_ms: int = 1_000
    linger_ms: int = 20
    burst: int = 3
    commit_inputs_ms: int = 60_000
    patience_ms: int = 20_000
    standby: bool = False
    """Whether the tables on disk are kept up to date for partitions of other processes, too; needs `state_dir`."""
    cached_rows: int = 100_000
    """Rows that stay decoded, over all partitions."""
    window_jobs: int = 40_000
    """Jobs that each index keeps in memory, over all partitions, where the tables are in RocksDB."""

    def __post_init__(self) -> None:
        if self.standby and self.state_dir is None:
            raise ConfigurationError(
                "a standby keeps the tables of all partitions on disk, and this scheduler keeps its own in memory: "
                "give it a state directory, or leave standby out"
            )

    @property
    def slot_name(self) -> str:
        """The name to hold, or to hold a number of."""
        return self.slot if self.slot is not None else socket.gethostname()[:64] or "scheduler"

    @property
    def lock_dir(self) -> Path:
        """Where the locks of slots are: apart for each installation."""
        base = self.state_dir if self.state_dir is not None else Path(tempfile.gettempdir()) / "mainspring-slots"
        return base / self.topology.prefix.rstrip(".")

    def engine_options(self) -> EngineOptions:
        """What of this the loop needs."""
        return EngineOptions(
            max_batch=self.max_batch,
            max_batch_bytes=self.max_batch_bytes,
            max_decided_bytes=self.max_decided_bytes,
            max_decide_ms=self.max_decide_ms,
            linger_ms=self.linger_ms,
            burst=self.burst,
            commit_inputs_ms=self.commit_inputs_ms,
            patience_ms=self.patience_ms,
            delete_retention_ms=int(self.topology.scheduler_changelog.config["delete.retention.ms"]),
            standby=range(self.topology.partitions) if self.standby else (),
        )
