"""Submitting jobs and following them: `Client` for callers that block, `AsyncClient` for callers that await."""

from mainspring.client.aclient import AsyncClient
from mainspring.client.client import Client, IfExists
from mainspring.client.commands import Submission, Terms
from mainspring.client.config import ClientConfig
from mainspring.client.errors import (
    ClientClosedError,
    ClientError,
    ClientUsageError,
    CommandRejectedError,
    DuplicateJobError,
    EventsUnavailableError,
    ForkedClientError,
    InvalidJobError,
    JobCancelledError,
    JobEndedError,
    JobFailedError,
    JobNotFoundError,
    JobTimedOutError,
    NotDeliveredError,
    ResultTimeoutError,
    TopicsMissingError,
    VerdictTimeoutError,
    ViewBehindError,
    ViewUnavailableError,
    WaitTimeoutError,
)
from mainspring.client.handle import AsyncJobHandle, JobHandle
from mainspring.client.info import JobInfo
from mainspring.client.outcomes import Acceptance, CancelOutcome
from mainspring.client.queries import Filters, HistoryEntry

__all__ = [
    "Acceptance",
    "AsyncClient",
    "AsyncJobHandle",
    "CancelOutcome",
    "Client",
    "ClientClosedError",
    "ClientConfig",
    "ClientError",
    "ClientUsageError",
    "CommandRejectedError",
    "DuplicateJobError",
    "EventsUnavailableError",
    "Filters",
    "ForkedClientError",
    "HistoryEntry",
    "IfExists",
    "InvalidJobError",
    "JobCancelledError",
    "JobEndedError",
    "JobFailedError",
    "JobHandle",
    "JobInfo",
    "JobNotFoundError",
    "JobTimedOutError",
    "NotDeliveredError",
    "ResultTimeoutError",
    "Submission",
    "Terms",
    "TopicsMissingError",
    "VerdictTimeoutError",
    "ViewBehindError",
    "ViewUnavailableError",
    "WaitTimeoutError",
]
