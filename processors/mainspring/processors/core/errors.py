"""What can go wrong inside the core.

    CoreError
    ├── IllegalTransitionError   an event that no edge of the transition table allows
    ├── RevisionGapError         an event that does not follow the state it is folded onto
    ├── OrphanEventError         a decided event of a job that has no row
    ├── MissingStateError        an indexed job without its row
    ├── MissingSpecError         a row without its specification
    ├── ScheduleFoldError        an event that does not follow from the state of its schedule
    └── UnexpectedRecordError    an input that is none

None of them is an answer to a user: refused commands are events. Each means a defect, or a log that was tampered
with, so each stops the batch loudly instead of leaving a table that its log does not explain.
"""

from mainspring.schemas.common import JobStatus

__all__ = [
    "CoreError",
    "IllegalTransitionError",
    "MissingSpecError",
    "MissingStateError",
    "OrphanEventError",
    "RevisionGapError",
    "ScheduleFoldError",
    "UnexpectedRecordError",
]


class CoreError(Exception):
    """Base of every error of the core."""


class IllegalTransitionError(CoreError):
    """No edge of the transition table leads from this status by this event."""

    def __init__(self, status: JobStatus | None, event: type[object]) -> None:
        self.status = status
        self.event = event
        origin = "no job" if status is None else status.name
        super().__init__(
            f"{event.__name__} is not allowed for a job that is {origin}: the transition table has no such edge. "
            f"Compare the job's events with docs/lifecycle.md."
        )


class RevisionGapError(CoreError):
    """An event whose revision is not the one after the state's."""

    def __init__(self, job_id: str, expected: int, found: int) -> None:
        self.job_id = job_id
        self.expected = expected
        self.found = found
        super().__init__(
            f"job {job_id!r}: event of revision {found} where {expected} is next; an event is missing or repeated. "
            f"Run `mainspring log verify` to see where."
        )


class OrphanEventError(CoreError):
    """An event that was folded onto nothing although only a submit may be."""

    def __init__(self, job_id: str, event: type[object]) -> None:
        self.job_id = job_id
        self.event = event
        super().__init__(f"job {job_id!r}: {event.__name__} without a row; the job's first event must be JobSubmitted.")


class MissingSpecError(CoreError):
    """A job's state is in the table and its specification is not."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        super().__init__(
            f"job {job_id!r} has a state row but no specification row; its tables are damaged. "
            f"Wipe the local store so that it is restored from the changelog."
        )


class MissingStateError(CoreError):
    """A job is in an index of the partition and its row is not in the table."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        super().__init__(
            f"job {job_id!r} is in an index and has no state row; the table changed behind the core. "
            f"Load a new core from the committed rows."
        )


class UnexpectedRecordError(CoreError):
    """A record of this type is no input of the scheduler."""

    def __init__(self, kind: type[object]) -> None:
        self.kind = kind
        super().__init__(f"{kind.__name__} is no input of the scheduler; it belongs to the dead letters.")


class ScheduleFoldError(CoreError):
    """An event that cannot follow the state its schedule has, or a decision about a schedule without a row."""

    def __init__(self, schedule_id: str, detail: str) -> None:
        self.schedule_id = schedule_id
        super().__init__(f"schedule {schedule_id!r}: {detail}. Run `mainspring log verify` to see where.")
