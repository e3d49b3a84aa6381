"""Handles: one job under virtual time. The methods of the real handle, and assertions that tell the job's history."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NoReturn

from mainspring.client.info import JobInfo
from mainspring.client.outcomes import Acceptance, CancelOutcome, result_of
from mainspring.client.progress import Terminal
from mainspring.client.queries import HistoryEntry
from mainspring.jobs.models import JobStatus
from mainspring.schemas import JobEvent
from mainspring.schemas.common import AttemptError
from mainspring.schemas.events import JobCancelled, JobCompleted, JobFailed
from mainspring.schemas.logs import LogCaptured

if TYPE_CHECKING:
    from mainspring.testing.operations import Operations

__all__ = ["TIMEOUT_S", "VirtualJobHandle"]

TIMEOUT_S: Final = 10.0
"""As in the real client; here it is virtual time."""
_ANYTHING: Final[Any] = object()


class VirtualJobHandle:
    """One job. Time-outs are seconds of virtual time; what waits moves the time as far as it must.

    The assertions look at what has happened and move nothing.
    """

    def __init__(self, operations: "Operations", job_id: str, command_id: str | None, *, adopt: bool = False) -> None:
        self._operations = operations
        self._command_id = command_id
        self._adopt = adopt
        self.job_id = job_id

    def __repr__(self) -> str:
        status = self._operations.progress(self.job_id).status
        return f"<{type(self).__name__} {self.job_id!r} {'undecided' if status is None else status.name}>"

    # As the real handle.

    def accepted(self, timeout: float | None = TIMEOUT_S) -> Acceptance:
        """The scheduler's verdict on the submit. Raises `CommandRejectedError` (`DuplicateJobError`)."""
        return self._operations.accepted(self.job_id, self._command_id, adopt=self._adopt)

    def result(self, timeout: float | None = None) -> Any:
        """What the job returned.

        Raises `JobFailedError`, `JobTimedOutError`, `JobCancelledError`, `CommandRejectedError`, `ResultTimeoutError`,
        and `StandstillError` without a time-out.
        """
        return result_of(self._end(timeout), self._operations.decode_result)

    def wait(self, timeout: float | None = None) -> JobStatus:
        """The terminal status, whichever it is. Raises as `result` does, but for the job's own end."""
        self._end(timeout)
        status = self._operations.progress(self.job_id).status
        assert status is not None  # it has ended
        return status

    def status(self, timeout: float | None = TIMEOUT_S) -> JobStatus | None:
        """Where the job stands; commands are decided, time stays. Raises `CommandRejectedError`."""
        self._operations.check_accepted(self.job_id, self._command_id, adopt=self._adopt)
        return self._operations.progress(self.job_id).status

    def get(self, timeout: float | None = TIMEOUT_S, *, fresh: bool = True) -> JobInfo:
        """All about the job. Raises `JobNotFoundError`."""
        return self._operations.get(self.job_id)

    def history(self, timeout: float | None = TIMEOUT_S) -> list[HistoryEntry]:
        """Every event of the job, as the real handle gives it."""
        return self._operations.history(self.job_id)

    def cancel(self, reason: str = "", *, timeout: float | None = TIMEOUT_S) -> CancelOutcome:
        """Ask that the job does not run, or stops; waits until a running attempt has ended."""
        return self._operations.cancel(self.job_id, reason, timeout, wait=True)

    def reschedule(
        self,
        *,
        run_at: datetime | None = None,
        delay: float | timedelta | None = None,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,
    ) -> datetime:
        """Give the waiting job another time. Returns when it is due. Raises `CommandRejectedError`."""
        return self._operations.reschedule(self.job_id, run_at, delay, reason)

    def retry(
        self, reason: str = "", *, new_job_id: str | None = None, timeout: float | None = TIMEOUT_S
    ) -> "VirtualJobHandle":
        """Run the terminal job again as a new job. Raises `CommandRejectedError`."""
        new_id, command_id = self._operations.retry(self.job_id, reason, new_job_id)
        return VirtualJobHandle(self._operations, new_id, command_id)

    # What a test wants to know beyond that.

    @property
    def events(self) -> Sequence[JobEvent]:
        """What was decided about the job until now, refusals included."""
        return self._operations.events(self.job_id)

    @property
    def attempts(self) -> int:
        """How many attempts were started."""
        return self._operations.progress(self.job_id).attempts

    @property
    def error(self) -> AttemptError | None:
        """The last error that an attempt raised."""
        return self._operations.progress(self.job_id).error

    @property
    def progress(self) -> tuple[float | None, str | None]:
        """What the latest attempt told of its progress: a fraction, a note."""
        return self._operations.reported_progress(self.job_id)

    @property
    def logs(self) -> Sequence[LogCaptured]:
        """What each ended attempt wrote to stdout, stderr and logging."""
        return self._operations.logs(self.job_id)

    @property
    def output(self) -> str:
        """The same as one text."""
        return "".join(log.text for log in self.logs)

    @property
    def story(self) -> str:
        """The history in words."""
        return self._operations.story(self.job_id)

    # Assertions.

    def assert_status(self, status: JobStatus | None) -> None:
        """It stands there now."""
        found = self._operations.progress(self.job_id).status
        if found is not status:
            self._fail(f"expected {_name(status)}, found {_name(found)}")

    def assert_completed(self, result: Any = _ANYTHING) -> None:
        """It has completed; with this result, if one is given."""
        self.assert_status(JobStatus.COMPLETED)
        end = self._operations.progress(self.job_id).terminal
        if result is not _ANYTHING and isinstance(end, JobCompleted):
            found = result_of(end, self._operations.decode_result)
            if found != result:
                self._fail(f"expected the result {result!r}, found {found!r}")

    def assert_failed(self, error: type[BaseException] | str | None = None, *, match: str | None = None) -> None:
        """It has failed for good; with an error of this type (a class, or its name), whose message contains `match`."""
        self.assert_status(JobStatus.FAILED)
        end = self._operations.progress(self.job_id).terminal
        found = end.error if isinstance(end, JobFailed) else None
        if error is not None:
            wanted = error if isinstance(error, str) else error.__qualname__
            kind = "" if found is None else found.type
            if kind != wanted and not kind.endswith(f".{wanted}"):
                self._fail(f"expected an error of type {wanted}, found {kind or 'none'}")
        if match is not None and (found is None or match not in found.message):
            self._fail(
                f"expected {match!r} in the error's message, found {'no error' if found is None else found.message!r}"
            )

    def assert_timed_out(self) -> None:
        """Its last allowed attempt ran too long."""
        self.assert_status(JobStatus.TIMED_OUT)

    def assert_cancelled(self, code: str | None = None) -> None:
        """It was cancelled; for this reason (a `CancelCode`), if one is given."""
        self.assert_status(JobStatus.CANCELLED)
        end = self._operations.progress(self.job_id).terminal
        if code is not None and isinstance(end, JobCancelled) and end.cancel_code != code:
            self._fail(f"expected it to be cancelled as {code}, found {end.cancel_code}")

    def assert_attempts(self, count: int) -> None:
        """So many attempts were started."""
        if self.attempts != count:
            self._fail(f"expected {count} attempt{'' if count == 1 else 's'}, found {self.attempts}")

    def assert_events(self, *names: str) -> None:
        """Exactly these kinds of events, in this order: `"JobSubmitted", "JobStarted", …`."""
        found = tuple(type(event).__name__ for event in self.events)
        if found != names:
            self._fail(f"expected the events {', '.join(names) or 'none'}; found {', '.join(found) or 'none'}")

    def _end(self, timeout: float | None) -> Terminal:
        return self._operations.end(self.job_id, self._command_id, timeout, adopt=self._adopt)

    def _fail(self, what: str) -> NoReturn:
        raise AssertionError(f"{what}\n{self.story}")


def _name(status: JobStatus | None) -> str:
    return "no verdict yet" if status is None else status.name
