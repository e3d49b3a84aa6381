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
    signals,
    tables,
    work,
)

__all__ = [
    "ENUMS",
    "EVENT_TYPES",
    "PARTS",
    "RECORDS",
    "AttemptReport",
    "Command",
    "Event",
    "Followup",
    "Record",
    "Signal",
    "TableRow",
    "class_of",
]

Command: TypeAlias = commands.SubmitJob | commands.CancelJob | commands.RescheduleJob | commands.RetryJob
Followup: TypeAlias = commands.SubmitJob | followups.ForwardedCommand
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
Event: TypeAlias = (
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
Signal: TypeAlias = signals.StartConfirmed | signals.ClaimRefused | signals.CancelAttempt
TableRow: TypeAlias = job.JobSpec | tables.JobState | tables.PositionRow
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

EVENT_TYPES: frozenset[type[Any]] = frozenset(get_args(Event))

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
            tables.Dispatch,
        )
    }
)
"""Records that only occur inside others."""

ENUMS: Mapping[str, type[IntEnum]] = MappingProxyType(
    {kind.__name__: kind for kind in (common.CauseSource, common.JobStatus, common.Priority)}
)


def class_of(name: str) -> type[Any]:
    """The class of a named Avro type: a record, a part of one, or an enum."""
    return RECORDS.get(name) or PARTS.get(name) or ENUMS[name]
