"""Which records there are, by role, and the types that name them together."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any, TypeAlias, get_args

from mainspring.schemas import (
    attempts,
    commands,
    common,
    dead_letters,
    events,
    followups,
    job,
    logs,
    schedule,
    schedule_events,
    signals,
    tables,
    work,
)

__all__ = [
    "ENUMS",
    "EVENT_TYPES",
    "JOB_EVENT_TYPES",
    "PARTS",
    "RECORDS",
    "SCHEDULE_EVENT_TYPES",
    "AttemptReport",
    "Command",
    "Event",
    "Followup",
    "JobCommand",
    "JobEvent",
    "Record",
    "ScheduleCommand",
    "ScheduleEvent",
    "Signal",
    "TableRow",
    "class_of",
]

JobCommand: TypeAlias = commands.SubmitJob | commands.CancelJob | commands.RescheduleJob | commands.RetryJob
ScheduleCommand: TypeAlias = (
    commands.CreateSchedule
    | commands.UpdateSchedule
    | commands.PauseSchedule
    | commands.ResumeSchedule
    | commands.TriggerSchedule
    | commands.BackfillSchedule
    | commands.DeleteSchedule
)
Command: TypeAlias = JobCommand | ScheduleCommand
Followup: TypeAlias = (
    commands.SubmitJob
    | commands.CancelJob
    | followups.ForwardedCommand
    | followups.InstanceFinished
    | followups.InstanceReplaced
)
AttemptReport: TypeAlias = (
    attempts.AttemptClaimed
    | attempts.AttemptHeartbeat
    | attempts.AttemptSucceeded
    | attempts.AttemptFailed
    | attempts.AttemptTimedOut
    | attempts.AttemptCancelled
    | attempts.AttemptReleased
    | attempts.OfferDeclined
)
JobEvent: TypeAlias = (
    events.JobSubmitted
    | events.JobStarted
    | events.JobCompleted
    | events.JobFailed
    | events.JobTimedOut
    | events.JobCancelRequested
    | events.JobCancelled
    | events.JobRetryScheduled
    | events.JobRescheduled
    | events.ReportRefused
    | events.CommandRejected
)
ScheduleEvent: TypeAlias = (
    schedule_events.ScheduleCreated
    | schedule_events.ScheduleUpdated
    | schedule_events.SchedulePaused
    | schedule_events.ScheduleResumed
    | schedule_events.ScheduleRewound
    | schedule_events.ScheduleCompleted
    | schedule_events.ScheduleDeleted
    | schedule_events.BackfillAccepted
    | schedule_events.BackfillEnded
    | schedule_events.OccurrenceFired
    | schedule_events.OccurrencesSkipped
    | schedule_events.InstancesStopped
    | schedule_events.InstanceEnded
    | schedule_events.ScheduleCommandRejected
)
Event: TypeAlias = JobEvent | ScheduleEvent
Signal: TypeAlias = signals.StartConfirmed | signals.ClaimRefused | signals.CancelAttempt
TableRow: TypeAlias = job.JobSpec | tables.JobState | schedule.ScheduleSpec | tables.ScheduleState | tables.PositionRow
Record: TypeAlias = (
    Command
    | Followup
    | AttemptReport
    | Event
    | Signal
    | TableRow
    | work.WorkOffered
    | logs.LogCaptured
    | dead_letters.DeadLetter
)

RECORDS: Mapping[str, type[Any]] = MappingProxyType({kind.__name__: kind for kind in get_args(Record)})
"""Every record that may stand alone on a topic, by its name; each has a schema file of its own."""

JOB_EVENT_TYPES: frozenset[type[Any]] = frozenset(get_args(JobEvent))
SCHEDULE_EVENT_TYPES: frozenset[type[Any]] = frozenset(get_args(ScheduleEvent))
EVENT_TYPES: frozenset[type[Any]] = JOB_EVENT_TYPES | SCHEDULE_EVENT_TYPES

PARTS: Mapping[str, type[Any]] = MappingProxyType(
    {
        kind.__name__: kind
        for kind in (
            common.AttemptError,
            common.CancelRequest,
            common.Cause,
            common.ConfirmedStart,
            common.HeldAttempt,
            common.Txn,
            schedule.CronRule,
            schedule.IntervalRule,
            schedule.NamedCalendar,
            schedule.ScheduleTiming,
            tables.ActiveInstance,
            tables.Backfill,
            tables.Dispatch,
            tables.FiredRun,
            tables.Plan,
        )
    }
)
"""Records that only occur inside others."""

ENUMS: Mapping[str, type[IntEnum]] = MappingProxyType(
    {
        kind.__name__: kind
        for kind in (
            common.CauseSource,
            common.JobStatus,
            common.Priority,
            schedule.CatchUp,
            schedule.FoldRule,
            schedule.GapRule,
            schedule.Overlap,
            schedule.ScheduleStatus,
        )
    }
)


def class_of(name: str) -> type[Any]:
    """The class of a named Avro type: a record, a part of one, or an enum."""
    return RECORDS.get(name) or PARTS.get(name) or ENUMS[name]
