"""What can go wrong for a caller, as one tree.

::

    MainspringError
    ├── InvalidJobError            refused before anything was sent: a field breaks a limit      (ValueError)
    ├── InvalidScheduleError       the same of a schedule                                        (ValueError)
    └── ClientError
        ├── TopicsMissingError         the cluster has no topics with this prefix; nothing was sent
        ├── NotDeliveredError          the command may or may not be in the log
        ├── CommandRejectedError       the scheduler refused the command; nothing changed
        │   └── DuplicateJobError      … because the job id is already known
        ├── ScheduleRejectedError      the scheduler refused a command about a schedule; nothing changed
        │   ├── DuplicateScheduleError … because a schedule of this id exists
        │   └── VersionConflictError   … because somebody else has changed the schedule
        ├── JobEndedError              the job is terminal and has no result
        │   ├── JobFailedError         its last attempt failed, or it was lost too often
        │   ├── JobTimedOutError       its last attempt ran too long
        │   └── JobCancelledError      it will not run, or was stopped
        ├── WaitTimeoutError           the caller's patience ended; the job is untouched             (TimeoutError)
        │   ├── VerdictTimeoutError    … before the scheduler answered the command
        │   ├── ResultTimeoutError     … before the job was terminal
        │   └── ViewBehindError        … before the view had passed the caller's own command
        ├── JobNotFoundError           no such job                                                   (LookupError)
        ├── ScheduleNotFoundError      no such schedule, or it was deleted                           (LookupError)
        ├── EventsUnavailableError     the `events` topic cannot be read
        ├── ViewUnavailableError       the question needs the view, and none is configured
        └── ClientUsageError           the client cannot be used like this                           (RuntimeError)
            ├── ClientClosedError      it was closed
            └── ForkedClientError      it was made in another process

Every value that a message mentions is also an attribute.
"""

from mainspring.jobs.errors import InvalidJobError
from mainspring.schemas.codes import RejectCode
from mainspring.schemas.common import AttemptError, JobStatus
from mainspring.schemas.errors import MainspringError
from mainspring.schemas.schedule import ScheduleStatus

__all__ = [
    "ClientClosedError",
    "ClientError",
    "ClientUsageError",
    "CommandRejectedError",
    "DuplicateJobError",
    "DuplicateScheduleError",
    "EventsUnavailableError",
    "ForkedClientError",
    "InvalidJobError",
    "InvalidScheduleError",
    "JobCancelledError",
    "JobEndedError",
    "JobFailedError",
    "JobNotFoundError",
    "JobTimedOutError",
    "NotDeliveredError",
    "ResultTimeoutError",
    "ScheduleNotFoundError",
    "ScheduleRejectedError",
    "TopicsMissingError",
    "VerdictTimeoutError",
    "VersionConflictError",
    "ViewBehindError",
    "ViewUnavailableError",
    "WaitTimeoutError",
]


SHOWN = 3
"""Ids that a message names, of those that an attribute lists."""


class InvalidScheduleError(MainspringError, ValueError):
    """A schedule, or a command about one, that cannot be meant like this; nothing was sent.

    `code` is what the scheduler would refuse it with, `field` the field that is wrong, `message` a sentence about it.
    """

    def __init__(self, code: RejectCode, field: str, message: str) -> None:
        super().__init__(f"{message} [{code}]. Nothing was sent; correct it and send it again.")
        self.code = code
        self.field = field
        self.message = message


class ClientError(MainspringError):
    """Base of everything that a client raises on purpose."""


class TopicsMissingError(ClientError):
    """The cluster answers and has no topics of this installation, so nothing was sent and nothing can be read."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        super().__init__(
            f"there are no topics with prefix {prefix!r} in this cluster. Nothing was sent. `mainspring topics apply` "
            "makes them; or is the prefix (topics.prefix) or the address of the cluster another one?"
        )


class NotDeliveredError(ClientError):
    """The broker did not acknowledge these commands; they may or may not be in the log.

    `job_ids` are the jobs (or the schedule) concerned, in the order they were given.
    """

    ADVICE = "Send it again under the same job id with if_exists='return': a job id is accepted once."

    def __init__(self, job_ids: tuple[str, ...], cause: str, advice: str = ADVICE) -> None:
        self.job_ids = job_ids
        self.cause = cause
        more = len(job_ids) - SHOWN
        shown = ", ".join(job_ids[:SHOWN]) + (f" and {more} more" if more > 0 else "")
        super().__init__(
            f"no acknowledgement for the command of {shown}: {cause}. It may or may not be in the log. {advice}"
        )


class CommandRejectedError(ClientError):
    """The scheduler refused a command; nothing changed.

    `code` is a `RejectCode` (or a newer one), `status` the state of the job at that moment if there is such a job,
    `command` the record name of the command.
    """

    def __init__(
        self, *, job_id: str, command: str, command_id: str, code: str, message: str, status: JobStatus | None
    ) -> None:
        self.job_id = job_id
        self.command = command
        self.command_id = command_id
        self.code = code
        self.message = message
        self.status = status
        state = f" (the job is {status.name})" if status is not None else ""
        super().__init__(f"{command} for job {job_id!r} was rejected with {code}{state}: {message}")


class DuplicateJobError(CommandRejectedError):
    """The job id is already known; the earlier job is untouched. `if_exists='return'` gives its handle instead."""


class ScheduleRejectedError(ClientError):
    """The scheduler refused a command about a schedule; nothing changed.

    `code` is a `RejectCode` (or a newer one), `status` where the schedule stood if there is one, `command` the record
    name of the command.
    """

    def __init__(
        self, *, schedule_id: str, command: str, command_id: str, code: str, message: str, status: ScheduleStatus | None
    ) -> None:
        self.schedule_id = schedule_id
        self.command = command
        self.command_id = command_id
        self.code = code
        self.message = message
        self.status = status
        super().__init__(f"{command} for schedule {schedule_id!r} was rejected with {code}: {message}")


class DuplicateScheduleError(ScheduleRejectedError):
    """A schedule of this id exists; it is untouched."""


class VersionConflictError(ScheduleRejectedError):
    """Somebody else has changed the schedule since it was read. Read it again, and decide anew."""


class JobEndedError(ClientError):
    """A job is terminal and has no result. `attempts` is the number of attempts that were started."""

    def __init__(self, job_id: str, status: JobStatus, attempts: int, message: str) -> None:
        self.job_id = job_id
        self.status = status
        self.attempts = attempts
        super().__init__(message)


class JobFailedError(JobEndedError):
    """The job failed for good.

    `reason` is a `FailReason` (or a newer one); `error` is what the last attempt raised, as data, if it raised.
    """

    def __init__(self, job_id: str, attempts: int, reason: str, error: AttemptError | None) -> None:
        self.reason = reason
        self.error = error
        detail = f": {error.type}: {error.message}" if error is not None else ""
        super().__init__(
            job_id,
            JobStatus.FAILED,
            attempts,
            f"job {job_id!r} failed in attempt {attempts} [{reason}]{detail}. "
            "Mend the cause, then retry it: that runs it again as a new job.",
        )


class JobTimedOutError(JobEndedError):
    """The last allowed attempt ran longer than `timeout_ms`."""

    def __init__(self, job_id: str, attempts: int, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        super().__init__(
            job_id,
            JobStatus.TIMED_OUT,
            attempts,
            f"attempt {attempts} of job {job_id!r} ran longer than its timeout of {timeout_ms} ms and no retry is "
            "left. Submit it with a longer timeout or more retries.",
        )


class JobCancelledError(JobEndedError):
    """The job will not run, or was stopped.

    `code` is a `CancelCode` (or a newer one); `by` is who asked, None where no one did; `reason` is their words.
    """

    def __init__(self, job_id: str, attempts: int, code: str, by: str | None, reason: str) -> None:
        self.code = code
        self.by = by
        self.reason = reason
        tried = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        asked = f" by {by}" if by else ""
        words = f": {reason}" if reason else ""
        super().__init__(
            job_id,
            JobStatus.CANCELLED,
            attempts,
            f"job {job_id!r} was cancelled{asked} after {tried} [{code}]{words}. A retry runs it again as a new job.",
        )


class WaitTimeoutError(ClientError, TimeoutError):
    """The caller's patience ended. Nothing happened to the job; wait again whenever you like."""

    def __init__(self, job_id: str | None, timeout_s: float, message: str) -> None:
        self.job_id = job_id
        self.timeout_s = timeout_s
        super().__init__(message)


class VerdictTimeoutError(WaitTimeoutError):
    """The scheduler did not answer a command in time; the command is in the log and will be answered.

    `job_id` is the job, or the schedule, that the command is about.
    """

    def __init__(self, job_id: str, timeout_s: float, kind: str = "job") -> None:
        super().__init__(
            job_id,
            timeout_s,
            f"no verdict on the command for {kind} {job_id!r} within {timeout_s:g} s. The command is in the log and is "
            "decided as soon as a scheduler runs: check that one is up (/readyz), then wait again.",
        )


class ResultTimeoutError(WaitTimeoutError):
    """The job was not terminal in time. `status` is the last state seen; None while nothing was decided."""

    def __init__(self, job_id: str, timeout_s: float, status: JobStatus | None) -> None:
        self.status = status
        seen = status.name if status is not None else "not decided yet"
        super().__init__(
            job_id,
            timeout_s,
            f"job {job_id!r} was not terminal within {timeout_s:g} s (last seen: {seen}). "
            "It goes on; wait again, or cancel it.",
        )


class ViewBehindError(WaitTimeoutError):
    """The view had not passed the caller's own commands in time."""

    def __init__(self, job_id: str | None, timeout_s: float) -> None:
        super().__init__(
            job_id,
            timeout_s,
            f"the view had not passed this client's own commands within {timeout_s:g} s. Check that the projector "
            "runs, or ask with fresh=False for what the view has now.",
        )


class JobNotFoundError(ClientError, LookupError):
    """No such job is known to the one who was asked."""

    def __init__(self, job_id: str, where: str) -> None:
        self.job_id = job_id
        super().__init__(f"no job {job_id!r} in {where}. Check the id and the topic prefix.")


class ScheduleNotFoundError(ClientError, LookupError):
    """No such schedule is known to the one who was asked: it never was, or it was deleted."""

    def __init__(self, schedule_id: str, where: str) -> None:
        self.schedule_id = schedule_id
        super().__init__(
            f"no schedule {schedule_id!r} in {where}: never created, or deleted. Check the id and the topic prefix."
        )


class EventsUnavailableError(ClientError):
    """The `events` topic cannot be read, so no verdict and no result can be learnt."""

    def __init__(self, topic: str, cause: str) -> None:
        self.topic = topic
        self.cause = cause
        super().__init__(
            f"cannot read {topic}: {cause}. Check that the topics were made (`mainspring topics apply`), that this "
            "client may read them, and that its partition count is the cluster's."
        )


class ViewUnavailableError(ClientError):
    """The question can only be answered by the projector's view, and the client has none."""

    def __init__(self, question: str) -> None:
        super().__init__(
            f"{question} needs the view, and this client has none. Run a projector and set view.url "
            "(MAINSPRING_VIEW__URL), or pass view=… to the client."
        )


class ClientUsageError(ClientError, RuntimeError):
    """The client cannot be used like this."""


class ClientClosedError(ClientUsageError):
    """The client was closed. Make a new one."""

    def __init__(self) -> None:
        super().__init__("this client is closed. Make a new one; handles can be had again with client.handle(job_id).")


class ForkedClientError(ClientUsageError):
    """The client was made in another process: its threads and connections did not come along."""

    def __init__(self, made_in: int, used_in: int) -> None:
        self.made_in = made_in
        self.used_in = used_in
        super().__init__(
            f"this client was made in process {made_in} and cannot be used in its child {used_in}: threads and "
            "connections do not survive a fork. Make the client after the fork, one in each process."
        )
