"""Handles: one job, for callers that block and for callers that await."""

from datetime import datetime, timedelta
from typing import Any

from mainspring.client.core import ClientCore
from mainspring.client.info import JobInfo
from mainspring.client.outcomes import Acceptance, CancelOutcome
from mainspring.client.queries import HistoryEntry, Queries
from mainspring.client.steps import drive, drive_async
from mainspring.client.watch import Watch
from mainspring.client.wire import Deadline
from mainspring.schemas.common import JobStatus

__all__ = ["AsyncJobHandle", "JobHandle"]

TIMEOUT_S = 10.0
"""How long a question that a healthy cluster answers in milliseconds may take."""


class _Handle:
    """One job. While it lives its client tells it of the job whenever someone waits; dropped, it costs nothing."""

    def __init__(self, core: ClientCore, queries: Queries, watch: Watch) -> None:
        self._core = core
        self._queries = queries
        self._watch = watch

    @property
    def job_id(self) -> str:
        """The id of the job."""
        return self._watch.job_id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.job_id!r}>"


class JobHandle(_Handle):
    """One job, for callers that block. Time-outs are seconds; None waits for ever. May be used from several threads."""

    def accepted(self, timeout: float | None = TIMEOUT_S) -> Acceptance:
        """The scheduler's verdict on the submit.

        Raises `CommandRejectedError` (`DuplicateJobError`), `VerdictTimeoutError`, `EventsUnavailableError`.
        """
        return drive(self._core.accepted(self._watch, Deadline(timeout)))

    def result(self, timeout: float | None = None) -> Any:
        """What the job returned, decoded.

        Raises `JobFailedError`, `JobTimedOutError`, `JobCancelledError`, `CommandRejectedError`, `ResultTimeoutError`,
        `EventsUnavailableError`.
        """
        return drive(self._core.result(self._watch, Deadline(timeout)))

    def wait(self, timeout: float | None = None) -> JobStatus:
        """The terminal status, whichever it is. Raises `CommandRejectedError`, `ResultTimeoutError`."""
        return drive(self._core.end(self._watch, Deadline(timeout)))

    def status(self, timeout: float | None = TIMEOUT_S) -> JobStatus | None:
        """Where the job stands by everything committed until now; None while the submit is not decided."""
        return drive(self._core.status(self._watch, Deadline(timeout)))

    def get(self, timeout: float | None = TIMEOUT_S, *, fresh: bool = True) -> JobInfo:
        """All about the job; as `Client.get`."""
        return drive(self._queries.get(self.job_id, Deadline(timeout), fresh=fresh))

    def history(self, timeout: float | None = TIMEOUT_S) -> list[HistoryEntry]:
        """The events of the job; as `Client.history`."""
        return drive(self._queries.history(self.job_id, Deadline(timeout)))

    def cancel(self, reason: str = "", *, timeout: float | None = TIMEOUT_S) -> CancelOutcome:
        """Ask that the job does not run, or stops; as `Client.cancel`."""
        return drive(self._core.cancel(self.job_id, reason, Deadline(timeout)))

    def reschedule(
        self,
        *,
        run_at: datetime | None = None,
        delay: float | timedelta | None = None,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,
    ) -> datetime:
        """Give the waiting job another time; as `Client.reschedule`."""
        return drive(self._core.reschedule(self.job_id, run_at, delay, reason, Deadline(timeout)))

    def retry(
        self, reason: str = "", *, new_job_id: str | None = None, timeout: float | None = TIMEOUT_S
    ) -> "JobHandle":
        """Run the terminal job again as a new job; as `Client.retry`."""
        watch = drive(self._core.retry(self.job_id, new_job_id, reason, Deadline(timeout)))
        return JobHandle(self._core, self._queries, watch)


class AsyncJobHandle(_Handle):
    """One job, for callers that await. The methods are those of `JobHandle`; any task of the loop may use it."""

    async def accepted(self, timeout: float | None = TIMEOUT_S) -> Acceptance:  # noqa: ASYNC109 - as in JobHandle
        """The scheduler's verdict on the submit; as `JobHandle.accepted`."""
        return await drive_async(self._core.accepted(self._watch, Deadline(timeout)))

    async def result(self, timeout: float | None = None) -> Any:  # noqa: ASYNC109 - as in JobHandle
        """What the job returned, decoded; as `JobHandle.result`."""
        return await drive_async(self._core.result(self._watch, Deadline(timeout)))

    async def wait(self, timeout: float | None = None) -> JobStatus:  # noqa: ASYNC109 - as in JobHandle
        """The terminal status, whichever it is; as `JobHandle.wait`."""
        return await drive_async(self._core.end(self._watch, Deadline(timeout)))

    async def status(self, timeout: float | None = TIMEOUT_S) -> JobStatus | None:  # noqa: ASYNC109 - as in JobHandle
        """Where the job stands by everything committed until now; as `JobHandle.status`."""
        return await drive_async(self._core.status(self._watch, Deadline(timeout)))

    async def get(
        self,
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in JobHandle
        *,
        fresh: bool = True,
    ) -> JobInfo:
        """All about the job; as `Client.get`."""
        return await drive_async(self._queries.get(self.job_id, Deadline(timeout), fresh=fresh))

    async def history(self, timeout: float | None = TIMEOUT_S) -> list[HistoryEntry]:  # noqa: ASYNC109 - as in JobHandle
        """The events of the job; as `Client.history`."""
        return await drive_async(self._queries.history(self.job_id, Deadline(timeout)))

    async def cancel(
        self,
        reason: str = "",
        *,
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in JobHandle
    ) -> CancelOutcome:
        """Ask that the job does not run, or stops; as `Client.cancel`."""
        return await drive_async(self._core.cancel(self.job_id, reason, Deadline(timeout)))

    async def reschedule(
        self,
        *,
        run_at: datetime | None = None,
        delay: float | timedelta | None = None,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in JobHandle
    ) -> datetime:
        """Give the waiting job another time; as `Client.reschedule`."""
        return await drive_async(self._core.reschedule(self.job_id, run_at, delay, reason, Deadline(timeout)))

    async def retry(
        self,
        reason: str = "",
        *,
        new_job_id: str | None = None,
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in JobHandle
    ) -> "AsyncJobHandle":
        """Run the terminal job again as a new job; as `Client.retry`."""
        watch = await drive_async(self._core.retry(self.job_id, new_job_id, reason, Deadline(timeout)))
        return AsyncJobHandle(self._core, self._queries, watch)
