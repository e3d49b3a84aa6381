"""A ready job's place in the order of its queue."""

from typing import NamedTuple

from mainspring.processors.core.index.keys import Numbers

__all__ = ["ReadyJob"]


class ReadyJob(NamedTuple):
    """What the order of a job depends on. None of it changes while the job waits, so it is computed once."""

    key: Numbers
    seq: int
    job_id: str
    band: int
    tenant: str
    at_ms: int = 0
    """The instant until which it waits: with `seq` and the id, its place in the index by time."""
    priority: int = 0
    """The job's own, whatever the queue makes of it: its range in the index by time."""
