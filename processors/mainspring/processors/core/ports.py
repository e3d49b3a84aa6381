"""What the core needs from its shell: a staged view of the tables of one partition."""

from typing import Protocol

from mainspring.schemas.job import JobSpec
from mainspring.schemas.tables import JobState

__all__ = ["Rows"]


class Rows(Protocol):
    """The rows of one partition as they will be once the current transaction is committed."""

    def state(self, job_id: str) -> JobState | None:
        """The job's state, or None where it has no row."""
        ...

    def spec(self, job_id: str) -> JobSpec | None:
        """The job's specification, or None where it has no row."""
        ...

    def put_state(self, job_id: str, state: JobState | None) -> None:
        """Replaces the state row; None deletes it."""
        ...

    def put_spec(self, job_id: str, spec: JobSpec | None) -> None:
        """Replaces the specification row; None deletes it."""
        ...
