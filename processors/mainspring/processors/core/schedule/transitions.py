"""The one table of a schedule's life, and the one function that applies it.

Keyed by the status a schedule has and by the type of the event that happened to it; what is absent is forbidden. A
schedule that was deleted has no status and no row: the next event of its id can only be another ScheduleCreated.
"""

from collections.abc import Mapping
from types import MappingProxyType

from mainspring.processors.core.errors import ScheduleFoldError
from mainspring.schemas.schedule import ScheduleStatus
from mainspring.schemas.schedule_events import (
    BackfillAccepted,
    BackfillEnded,
    InstanceEnded,
    InstancesStopped,
    OccurrenceFired,
    OccurrencesSkipped,
    ScheduleCommandRejected,
    ScheduleCompleted,
    ScheduleCreated,
    ScheduleDeleted,
    SchedulePaused,
    ScheduleResumed,
    ScheduleRewound,
    ScheduleUpdated,
)

__all__ = ["SCHEDULE_EDGES", "SCHEDULE_RECORDS_ONLY", "SCHEDULE_STAYS", "apply_schedule_edge"]

_ACTIVE, _PAUSED, _COMPLETED = ScheduleStatus.ACTIVE, ScheduleStatus.PAUSED, ScheduleStatus.COMPLETED

SCHEDULE_EDGES: Mapping[tuple[ScheduleStatus | None, type[object]], ScheduleStatus | None] = MappingProxyType(
    {
        (None, ScheduleCreated): _ACTIVE,
        (_ACTIVE, SchedulePaused): _PAUSED,
        (_PAUSED, ScheduleResumed): _ACTIVE,
        (_ACTIVE, ScheduleCompleted): _COMPLETED,
        (_COMPLETED, ScheduleUpdated): _ACTIVE,
        **{(status, ScheduleDeleted): None for status in ScheduleStatus},
    }
)
"""Where each event leads, by the status the schedule has; `None` is the status of one that is not there."""

SCHEDULE_STAYS: Mapping[tuple[ScheduleStatus | None, type[object]], ScheduleStatus] = MappingProxyType(
    {
        (_ACTIVE, ScheduleUpdated): _ACTIVE,
        (_PAUSED, ScheduleUpdated): _PAUSED,
        (_ACTIVE, InstancesStopped): _ACTIVE,
        (_ACTIVE, ScheduleRewound): _ACTIVE,
        **{
            (status, event): status
            for status in ScheduleStatus
            # A trigger fires whatever the status is, and what was planned has an outcome in each.
            for event in (BackfillAccepted, BackfillEnded, OccurrenceFired, OccurrencesSkipped, InstanceEnded)
        },
    }
)
"""The events that change a schedule and leave its status as it is."""

SCHEDULE_RECORDS_ONLY: frozenset[type[object]] = frozenset({ScheduleCommandRejected})
"""The event that changes nothing: it may be written at any status, also for a schedule that is not there."""

_TABLE: dict[tuple[ScheduleStatus | None, type[object]], ScheduleStatus | None] = {**SCHEDULE_EDGES, **SCHEDULE_STAYS}


def apply_schedule_edge(schedule_id: str, status: ScheduleStatus | None, event: type[object]) -> ScheduleStatus | None:
    """The status after an event of this type. Raises ScheduleFoldError where the table has no edge."""
    if (status, event) not in _TABLE:
        origin = "there is none" if status is None else f"it is {status.name}"
        raise ScheduleFoldError(schedule_id, f"{event.__name__} is not allowed where {origin}")
    return _TABLE[status, event]
