"""The language: every record, enum and code, the codec, and what can go wrong. How large anything may be: `bounds`."""

from mainspring.schemas.attempts import (
    AttemptCancelled,
    AttemptClaimed,
    AttemptFailed,
    AttemptHeartbeat,
    AttemptReleased,
    AttemptSucceeded,
    AttemptTimedOut,
    OfferDeclined,
)
from mainspring.schemas.codec import (
    Codec,
    SchemaIds,
)
from mainspring.schemas.codes import (
    CancelCode,
    CancelSignal,
    ClaimRefusal,
    DeadLetterReason,
    DeclineReason,
    FailReason,
    RejectCode,
    ReleaseReason,
    ReportRefusal,
    RetryReason,
)
from mainspring.schemas.commands import (
    CancelJob,
    RescheduleJob,
    RetryJob,
    SubmitJob,
)
from mainspring.schemas.common import (
    AttemptError,
    CancelRequest,
    Cause,
    CauseSource,
    ConfirmedStart,
    HeldAttempt,
    JobStatus,
    Priority,
    Txn,
)
from mainspring.schemas.dead_letters import (
    DeadLetter,
)
from mainspring.schemas.errors import (
    MainspringError,
    RegistryError,
    SchemaError,
    UnreadableRecordError,
    UnwritableRecordError,
)
from mainspring.schemas.events import (
    CommandRejected,
    JobCancelled,
    JobCancelRequested,
    JobCompleted,
    JobFailed,
    JobRescheduled,
    JobRetryScheduled,
    JobStarted,
    JobSubmitted,
    JobTimedOut,
    ReportRefused,
)
from mainspring.schemas.followups import (
    ForwardedCommand,
)
from mainspring.schemas.job import (
    JobSpec,
)
from mainspring.schemas.limits import Problem
from mainspring.schemas.logs import (
    LogCaptured,
)
from mainspring.schemas.records import (
    EVENT_TYPES,
    RECORDS,
    AttemptReport,
    Command,
    Event,
    Followup,
    Record,
    Signal,
    TableRow,
)
from mainspring.schemas.signals import (
    CancelAttempt,
    ClaimRefused,
    StartConfirmed,
)
from mainspring.schemas.tables import (
    Dispatch,
    JobState,
    PositionRow,
)
from mainspring.schemas.work import (
    WorkOffered,
)

__all__ = [
    "EVENT_TYPES",
    "RECORDS",
    "AttemptCancelled",
    "AttemptClaimed",
    "AttemptError",
    "AttemptFailed",
    "AttemptHeartbeat",
    "AttemptReleased",
    "AttemptReport",
    "AttemptSucceeded",
    "AttemptTimedOut",
    "CancelAttempt",
    "CancelCode",
    "CancelJob",
    "CancelRequest",
    "CancelSignal",
    "Cause",
    "CauseSource",
    "ClaimRefusal",
    "ClaimRefused",
    "Codec",
    "Command",
    "CommandRejected",
    "ConfirmedStart",
    "DeadLetter",
    "DeadLetterReason",
    "DeclineReason",
    "Dispatch",
    "Event",
    "FailReason",
    "Followup",
    "ForwardedCommand",
    "HeldAttempt",
    "JobCancelRequested",
    "JobCancelled",
    "JobCompleted",
    "JobFailed",
    "JobRescheduled",
    "JobRetryScheduled",
    "JobSpec",
    "JobStarted",
    "JobState",
    "JobStatus",
    "JobSubmitted",
    "JobTimedOut",
    "LogCaptured",
    "MainspringError",
    "OfferDeclined",
    "PositionRow",
    "Priority",
    "Problem",
    "Record",
    "RegistryError",
    "RejectCode",
    "ReleaseReason",
    "ReportRefusal",
    "ReportRefused",
    "RescheduleJob",
    "RetryJob",
    "RetryReason",
    "SchemaError",
    "SchemaIds",
    "Signal",
    "StartConfirmed",
    "SubmitJob",
    "TableRow",
    "Txn",
    "UnreadableRecordError",
    "UnwritableRecordError",
    "WorkOffered",
]
