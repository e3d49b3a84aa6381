"""What one worker process needs, and what it tells of itself."""

import os
import secrets
import socket
from dataclasses import dataclass, field
from enum import Enum

from mainspring.schemas.codec import Codec
from mainspring.topics import Connection, Topology

__all__ = ["WorkerConfig", "WorkerState", "WorkerStatus", "default_worker_id"]


def default_worker_id() -> str:
    """Host, process and a random part: no two workers share it, and a person can tell where one runs."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """Configuration of a worker. All times are milliseconds.

    Attributes:
        worker_id: unique among all workers; signals are addressed to it.
        static_member: whether it is the worker's identity in the group, too; it must then stay over restarts.
        queues: queues to work for.
        slots: attempts that run, or wait for their start to be confirmed, at once.
        lease_ms, heartbeat_ms: how long a silent worker keeps its attempts, and how often it renews them.
        drain_ms: how long running attempts may still take when the worker is told to stop.
        hold_ms, held_max: how long a full worker keeps an offer for a slot to free, and how many.
        answer_ms: how long a claim keeps its slot while nobody answers.
        give_up_ms: after how long an unanswered claim is dropped altogether.
        stale_offer_ms: older offers are skipped: each has been renewed since.
        flush_ms: how long the last reports may take at the end.
        stall_ms: how long the side process renews leases while a handler holds the interpreter; 0: no side process.
    """

    connection: Connection
    topology: Topology
    codec: Codec
    worker_id: str = field(default_factory=default_worker_id)
    queues: tuple[str, ...] = ("default",)
    slots: int = 10
    static_member: bool = False
    lease_ms: int = 10_000
    heartbeat_ms: int = 3_000
    drain_ms: int = 30_000
    hold_ms: int = 300
    held_max: int = 0
    answer_ms: int = 5_000
    give_up_ms: int = 60_000
    stale_offer_ms: int = 180_000
    flush_ms: int = 10_000
    stall_ms: int = 600_000

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise ValueError(f"slots must be at least 1, not {self.slots}")
        if not self.queues:
            raise ValueError("a worker needs at least one queue")
        for queue in self.queues:
            if queue not in self.topology.queues:
                raise ValueError(f"queue {queue!r} is not declared; declared are {', '.join(self.topology.queues)}")
        if self.heartbeat_ms * 3 > self.lease_ms:
            raise ValueError(
                f"heartbeat_ms ({self.heartbeat_ms}) must fit three times into lease_ms ({self.lease_ms}), "
                "or one late heartbeat costs the lease"
            )

    @property
    def held_limit(self) -> int:
        """How many offers a full worker keeps."""
        return self.held_max or max(64, 2 * self.slots)


class WorkerState(Enum):
    """Where a worker stands in its life."""

    NEW = "new"
    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """A glance at a worker, for health checks and people.

    Attributes:
        running: attempts whose code runs; `overdue` of them have been reported and keep their slot until they return.
        awaiting: claims that wait for an answer. `held`: offers that wait for a slot.
        busy: slots taken, by whatever.
        partitions: work partitions assigned to it.
        loop_age_s: since the loop last came round; a live loop stays well below a second.
        contact_age_s: since the broker last acknowledged something of it; None before the first time.
        lost_s: for how long no broker has been connected; 0 while one is.
        abandoned: attempts left running when the worker stopped.
    """

    worker_id: str
    incarnation: str
    state: WorkerState
    slots: int
    busy: int
    running: int
    peak_running: int
    overdue: int
    awaiting: int
    held: int
    partitions: int
    loop_age_s: float
    contact_age_s: float | None
    lost_s: float
    abandoned: int
