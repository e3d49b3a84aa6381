"""The kit as an `AsyncClient` has it: the same operations as coroutines."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from mainspring.client.commands import Arguments, IfExists, Submission, Terms
from mainspring.client.info import JobInfo
from mainspring.client.outcomes import Acceptance, CancelOutcome
from mainspring.client.queries import HistoryEntry
from mainspring.client.schedules.awaiting import AsyncSchedules
from mainspring.jobs.models import JobStatus
from mainspring.jobs.spec import Submittable
from mainspring.testing.handle import TIMEOUT_S, VirtualJobHandle

if TYPE_CHECKING:
    from mainspring.testing.kit import Mainspring

__all__ = ["AsyncVirtualClient", "AsyncVirtualJobHandle"]


class AsyncVirtualJobHandle:
    """One job, for callers that await; `blocking` is its handle with the assertions."""

    def __init__(self, handle: VirtualJobHandle) -> None:
        self.blocking = handle

    @property
    def job_id(self) -> str:
        """The id of the job."""
        return self.blocking.job_id

    async def accepted(self, timeout: float | None = TIMEOUT_S) -> Acceptance:  # noqa: ASYNC109  # as in AsyncJobHandle
        """As `VirtualJobHandle.accepted`."""
        return self.blocking.accepted(timeout)

    async def result(self, timeout: float | None = None) -> Any:  # noqa: ASYNC109  # as in AsyncJobHandle
        """As `VirtualJobHandle.result`."""
        return self.blocking.result(timeout)

    async def wait(self, timeout: float | None = None) -> JobStatus:  # noqa: ASYNC109  # as in AsyncJobHandle
        """As `VirtualJobHandle.wait`."""
        return self.blocking.wait(timeout)

    async def status(self, timeout: float | None = TIMEOUT_S) -> JobStatus | None:  # noqa: ASYNC109  # the same
        """As `VirtualJobHandle.status`."""
        return self.blocking.status(timeout)

    async def get(self, timeout: float | None = TIMEOUT_S, *, fresh: bool = True) -> JobInfo:  # noqa: ASYNC109  # the same
        """As `VirtualJobHandle.get`."""
        return self.blocking.get(timeout, fresh=fresh)

    async def history(self, timeout: float | None = TIMEOUT_S) -> list[HistoryEntry]:  # noqa: ASYNC109  # the same
        """As `VirtualJobHandle.history`."""
        return self.blocking.history(timeout)

    async def cancel(self, reason: str = "", *, timeout: float | None = TIMEOUT_S) -> CancelOutcome:  # noqa: ASYNC109  # the same
        """As `VirtualJobHandle.cancel`."""
        return self.blocking.cancel(reason, timeout=timeout)

    async def reschedule(
        self,
        *,
        run_at: datetime | None = None,
        delay: float | timedelta | None = None,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109  # the same
    ) -> datetime:
        """As `VirtualJobHandle.reschedule`."""
        return self.blocking.reschedule(run_at=run_at, delay=delay, reason=reason)

    async def retry(
        self,
        reason: str = "",
        *,
        new_job_id: str | None = None,
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109  # the same
    ) -> "AsyncVirtualJobHandle":
        """As `VirtualJobHandle.retry`."""
        return AsyncVirtualJobHandle(self.blocking.retry(reason, new_job_id=new_job_id))


class AsyncVirtualClient:
    """Submits to the kit and follows jobs, for code that awaits. The methods are those of `AsyncClient`."""

    def __init__(self, kit: "Mainspring") -> None:
        self._kit = kit
        blocking = kit.schedules
        self.schedules = AsyncSchedules(
            blocking.core,
            lambda watch: AsyncVirtualJobHandle(blocking.handle_of(watch)),
        )

    async def submit(
        self,
        job: Submittable,
        args: Arguments = None,
        *,
        reason: str = "",
        if_exists: IfExists = "raise",
        **terms: Unpack[Terms],
    ) -> AsyncVirtualJobHandle:
        """As `Mainspring.submit`."""
        return AsyncVirtualJobHandle(self._kit.submit(job, args, reason=reason, if_exists=if_exists, **terms))

    async def submit_many(
        self,
        jobs: Iterable[Submission | Submittable],
        *,
        reason: str = "",
        if_exists: IfExists = "raise",
        **terms: Unpack[Terms],
    ) -> list[AsyncVirtualJobHandle]:
        """As `Mainspring.submit_many`."""
        handles = self._kit.submit_many(jobs, reason=reason, if_exists=if_exists, **terms)
        return [AsyncVirtualJobHandle(handle) for handle in handles]

    async def cancel(
        self,
        job_id: str,
        reason: str = "",
        *,
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109  # as in AsyncClient
        wait: bool = True,
    ) -> CancelOutcome:
        """As `Mainspring.cancel`."""
        return self._kit.cancel(job_id, reason, timeout=timeout, wait=wait)

    async def reschedule(
        self,
        job_id: str,
        *,
        run_at: datetime | None = None,
        delay: float | timedelta | None = None,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109  # the same
    ) -> datetime:
        """As `Mainspring.reschedule`."""
        return self._kit.reschedule(job_id, run_at=run_at, delay=delay, reason=reason)

    async def retry(
        self,
        job_id: str,
        reason: str = "",
        *,
        new_job_id: str | None = None,
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109  # the same
    ) -> AsyncVirtualJobHandle:
        """As `Mainspring.retry`."""
        return AsyncVirtualJobHandle(self._kit.retry(job_id, reason, new_job_id=new_job_id))

    def handle(self, job_id: str, *, since: datetime | None = None) -> AsyncVirtualJobHandle:
        """As `Mainspring.handle`."""
        return AsyncVirtualJobHandle(self._kit.handle(job_id))

    async def get(
        self,
        job_id: str,
        *,
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109  # the same
        fresh: bool = True,
    ) -> JobInfo:
        """As `Mainspring.get`."""
        return self._kit.get(job_id)

    async def history(self, job_id: str, *, timeout: float | None = TIMEOUT_S) -> Sequence[HistoryEntry]:  # noqa: ASYNC109  # the same
        """As `Mainspring.history`."""
        return self._kit.history(job_id)

    async def close(self) -> None:
        """Nothing: the kit belongs to the test."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
