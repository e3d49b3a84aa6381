"""Stable codes that records carry as strings, so that an old reader never fails on a new one."""

from enum import StrEnum

__all__ = [
    "CancelCode",
    "CancelSignal",
    "ClaimRefusal",
    "CompletionCode",
    "DeadLetterReason",
    "DeclineReason",
    "FailReason",
    "FireOrigin",
    "InstanceOutcome",
    "OccurrenceOutcome",
    "PauseCode",
    "RejectCode",
    "ReleaseReason",
    "ReportRefusal",
    "RetryReason",
    "StopMode",
]


class RejectCode(StrEnum):
    """Why a command was refused."""

    DUPLICATE_JOB = "DUPLICATE_JOB"
    UNKNOWN_JOB = "UNKNOWN_JOB"
    ALREADY_TERMINAL = "ALREADY_TERMINAL"
    NOT_TERMINAL = "NOT_TERMINAL"
    NOT_WAITING = "NOT_WAITING"
    UNKNOWN_QUEUE = "UNKNOWN_QUEUE"
    BAD_KEY = "BAD_KEY"
    INVALID_FIELD = "INVALID_FIELD"
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
    NOT_SUPPORTED = "NOT_SUPPORTED"
    UNPROCESSABLE = "UNPROCESSABLE"
    DUPLICATE_SCHEDULE = "DUPLICATE_SCHEDULE"
    UNKNOWN_SCHEDULE = "UNKNOWN_SCHEDULE"
    VERSION_CONFLICT = "VERSION_CONFLICT"
    ALREADY_PAUSED = "ALREADY_PAUSED"
    NOT_PAUSED = "NOT_PAUSED"
    ALREADY_COMPLETED = "ALREADY_COMPLETED"
    NOTHING_PLANNED = "NOTHING_PLANNED"
    TOO_MANY = "TOO_MANY"


class RetryReason(StrEnum):
    """Why a job is tried again."""

    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    LOST = "LOST"
    RELEASED = "RELEASED"


class FailReason(StrEnum):
    """Why a job failed for good."""

    FAILED = "FAILED"
    LOST = "LOST"
    RESULT_TOO_LARGE = "RESULT_TOO_LARGE"
    UNPROCESSABLE = "UNPROCESSABLE"


class CancelCode(StrEnum):
    """Why a job was cancelled."""

    REQUESTED = "REQUESTED"
    EXPIRED = "EXPIRED"
    UNKNOWN_NAME = "UNKNOWN_NAME"
    UPSTREAM_FAILED = "UPSTREAM_FAILED"
    UNPROCESSABLE = "UNPROCESSABLE"
    REPLACED = "REPLACED"


class ReportRefusal(StrEnum):
    """Why a worker's report changed nothing."""

    UNKNOWN_JOB = "UNKNOWN_JOB"
    TERMINAL = "TERMINAL"
    NOT_RUNNING = "NOT_RUNNING"
    STALE_ATTEMPT = "STALE_ATTEMPT"
    OTHER_INCARNATION = "OTHER_INCARNATION"


class ClaimRefusal(StrEnum):
    """Why a claim was not confirmed."""

    UNKNOWN_JOB = "UNKNOWN_JOB"
    TERMINAL = "TERMINAL"
    NOT_OFFERED = "NOT_OFFERED"
    STALE_ATTEMPT = "STALE_ATTEMPT"


class DeclineReason(StrEnum):
    """Why a worker does not take an offer."""

    NO_SLOTS = "NO_SLOTS"
    UNKNOWN_NAME = "UNKNOWN_NAME"
    DRAINING = "DRAINING"


class ReleaseReason(StrEnum):
    """Why a worker gives an attempt back unfinished."""

    DRAINING = "DRAINING"
    LEASE_AT_RISK = "LEASE_AT_RISK"


class CancelSignal(StrEnum):
    """Why a worker is told to stop an attempt."""

    CANCEL_REQUESTED = "CANCEL_REQUESTED"
    LEASE_LOST = "LEASE_LOST"


class DeadLetterReason(StrEnum):
    """Why a record was put aside."""

    UNDECODABLE = "UNDECODABLE"
    UNKNOWN_TYPE = "UNKNOWN_TYPE"
    UNEXPECTED_TYPE = "UNEXPECTED_TYPE"
    BAD_KEY = "BAD_KEY"
    UNPROCESSABLE = "UNPROCESSABLE"


class PauseCode(StrEnum):
    """Why a schedule was paused."""

    REQUESTED = "REQUESTED"
    INSTANCE_FAILED = "INSTANCE_FAILED"
    UNPROCESSABLE = "UNPROCESSABLE"


class CompletionCode(StrEnum):
    """Why nothing is planned any more."""

    END = "END"
    MAX_RUNS = "MAX_RUNS"


class FireOrigin(StrEnum):
    """Why an occurrence was fired."""

    PLANNED = "PLANNED"
    BACKFILL = "BACKFILL"
    TRIGGER = "TRIGGER"


class OccurrenceOutcome(StrEnum):
    """Why occurrences were not fired."""

    OVERLAP = "OVERLAP"
    COALESCED = "COALESCED"
    MISSED = "MISSED"
    PAUSED = "PAUSED"


class StopMode(StrEnum):
    """How instances make room for the next."""

    CANCELLED = "CANCELLED"
    REPLACED = "REPLACED"


class InstanceOutcome(StrEnum):
    """How an instance ended: the final status of its job, or that there never was one."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"
    REFUSED = "REFUSED"
