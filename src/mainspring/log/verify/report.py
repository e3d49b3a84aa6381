"""The result of an audit."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from mainspring.log.source import Place
from mainspring.log.verify.findings import Finding
from mainspring.schemas.events import CommandRejected

__all__ = ["DeadLetterLine", "RejectionLine", "VerifyProgress", "VerifyReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyProgress:
    """How far an audit is: records read of about so many offsets, and what is read now."""

    records: int
    offsets: int
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterLine:
    """One dead letter: where it stands, where its record stood, and why it was put aside."""

    place: Place
    of: Place
    reason: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionLine:
    """One refused command."""

    place: Place
    job_id: str
    command: str
    code: str
    message: str

    @classmethod
    def of(cls, place: Place, event: CommandRejected) -> "RejectionLine":
        """The line of a refusal."""
        return cls(
            place=place, job_id=event.job_id, command=event.command, code=event.reject_code, message=event.message
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What was checked and what was found; the counts are there when all is well, too.

    `unverifiable` counts what could not be checked and why (`cause_past_retention`, …); that is no fault. Commands that
    no scheduler has read yet are `commands_pending`. Dead letters and refusals are counted, and listed up to a bound.
    """

    findings: tuple[Finding, ...]
    records: Mapping[str, int]
    gaps: Mapping[str, int]
    events: Mapping[str, int]
    jobs: int
    jobs_by_status: Mapping[str, int]
    resubmitted: int
    schedules: int
    transactions: int
    commands_pending: int
    table_rows: int
    table_rows_evicted: int
    view_rows: int | None
    view_schedules: int | None
    unverifiable: Mapping[str, int]
    rejections_by_code: Mapping[str, int]
    rejections: tuple[RejectionLine, ...]
    dead_letter_count: int
    dead_letters: tuple[DeadLetterLine, ...]
    seconds: float
    notes: tuple[str, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    @property
    def records_total(self) -> int:
        """Records read, over all topics."""
        return sum(self.records.values())

    @property
    def records_per_s(self) -> float:
        """Records checked per second."""
        return self.records_total / self.seconds if self.seconds > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        """The report as JSON has it; names and meanings are stable."""
        return {"ok": self.ok, **asdict(self), "records_per_s": round(self.records_per_s, 1)}
