"""Commands, complete with who asks, why and when, and as they go into the log."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict, TypeVar
from urllib.parse import quote

from mainspring.client.config import ClientConfig
from mainspring.client.errors import InvalidScheduleError
from mainspring.client.outbox import Envelope
from mainspring.client.tracing import current_trace
from mainspring.jobs import ids
from mainspring.jobs.errors import InvalidJobError
from mainspring.jobs.models import JobPriority
from mainspring.jobs.options import NO_OPTIONS, JobOptions, options_of
from mainspring.jobs.policy import RetryPolicy
from mainspring.jobs.spec import Submittable, to_spec
from mainspring.schemas.bounds import REASON_MAX_CHARS
from mainspring.schemas.build import quick
from mainspring.schemas.codes import RejectCode
from mainspring.schemas.commands import CancelJob, RescheduleJob, RetryJob, SubmitJob
from mainspring.schemas.errors import UnwritableRecordError
from mainspring.schemas.limits import check_command, check_text
from mainspring.schemas.records import Command, ScheduleCommand
from mainspring.schemas.schedule_limits import check_schedule_command, schedule_of
from mainspring.topics.headers import command_headers

__all__ = ["Arguments", "CommandMaker", "OtherTerms", "Submission", "Terms", "check_reason", "to_options"]

C = TypeVar("C", CancelJob, RescheduleJob, RetryJob)
S = TypeVar("S", bound=ScheduleCommand)

_new_submit = quick(SubmitJob)
_new_envelope = quick(Envelope)

Arguments = Mapping[str, object] | Sequence[object] | None


IfExists = Literal["raise", "return"]
"""What a submit of an id that is known already does: raise `DuplicateJobError`, or return the earlier job's handle."""


class OtherTerms(TypedDict, total=False):
    """The terms of a job as keywords, but for those that `JobScheduler.submit` names itself."""

    job_id: str | None
    queue: str | None
    priority: JobPriority | None
    tenant: str | None
    timeout: float | timedelta | None
    retry: RetryPolicy | None
    max_lost: int | None
    run_at: datetime | None
    spread: float | timedelta | None
    deadline: datetime | None
    start_deadline: datetime | None
    tags: tuple[str, ...] | None


class Terms(OtherTerms, total=False):
    """The terms of a job as keywords; the meanings are those of `mainspring.jobs.options.JobOptions`."""

    delay: float | timedelta | None
    depends_on: tuple[str, ...] | None


def to_options(terms: Terms) -> JobOptions:
    """The terms as options; without any, the one value that costs nothing to merge. Raises `UnknownOptionError`."""
    return options_of(beside=("reason", "if_exists"), **terms) if terms else NO_OPTIONS


def adopts(if_exists: IfExists) -> bool:
    """Whether the handle of an earlier job is wanted where the id is known. Raises `InvalidJobError`."""
    if if_exists not in ("raise", "return"):
        message = f"if_exists must be 'raise' or 'return', not {if_exists!r}"
        raise InvalidJobError(RejectCode.INVALID_FIELD, "if_exists", message)
    return if_exists == "return"


@dataclass(frozen=True, slots=True)
class Submission:
    """One job of many: what to run, its arguments unless the job has them, and its own terms."""

    job: Submittable
    args: Arguments = None
    options: JobOptions | None = None


class CommandMaker:
    """Makes commands of one client; safe to share between threads."""

    def __init__(self, config: ClientConfig, clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._actor = config.actor
        self._source = "/" + quote(config.actor, safe="@.:/-")  # a URI reference, as CloudEvents wants it
        self._payloads = config.payloads
        self._encode = config.codec.encode
        self._clock_ms = clock_ms
        # Command ids name the client that made them and count: unique like a UUID, and ten times as cheap.
        self._series = ids.new_job_id()
        self._number = itertools.count(1)

    def submit(self, submission: Submission, terms: JobOptions, reason: str) -> SubmitJob:
        """A SubmitJob; the submission's own options win over the terms. Raises `InvalidJobError`."""
        spec = to_spec(submission.job, submission.args, options=_over(submission.options, terms), codec=self._payloads)
        return _new_submit(
            command_id=self._command_id(), actor=self._actor, reason=reason, requested_at_ms=self._clock_ms(), spec=spec
        )

    def cancel(self, job_id: str, reason: str) -> CancelJob:
        """A CancelJob. Raises `InvalidJobError`."""
        return _checked(CancelJob(job_id=job_id, **self._asked(reason)))

    def reschedule(
        self, job_id: str, run_at: datetime | None, delay: float | timedelta | None, reason: str
    ) -> RescheduleJob:
        """A RescheduleJob: an instant or a delay from now, exactly one. Raises `InvalidJobError`."""
        if (run_at is None) == (delay is None):
            raise InvalidJobError(RejectCode.INVALID_FIELD, "run_at", "run_at or delay must be given, and not both")
        asked = self._asked(reason)
        # Through a specification, so that times mean here exactly what they mean in a submit.
        spec = to_spec("reschedule", options=JobOptions(run_at=run_at, delay=delay))
        run_at_ms = spec.run_at_ms if spec.run_at_ms is not None else asked["requested_at_ms"] + (spec.delay_ms or 0)
        return _checked(RescheduleJob(job_id=job_id, run_at_ms=run_at_ms, **asked))

    def retry(self, job_id: str, new_job_id: str | None, reason: str) -> RetryJob:
        """A RetryJob; the id of the new job is drawn if not given. Raises `InvalidJobError`."""
        return _checked(
            RetryJob(
                job_id=job_id, new_job_id=ids.new_job_id() if new_job_id is None else new_job_id, **self._asked(reason)
            )
        )

    def about_schedule(self, kind: type[S], reason: str, **fields: Any) -> S:
        """A command about a schedule. Raises `InvalidScheduleError`."""
        command = kind(**fields, **self._asked(reason))
        problem = check_schedule_command(command)
        if problem is not None:
            raise InvalidScheduleError(problem.code, problem.field, problem.message)
        return command

    def envelope(self, command: Command) -> Envelope:
        """The command as it goes into the log. Raises `InvalidJobError` for what no record can hold."""
        job_id = _subject(command)
        try:
            value = self._encode(command)
        except UnwritableRecordError as error:
            raise InvalidJobError(RejectCode.INVALID_FIELD, error.field, error.why) from error
        headers = command_headers(command, self._source, current_trace())
        return _new_envelope(job_id=job_id, key=job_id.encode(), value=value, headers=headers)

    def _command_id(self) -> str:
        return f"{self._series}.{next(self._number)}"

    def _asked(self, reason: str) -> dict[str, Any]:
        return {
            "command_id": self._command_id(),
            "actor": self._actor,
            "reason": reason,
            "requested_at_ms": self._clock_ms(),
        }


def _subject(command: Command) -> str:
    """The job or the schedule that a command is about: its key."""
    if isinstance(command, SubmitJob):
        return command.spec.job_id
    return command.job_id if isinstance(command, CancelJob | RescheduleJob | RetryJob) else schedule_of(command)


def check_reason(reason: str) -> None:
    """Raises `InvalidJobError` for a reason that is too long or no text."""
    problem = check_text(reason, "reason", REASON_MAX_CHARS, empty=True)
    if problem is not None:
        raise InvalidJobError(problem.code, problem.field, problem.message)


def _over(own: JobOptions | None, terms: JobOptions) -> JobOptions:
    return terms if own is None else own.over(terms)


def _checked(command: C) -> C:
    problem = check_command(command)
    if problem is not None:
        raise InvalidJobError(problem.code, problem.field, problem.message)
    return command
