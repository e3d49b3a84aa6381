"""The one table of a job's life, and the one function that applies it.

A job is a small state machine whose transitions are events. The table is keyed by the status a job has and by the
type of the event that happened to it, and it is partial on purpose: what is absent is forbidden. Three properties
follow from its shape, and tests hold them:

- *Terminal is final.* No row starts in a terminal status, so no sequence of events leaves one.
- *Status is a function of the events.* `evolve` takes the status from here and from nowhere else, so a table of rows
  and the fold of a log cannot disagree about it.
- *One door to RUNNING.* Only `JobStarted` leads there, and only from a waiting status; `JobStarted` is decided by the
  single arbiter of the job's partition, which is what makes a start happen once.

Two events leave the status as it is (`STAYS`), for they change when or how a job ends, not where it stands. Two
more change nothing at all (`RECORDS_ONLY`): refusals, which are facts about a command or a report and not about the
job.
"""

from collections.abc import Mapping
from types import MappingProxyType

from mainspring.processors.core.errors import IllegalTransitionError
from mainspring.schemas.common import JobStatus
from mainspring.schemas.events import (
    CommandRejected,
    JobCancelled,
    JobCancelRequested,
    JobCompleted,
    JobFailed,
    JobRescheduled,
    JobRetryScheduled,
    JobStarted,
    JobSubmitted,
    JobTimedOut,
    ReportRefused,
)

__all__ = ["EDGES", "RECORDS_ONLY", "STAYS", "TERMINAL", "apply_edge", "is_terminal"]

_PENDING, _RUNNING, _RETRY_WAIT = JobStatus.PENDING, JobStatus.RUNNING, JobStatus.RETRY_WAIT

TERMINAL: frozenset[JobStatus] = frozenset(
    {JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.TIMED_OUT, JobStatus.CANCELLED}
)
"""The statuses that no event leaves."""

EDGES: Mapping[tuple[JobStatus | None, type[object]], JobStatus] = MappingProxyType(
    {
        (None, JobSubmitted): _PENDING,
        (_PENDING, JobStarted): _RUNNING,
        (_PENDING, JobCancelled): JobStatus.CANCELLED,
        (_RUNNING, JobCompleted): JobStatus.COMPLETED,
        (_RUNNING, JobFailed): JobStatus.FAILED,
        (_RUNNING, JobTimedOut): JobStatus.TIMED_OUT,
        (_RUNNING, JobCancelled): JobStatus.CANCELLED,
        (_RUNNING, JobRetryScheduled): _RETRY_WAIT,
        (_RETRY_WAIT, JobStarted): _RUNNING,
        (_RETRY_WAIT, JobCancelled): JobStatus.CANCELLED,
    }
)
"""Where each event leads, by the status the job has; `None` is the status of a job that is not there yet."""

STAYS: Mapping[tuple[JobStatus | None, type[object]], JobStatus] = MappingProxyType(
    {
        (_PENDING, JobRescheduled): _PENDING,
        (_RETRY_WAIT, JobRescheduled): _RETRY_WAIT,
        (_RUNNING, JobCancelRequested): _RUNNING,
    }
)
"""The events that change a job and leave its status as it is."""

RECORDS_ONLY: frozenset[type[object]] = frozenset({CommandRejected, ReportRefused})
"""The events that change no job: they may be written at any status, also for a job that is not there."""

_TABLE: dict[tuple[JobStatus | None, type[object]], JobStatus] = {**EDGES, **STAYS}


def is_terminal(status: JobStatus) -> bool:
    """Whether no event leaves this status."""
    return status in TERMINAL


def apply_edge(status: JobStatus | None, event: type[object]) -> JobStatus:
    """The status after an event of this type. Raises IllegalTransitionError where the table has no edge."""
    after = _TABLE.get((status, event))
    if after is None:
        raise IllegalTransitionError(status, event)
    return after
