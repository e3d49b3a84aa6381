"""The terms of one job, as a user says them."""

from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from mainspring.jobs.errors import UnknownOptionError
from mainspring.jobs.models import JobPriority
from mainspring.jobs.policy import RetryPolicy

__all__ = ["NO_OPTIONS", "OPTION_NAMES", "JobOptions", "options_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """Everything about a job but its name and arguments. None: as the handler says, else as the product does.

    Durations are seconds or timedeltas; instants are aware datetimes.

    Attributes:
        job_id: 1–255 printable characters, unique for ever; drawn when not given.
        queue: queue whose workers may run it (`default`).
        priority: lane and order inside the queue (MEDIUM).
        tenant: whose job it is.
        timeout: longest run of one attempt (unlimited).
        retry: when failures and time-outs are tried again (never).
        max_lost: attempts that may be lost with their worker before the job fails (3).
        run_at: not before this instant; excludes `delay`.
        delay: not before the submit time plus this.
        spread: with `run_at` or `delay`: later by less than this, by an amount that follows from the job's id.
        deadline: what earliest-deadline-first orders by; it ends nothing.
        start_deadline: not started by this instant: cancelled as expired.
        tags: labels to find the job by.
        depends_on, schedule_id: not supported yet, refused.
    """

    job_id: str | None = None
    queue: str | None = None
    priority: JobPriority | None = None
    tenant: str | None = None
    timeout: float | timedelta | None = None
    retry: RetryPolicy | None = None
    max_lost: int | None = None
    run_at: datetime | None = None
    delay: float | timedelta | None = None
    spread: float | timedelta | None = None
    deadline: datetime | None = None
    start_deadline: datetime | None = None
    tags: tuple[str, ...] | None = None
    depends_on: tuple[str, ...] | None = None
    schedule_id: str | None = None

    def over(self, defaults: "JobOptions | None") -> "JobOptions":
        """These options, and the defaults where they say nothing."""
        if defaults is None or defaults is NO_OPTIONS:
            return self
        if self is NO_OPTIONS:
            return defaults
        merged = {name: getattr(self, name) for name in OPTION_NAMES}
        return JobOptions(**{n: getattr(defaults, n) if value is None else value for n, value in merged.items()})


OPTION_NAMES: tuple[str, ...] = tuple(option.name for option in fields(JobOptions))
NO_OPTIONS = JobOptions()
"""Says nothing; shared, so that merging it costs nothing."""


def options_of(*, beside: tuple[str, ...] = (), **options: Any) -> JobOptions:
    """The keywords as options; `beside` are others that the caller takes. Raises `UnknownOptionError` with a guess."""
    try:
        return JobOptions(**options)
    except TypeError:
        unknown = next((name for name in options if name not in OPTION_NAMES), None)
        if unknown is None:
            raise
        raise UnknownOptionError(unknown, (*OPTION_NAMES, *beside)) from None
