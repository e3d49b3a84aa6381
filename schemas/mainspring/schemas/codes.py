"""Stable codes that records carry as strings, so that an old reader never fails on a new one."""

from enum import StrEnum

__all__ = [
    "CancelCode",
    "CancelSignal",
    "ClaimRefusal",
    "DeadLetterReason",
    "DeclineReason",
    "FailReason",
    "RejectCode",
    "ReleaseReason",
    "ReportRefusal",
    "RetryReason",
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
