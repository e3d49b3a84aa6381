"""A schedule as a caller sees it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from mainspring.client.info import aware
from mainspring.client.schedules.definition import Change
from mainspring.schemas.epoch import to_datetime
from mainspring.schemas.records import ScheduleEvent
from mainspring.schemas.schedule import ScheduleSpec, ScheduleStatus
from mainspring.schemas.schedule_events import ScheduleCreated, ScheduleUpdated

if TYPE_CHECKING:
    from mainspring.processors.core.timing import Timing
    from mainspring.processors.projector.schedulemodel import ScheduleDetail, ScheduleFilter
    from mainspring.schemas.tables import ScheduleState

__all__ = [
    "AcceptedBackfill",
    "AcceptedChange",
    "Declaration",
    "DeclareOutcome",
    "PlannedUpdate",
    "ScheduleEntry",
    "ScheduleFilters",
    "ScheduleInfo",
]


def _timing(spec: ScheduleSpec, created_at: datetime) -> "Timing":
    from mainspring.processors.core.timing import Timing

    return Timing(spec.timing, spec.schedule_id, round(created_at.timestamp() * 1000))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleInfo:
    """One schedule at one moment. Instants are aware datetimes in UTC.

    `version` counts its definitions, `revision` its events. `next_run` is the nominal time of the next planned
    occurrence without an outcome, in the past while an instance keeps it back, None where it is not active. `runs`
    counts the planned occurrences that were fired, `fired` also triggers and backfills, `skipped` those with another
    outcome, `failed` instances that did. `running` are the ids of unfinished instances, `last_…` tells of the latest
    fire and of the last instance that ended. `backfills` are the command ids of those under way. What begins with
    `pause` is empty where it is not paused; `pause_code` is a `PauseCode`.
    """

    schedule_id: str
    status: ScheduleStatus
    version: int
    revision: int
    definition: ScheduleSpec
    next_run: datetime | None
    created_at: datetime
    updated_at: datetime
    runs: int
    fired: int
    skipped: int
    failed: int
    running: tuple[str, ...]
    backfills: tuple[str, ...]
    last_run: datetime | None
    last_job_id: str | None
    last_outcome: str | None
    pause_code: str | None
    paused_by: str | None
    pause_note: str

    @property
    def is_active(self) -> bool:
        """Whether it fires by its plan."""
        return self.status is ScheduleStatus.ACTIVE

    def in_words(self) -> str:
        """When it fires: `At 02:30, Monday to Friday, Europe/Berlin`."""
        return _timing(self.definition, self.created_at).describe()

    def next_runs(self, count: int) -> tuple[datetime, ...]:
        """The nominal times of the next planned occurrences; none where it is not active."""
        found: list[datetime] = []
        clock, at = _timing(self.definition, self.created_at), self.next_run
        while at is not None and len(found) < count:
            found.append(at)
            following = clock.next_after(round(at.timestamp() * 1000))
            at = None if following is None else to_datetime(following.nominal_ms)
        return tuple(found)

    @classmethod
    def of_events(cls, events: Iterable[ScheduleEvent]) -> "ScheduleInfo | None":
        """The schedule as its events tell it, from its first one on; None where there is none (any more)."""
        from mainspring.processors.core.schedule.evolve import evolve_schedule

        state: ScheduleState | None = None
        spec: ScheduleSpec | None = None
        for event in events:
            state = evolve_schedule(state, event)
            if isinstance(event, ScheduleCreated | ScheduleUpdated):
                spec = event.spec
        return None if state is None or spec is None else cls._of_state(state, spec)

    @classmethod
    def of_detail(cls, detail: "ScheduleDetail") -> "ScheduleInfo":
        """The schedule as the view tells it."""
        return cls(
            schedule_id=detail.schedule_id,
            status=detail.status,
            version=detail.version,
            revision=detail.revision,
            definition=detail.definition,
            next_run=aware(detail.next_nominal_ms),
            created_at=to_datetime(detail.created_at_ms),
            updated_at=to_datetime(detail.updated_at_ms),
            runs=detail.runs,
            fired=detail.fired,
            skipped=detail.skipped,
            failed=detail.failed,
            running=tuple(instance.job_id for instance in detail.active),
            backfills=tuple(backfill.command_id for backfill in detail.backfills),
            last_run=aware(detail.last_nominal_ms),
            last_job_id=detail.last_job_id,
            last_outcome=detail.last_outcome,
            pause_code=detail.pause_code,
            paused_by=detail.paused_by,
            pause_note=detail.pause_note,
        )

    @classmethod
    def _of_state(cls, state: "ScheduleState", spec: ScheduleSpec) -> "ScheduleInfo":
        created_at = to_datetime(state.created_at_ms)
        following = None
        if state.status is ScheduleStatus.ACTIVE:
            following = _timing(spec, created_at).next_after(state.cursor_ms)
        return cls(
            schedule_id=state.schedule_id,
            status=state.status,
            version=state.version,
            revision=state.revision,
            definition=spec,
            next_run=None if following is None else to_datetime(following.nominal_ms),
            created_at=created_at,
            updated_at=to_datetime(state.updated_at_ms),
            runs=state.runs,
            fired=state.fired,
            skipped=state.skipped,
            failed=state.failed,
            running=tuple(instance.job_id for instance in state.active),
            backfills=tuple(backfill.command_id for backfill in state.backfills),
            last_run=aware(state.last_nominal_ms),
            last_job_id=state.last_job_id,
            last_outcome=state.last_outcome,
            pause_code=state.pause_code,
            paused_by=state.paused_by,
            pause_note=state.note,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFilters:
    """Which schedules to list: every condition that is given must hold. `text` is part of id, job name or note."""

    status: Iterable[ScheduleStatus] = ()
    job_name: str | None = None
    queue: str | None = None
    tenant: str | None = None
    text: str | None = None

    def to_model(self) -> "ScheduleFilter":
        """The same for the view."""
        from mainspring.processors.projector.schedulemodel import ScheduleFilter

        return ScheduleFilter(
            status=tuple(self.status),
            job_name=self.job_name,
            queue=self.queue,
            tenant=self.tenant,
            text=self.text,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedChange:
    """A command about a schedule was accepted: the revision that it made, and when it was decided."""

    schedule_id: str
    revision: int
    decided_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedBackfill:
    """A backfill was accepted: of the `count` occurrences of its range, those that were not fired yet will be."""

    schedule_id: str
    revision: int
    decided_at: datetime
    command_id: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedUpdate:
    """What an update would change, before it is sent. `before` is the schedule as it was read."""

    before: ScheduleInfo
    after: ScheduleSpec
    changes: tuple[Change, ...]

    def next_runs(self, count: int, after: datetime) -> tuple[datetime, ...]:
        """The nominal times of the next occurrences by the new definition, strictly later than an instant."""
        clock = _timing(self.after, self.before.created_at)
        found: list[datetime] = []
        at_ms = round(after.timestamp() * 1000)
        while len(found) < count and (following := clock.next_after(at_ms)) is not None:
            at_ms = following.nominal_ms
            found.append(to_datetime(at_ms))
        return tuple(found)


class DeclareOutcome(StrEnum):
    """What a declaration does, or would do."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What became of a declaration, or would become of it.

    `version` is the one in force then; `changes` are the fields in which the definition before differed.
    """

    schedule_id: str
    outcome: DeclareOutcome
    version: int
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class ScheduleEntry:
    """One event of a schedule, and where it stands in `events`."""

    partition: int
    offset: int
    event: ScheduleEvent
