"""Jobs as a user writes them: handlers, job classes, their terms and their errors."""

from mainspring.jobs.app import App, ContextJobFunction, JobCall, JobFunction
from mainspring.jobs.base import AsyncJob, BlockingJob, CpuBoundJob, Job
from mainspring.jobs.context import JobContext, current_context
from mainspring.jobs.errors import (
    AttemptFailureError,
    DuplicateJobNameError,
    HandlerSignatureError,
    InvalidJobError,
    JobDefinitionError,
    NoCurrentJobError,
    NonRetryableError,
    PayloadMismatchError,
    ProcessDiedError,
    ResultNotEncodableError,
    ResultTooLargeError,
    RetryLater,
    UnknownHandlerError,
    UnknownOptionError,
)
from mainspring.jobs.handler import Handler
from mainspring.jobs.models import ConcurrencyModel, JobPriority, JobStatus
from mainspring.jobs.options import JobOptions
from mainspring.jobs.payload import JsonCodec, PayloadCodec
from mainspring.jobs.policy import RetryPolicy
from mainspring.jobs.spec import Submittable, new_job_id, to_spec

__all__ = [
    "App",
    "AsyncJob",
    "AttemptFailureError",
    "BlockingJob",
    "ConcurrencyModel",
    "ContextJobFunction",
    "CpuBoundJob",
    "DuplicateJobNameError",
    "Handler",
    "HandlerSignatureError",
    "InvalidJobError",
    "Job",
    "JobCall",
    "JobContext",
    "JobDefinitionError",
    "JobFunction",
    "JobOptions",
    "JobPriority",
    "JobStatus",
    "JsonCodec",
    "NoCurrentJobError",
    "NonRetryableError",
    "PayloadCodec",
    "PayloadMismatchError",
    "ProcessDiedError",
    "ResultNotEncodableError",
    "ResultTooLargeError",
    "RetryLater",
    "RetryPolicy",
    "Submittable",
    "UnknownHandlerError",
    "UnknownOptionError",
    "current_context",
    "new_job_id",
    "to_spec",
]
