"""What the core needs from its shell: a staged view of the tables of one partition, and how long a turn may take."""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from mainspring.schemas.job import JobSpec
from mainspring.schemas.tables import JobState

__all__ = ["IndexRow", "IndexStore", "IsOver", "Rows", "never"]

IndexRow: TypeAlias = tuple[bytes, bytes | None]
"""A row of an index: its key, and its value; None deletes it."""

IsOver: TypeAlias = Callable[[], bool]
"""Whether a turn has taken the time that it has; what is left of its work is the next one's."""


def never() -> bool:
    """An `IsOver` for who has all the time."""
    return False


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


class IndexStore(Protocol):
    """Rows in the order of their keys, beside the rows of one partition, in this process only.

    What an index writes with a transaction is not written here but given to the shell, which writes it together with
    the rows of that transaction.
    """

    def scan(self, prefix: bytes, after: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """The first rows, at most `limit`, whose key begins with `prefix` and is greater than `after`, in order."""
        ...

    def write(self, rows: Iterable[IndexRow]) -> None:
        """Takes rows at once: what is of use to this owner of the partition only."""
        ...

    def clear(self, prefix: bytes, up_to: bytes | None = None) -> None:
        """Forgets, at once, every row whose key begins with `prefix`; with `up_to`, only keys up to that one."""
        ...
