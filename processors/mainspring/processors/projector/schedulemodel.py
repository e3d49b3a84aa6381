"""What the view tells of schedules, as values. Times are epoch milliseconds UTC."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mainspring.schemas.common import CauseSource
from mainspring.schemas.schedule import ScheduleSpec, ScheduleStatus, ScheduleTiming
from mainspring.schemas.tables import ActiveInstance, Backfill

__all__ = [
    "FIRED",
    "OccurrenceFilter",
    "OccurrencePage",
    "OccurrenceRecord",
    "ScheduleChange",
    "ScheduleChangePage",
    "ScheduleDetail",
    "ScheduleFilter",
    "ScheduleOrder",
    "SchedulePage",
    "ScheduleSummary",
]

FIRED = "FIRED"
"""The outcome of an occurrence that became a job; the others are those of `OccurrenceOutcome`."""


class ScheduleOrder(StrEnum):
    """Order of a list of schedules. Equal ones are ordered by id, so that pages neither repeat nor skip one."""

    ID = "id"
    NEXT = "next"
    """The next to fire first; those that plan nothing are not listed."""
    NEWEST = "newest"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFilter:
    """Which schedules to list; each condition that is given must hold. `text`: part of id, job name or note."""

    status: tuple[ScheduleStatus, ...] = ()
    job_name: str | None = None
    queue: str | None = None
    tenant: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSummary:
    """One line of a list of schedules.

    `next_fire_ms` is when the first planned occurrence without an outcome is fired, `next_nominal_ms` its nominal time;
    in the past while an instance keeps it back, None where the schedule is not active. `runs` counts planned
    occurrences that were fired, `fired` also triggers and backfills; `failed` counts instances, `running` those that
    have not ended. `last_outcome` is how the last that ended did. `pause_…` is empty where it is not paused.
    """

    schedule_id: str
    partition: int
    revision: int
    incarnation: int
    version: int
    status: ScheduleStatus
    job_name: str
    queue: str
    tenant: str
    note: str
    timing: ScheduleTiming
    created_at_ms: int
    updated_at_ms: int
    next_nominal_ms: int | None
    next_fire_ms: int | None
    runs: int
    fired: int
    skipped: int
    failed: int
    running: int
    last_nominal_ms: int | None
    last_job_id: str | None
    last_outcome: str | None
    pause_code: str | None
    paused_by: str | None
    pause_note: str
    last_event_type: str
    last_event_offset: int
    last_event_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleDetail(ScheduleSummary):
    """One schedule with its definition in force and what is under way. Planned times up to `cursor_ms` are decided."""

    definition: ScheduleSpec
    create_command_id: str
    cursor_ms: int
    active: tuple[ActiveInstance, ...]
    backfills: tuple[Backfill, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePage:
    """Schedules in order; `next_cursor` fetches the page after this one, None when there is none."""

    schedules: tuple[ScheduleSummary, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OccurrenceFilter:
    """Which entries of a ledger to list; each condition that is given must hold.

    `since_ms` ≤ nominal time < `until_ms`, for one at least of the occurrences that an entry is about. `outcomes` are
    `FIRED` and those of `OccurrenceOutcome`, `ended` those of `InstanceOutcome`.
    """

    outcomes: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OccurrenceRecord:
    """One entry of a schedule's ledger: an occurrence that was fired, or a run of neighbours that were not.

    `first_ms` and `last_ms` are nominal times, equal for one that was fired; `count` is how many there are. What begins
    with `ended` tells how the instance ended: None while it runs, and for good where its schedule was deleted before.
    `incarnation` tells the schedules of one id that came after each other.
    """

    schedule_id: str
    incarnation: int
    revision: int
    partition: int
    offset: int
    outcome: str
    first_ms: int
    last_ms: int
    count: int
    decided_at_ms: int
    version: int
    reason: str
    tzdata: str
    fire_at_ms: int | None
    origin: str | None
    job_id: str | None
    command_id: str | None
    actor: str | None
    ended: str | None
    ended_detail: str | None
    ended_at_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OccurrencePage:
    """Entries of a ledger in order; `next_cursor` fetches the page after this one, None when there is none."""

    occurrences: tuple[OccurrenceRecord, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleChange:
    """One event of a schedule that is not in its ledger: a command that was accepted or refused, or what followed."""

    schedule_id: str
    revision: int
    type: str
    decided_at_ms: int
    partition: int
    offset: int
    cause_source: CauseSource
    cause_partition: int
    cause_offset: int
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleChangePage:
    """Changes of a schedule, newest first; `next_cursor` fetches the page after this one, None when there is none."""

    changes: tuple[ScheduleChange, ...]
    next_cursor: str | None
