"""How the loop is tuned, and what it tells of itself."""

from collections.abc import Collection
from dataclasses import dataclass

__all__ = ["EngineOptions", "EngineStatus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """How the loop is tuned. Times in milliseconds."""

    max_batch: int = 4_000
    """Inputs that one transaction takes at most."""
    max_batch_bytes: int = 8 << 20
    """Bytes of inputs that one transaction takes, unless a single one is larger."""
    max_decided_bytes: int = 16 << 20
    """Bytes that the inputs of one transaction may bring about, about; what is left of them comes with the next."""
    max_decide_ms: int = 1_000
    """How long decisions on inputs may take for one transaction, about; what is left of them comes with the next.

    As long again for what time brings, a share for each partition.
    """
    linger_ms: int = 20
    """Under load, how long inputs gather for one transaction."""
    burst: int = 3
    """Transactions that follow one another without gathering, after a quiet while."""
    commit_inputs_ms: int = 60_000
    """Inputs that need no transaction (heartbeats) are committed at least this often."""
    patience_ms: int = 20_000
    """How long a call that may be repeated is repeated, while nothing else goes on."""
    watch_topics_ms: int = 60_000
    """How often to ask whether the topics are still the same."""
    delete_retention_ms: int = 86_400_000
    """`delete.retention.ms` of the changelog: an older local table is not trusted."""
    standby: Collection[int] = ()
    """Partitions whose local tables are kept up to date for as long as another process owns them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStatus:
    """What the loop is at, for health checks. Times are monotonic milliseconds."""

    owned: tuple[int, ...] = ()
    ready: tuple[int, ...] = ()
    restoring: tuple[int, ...] = ()
    last_loop_ms: int = 0
    """When it last came round; 0: not yet."""
    last_commit_ms: int | None = None
    transactions: int = 0
    """Committed since its start."""
    lost_s: float = 0.0
    """For how many seconds no broker has been connected."""
