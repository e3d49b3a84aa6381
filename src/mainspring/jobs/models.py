"""The words of a job: how it runs, how urgent it is, where it stands."""

from enum import StrEnum

from mainspring.schemas.common import JobStatus
from mainspring.schemas.common import Priority as JobPriority

__all__ = ["ConcurrencyModel", "JobPriority", "JobStatus"]


class ConcurrencyModel(StrEnum):
    """Where a worker runs a job."""

    ASYNC = "async"
    """On the worker's event loop. It must not block."""
    THREAD = "thread"
    """In a thread of the worker. A time-out cannot stop it, only abandon it."""
    PROCESS = "process"
    """In a process of its own, which a time-out or a cancel kills."""
