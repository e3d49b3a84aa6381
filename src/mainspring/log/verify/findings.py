"""What an audit found: kinds of faults, the first record of each kind, and how many there were."""

from dataclasses import dataclass
from enum import StrEnum

from mainspring.log.source import Place

__all__ = ["Check", "Finding", "Findings"]


class Check(StrEnum):
    """What is checked. The names are stable: they are in `-o json`."""

    UNREADABLE = "UNREADABLE"
    """A record does not decode and no dead letter tells of it."""
    UNEXPECTED_TYPE = "UNEXPECTED_TYPE"
    """A record of a type that does not belong on its topic."""
    BAD_KEY = "BAD_KEY"
    """The key is not the id that the record is about."""
    WRONG_PARTITION = "WRONG_PARTITION"
    """The key does not belong on the partition, by murmur2."""
    CAUSE_ABSENT = "CAUSE_ABSENT"
    """An event names a cause that is no record of its topic."""
    CAUSE_FOREIGN = "CAUSE_FOREIGN"
    """An event names a cause on another partition, or one about another job."""
    DECIDED_TWICE = "DECIDED_TWICE"
    """One input has two events where it can have one: it was processed twice."""
    NO_VERDICT = "NO_VERDICT"
    """A command was read and nothing was decided on it."""
    REVISION_GAP = "REVISION_GAP"
    """An event is missing or repeated: revisions are not contiguous."""
    ORPHAN_EVENT = "ORPHAN_EVENT"
    """An event of a job that was never submitted."""
    ILLEGAL_TRANSITION = "ILLEGAL_TRANSITION"
    """The transition table has no such edge."""
    AFTER_TERMINAL = "AFTER_TERMINAL"
    """A job changed after its end."""
    STARTED_TWICE = "STARTED_TWICE"
    """An attempt started while another had the token."""
    ATTEMPT_GAP = "ATTEMPT_GAP"
    """Attempts are not numbered 1, 2, 3…"""
    STARTED_EARLY = "STARTED_EARLY"
    """An attempt started before the job was due."""
    STALE_REPORT = "STALE_REPORT"
    """A report was accepted from another attempt or worker than the one that had the token."""
    CANCEL_IGNORED = "CANCEL_IGNORED"
    """A cancel was accepted and the job went on, other than to succeed."""
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    """More retries or lost attempts than the job allows."""
    SEQ_ORDER = "SEQ_ORDER"
    """The submit counter of a partition did not count up."""
    LEDGER = "LEDGER"
    """A planned occurrence of a schedule has no outcome or two, or an outcome is of none that was planned."""
    TORN_TRANSACTION = "TORN_TRANSACTION"
    """Some events of a transaction are visible and others are not."""
    TABLE_DIFFERS = "TABLE_DIFFERS"
    """The scheduler's row of a job is not the fold of its events."""
    TABLE_ABSENT = "TABLE_ABSENT"
    """An unfinished job has no row in the scheduler's table."""
    TABLE_EXTRA = "TABLE_EXTRA"
    """The scheduler's table has a job that no event tells of."""
    VIEW_DIFFERS = "VIEW_DIFFERS"
    """The view's row of a job or schedule is not the fold of its events, or a ledger in it lacks entries."""
    VIEW_ABSENT = "VIEW_ABSENT"
    """A job or schedule is missing in the view."""
    VIEW_EXTRA = "VIEW_EXTRA"
    """The view has a job or schedule that no event tells of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """All faults of one kind: how many, and the first of them. `place` is None where no single record is at fault."""

    check: Check
    count: int
    place: Place | None
    job_id: str | None
    detail: str

    def __str__(self) -> str:
        where = f" at {self.place}" if self.place else ""
        more = f" (and {self.count - 1} more)" if self.count > 1 else ""
        return f"{self.check}{where}: {self.detail}{more}"


class Findings:
    """Collects faults; however many there are, memory stays flat."""

    def __init__(self) -> None:
        self._found: dict[Check, Finding] = {}

    def add(self, check: Check, detail: str, *, place: Place | None = None, job_id: str | None = None) -> None:
        """One more fault; the text of the first of each kind is kept."""
        former = self._found.get(check)
        if former is None:
            self._found[check] = Finding(check=check, count=1, place=place, job_id=job_id, detail=detail)
        else:
            self._found[check] = Finding(
                check=check, count=former.count + 1, place=former.place, job_id=former.job_id, detail=former.detail
            )

    def all(self) -> tuple[Finding, ...]:
        """Every kind of fault that was found, in the order of `Check`."""
        return tuple(self._found[check] for check in Check if check in self._found)
