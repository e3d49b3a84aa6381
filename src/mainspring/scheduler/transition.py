"""What listeners hear of: transitions of jobs."""

from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from mainspring.client.progress import JobEvent
from mainspring.schemas.common import JobStatus

__all__ = ["JobListener", "Transition"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One edge of one job: from `previous` to `status`, decided at `at`, told by `event`.

    `previous` is None when the job was submitted, or was cancelled and began before this instance.
    """

    job_id: str
    previous: JobStatus | None
    status: JobStatus
    at: datetime
    event: JobEvent


@runtime_checkable
class JobListener(Protocol):
    """Hears of every transition, on the event loop, in the order of each job's life.

    It follows the log: at least once, after the fact. What it raises is logged and changes nothing; an awaitable that
    it returns runs as a task of its own.
    """

    def on_transition(self, transition: Transition) -> Awaitable[None] | None:
        """One job has taken one edge."""
        ...
