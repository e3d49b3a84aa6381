"""Draws `docs/lifecycle.md` from the transition table, so that the page cannot be wrong.

The table says which edge there is; who moves a job along it is a sentence per event, and a test walks both.
"""

from mainspring.processors.core.job.transitions import EDGES, RECORDS_ONLY, STAYS, is_terminal
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

__all__ = ["WHO_MOVES", "lifecycle_markdown"]

WHO_MOVES: dict[tuple[JobStatus | None, type[object]], str] = {
    (None, JobSubmitted): "a client's `SubmitJob` is accepted; or a `RetryJob` submits a finished job under a new id",
    (JobStatus.PENDING, JobStarted): "a worker claims the offered attempt and the scheduler confirms it, never before "
    "`due_at`",
    (JobStatus.PENDING, JobCancelled): "a client's `CancelJob`, at once; or the scheduler: the start deadline passed, "
    "no worker knew the name for too long, an input of the job could not be applied, or the next occurrence of its "
    "schedule takes its place",
    (JobStatus.RUNNING, JobCompleted): "the worker reports success, also when a cancel had been asked for",
    (JobStatus.RUNNING, JobFailed): "the worker reports a failure that is not to be retried, the last allowed failure, "
    "or a result that is too large; or the scheduler: lost more often than `max_lost`, or an input of the job could "
    "not be applied",
    (JobStatus.RUNNING, JobTimedOut): "the worker reports that the last allowed attempt ran longer than its time-out",
    (
        JobStatus.RUNNING,
        JobCancelled,
    ): "the attempt ends in any way but success after a cancel had been asked for; or "
    "the next occurrence of its schedule takes its place",
    (JobStatus.RUNNING, JobRetryScheduled): "the worker reports a failure or a time-out with retries left (after the "
    "back-off), or gives the attempt back (at once); or its lease runs out, or the worker stops it unasked (at once, "
    "counted as lost)",
    (JobStatus.RETRY_WAIT, JobStarted): "as from PENDING, with the next attempt number",
    (
        JobStatus.RETRY_WAIT,
        JobCancelled,
    ): "a client's `CancelJob`, at once; or the scheduler, as from PENDING, the start deadline aside",
    (JobStatus.PENDING, JobRescheduled): "a client's `RescheduleJob` gives it another time and withdraws an offer; or "
    "the scheduler: the wall clock was set back, and a delay ends when it would have",
    (JobStatus.RETRY_WAIT, JobRescheduled): "as from PENDING",
    (
        JobStatus.RUNNING,
        JobCancelRequested,
    ): "a client's `CancelJob`; the worker is told to stop, and the request sticks",
}
"""Who moves a job along each edge of the table, in words."""

_CHANGES_NOTHING: dict[type[object], str] = {
    CommandRejected: "a command was refused",
    ReportRefused: "a worker's report was late, stale or from another incarnation; its bytes are kept",
}


_SUBSTATES = (
    "A job that waits (PENDING or RETRY_WAIT) is scheduled, parked, ready or offered; these sub-states follow from "
    "its row and are no events; `mainspring job explain` tells them."
)


def lifecycle_markdown() -> str:
    """The page: a Mermaid state diagram with lettered edges, and one line per letter. Ends with a line break."""
    edges = [(key, after) for table in (EDGES, STAYS) for key, after in table.items()]
    lettered = [(chr(ord("a") + index), *each) for index, each in enumerate(edges)]
    lines = [
        "# The life of a job",
        "",
        "Drawn by `mainspring.processors.core.job.drawing` from the transition table; do not edit.",
        "",
        "```mermaid",
        "stateDiagram-v2",
        *(f"    {_node(before)} --> {after.name}: {letter}" for letter, (before, _), after in lettered),
        *(f"    {status.name} --> [*]" for status in JobStatus if is_terminal(status)),
        "```",
        "",
        "| | from | event | to | who moves it |",
        "|---|---|---|---|---|",
        *(_row(letter, before, event, after) for letter, (before, event), after in lettered),
        "",
        "Every other edge is refused with an error. Terminal is final: "
        + ", ".join(status.name for status in JobStatus if is_terminal(status))
        + " have no way out; to run a finished job again is to submit a new one (`RetryJob`).",
        "",
        "Two events change no job and may be written at any status:",
        "",
        *(f"- `{event.__name__}`: {_CHANGES_NOTHING[event]}." for event in sorted(RECORDS_ONLY, key=_name)),
        "",
        _SUBSTATES,
    ]
    return "\n".join(lines) + "\n"


def _name(event: type[object]) -> str:
    return event.__name__


def _node(status: JobStatus | None) -> str:
    return "[*]" if status is None else status.name


def _row(letter: str, before: JobStatus | None, event: type[object], after: JobStatus) -> str:
    origin = "(nothing)" if before is None else before.name
    return f"| {letter} | {origin} | `{event.__name__}` | {after.name} | {WHO_MOVES[before, event]} |"
