"""The client for callers that await."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from mainspring.client.commands import Arguments, IfExists, Submission, Terms, adopts, to_options
from mainspring.client.config import ClientConfig
from mainspring.client.core import ClientCore
from mainspring.client.handle import TIMEOUT_S, AsyncJobHandle
from mainspring.client.info import JobInfo
from mainspring.client.outcomes import CancelOutcome
from mainspring.client.queries import Filters, HistoryEntry, Queries
from mainspring.client.schedules.awaiting import AsyncSchedules
from mainspring.client.schedules.core import ScheduleCore
from mainspring.client.steps import drive_async
from mainspring.client.watch import Watch
from mainspring.client.wire import Deadline
from mainspring.jobs.spec import Submittable

if TYPE_CHECKING:
    from mainspring.processors.projector.model import JobOrder, JobPage
    from mainspring.settings import Settings

__all__ = ["AsyncClient"]


class AsyncClient:
    """`Client` for asyncio: the same operations, arguments and errors, awaited. The event loop is never blocked."""

    def __init__(
        self,
        settings: "Settings | None" = None,
        *,
        bootstrap: str | None = None,
        actor: str | None = None,
        config: ClientConfig | None = None,
    ) -> None:
        self._core = ClientCore(config or ClientConfig.of(settings, bootstrap=bootstrap, actor=actor))
        self._queries = Queries(self._core)
        self.schedules = AsyncSchedules(ScheduleCore(self._core, self._queries), self._handle)

    async def submit(
        self,
        job: Submittable,
        args: Arguments = None,
        *,
        reason: str = "",
        if_exists: IfExists = "raise",
        **terms: Unpack[Terms],
    ) -> AsyncJobHandle:
        """Put one job into the log; as `Client.submit`."""
        submission = Submission(job, args)
        adopt = adopts(if_exists)
        return self._handle(await drive_async(self._core.submit(submission, to_options(terms), reason, adopt=adopt)))

    async def submit_many(
        self,
        jobs: Iterable[Submission | Submittable],
        *,
        reason: str = "",
        if_exists: IfExists = "raise",
        **terms: Unpack[Terms],
    ) -> list[AsyncJobHandle]:
        """Put many jobs into the log with one flush; as `Client.submit_many`. Another thread takes them."""
        adopt = adopts(if_exists)
        watches = await asyncio.to_thread(self._core.submit_many, jobs, to_options(terms), reason, adopt=adopt)
        return [self._handle(watch) for watch in watches]

    async def cancel(
        self,
        job_id: str,
        reason: str = "",
        *,
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Client
        wait: bool = True,
    ) -> CancelOutcome:
        """Ask that a job does not run, or stops; as `Client.cancel`."""
        return await drive_async(self._core.cancel(job_id, reason, Deadline(timeout), wait_for_end=wait))

    async def reschedule(
        self,
        job_id: str,
        *,
        run_at: datetime | None = None,
        delay: float | timedelta | None = None,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Client
    ) -> datetime:
        """Give a waiting job another time; as `Client.reschedule`."""
        return await drive_async(self._core.reschedule(job_id, run_at, delay, reason, Deadline(timeout)))

    async def retry(
        self,
        job_id: str,
        reason: str = "",
        *,
        new_job_id: str | None = None,
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Client
    ) -> AsyncJobHandle:
        """Run a terminal job again, as a new job; as `Client.retry`."""
        return self._handle(await drive_async(self._core.retry(job_id, new_job_id, reason, Deadline(timeout))))

    def handle(self, job_id: str, *, since: datetime | None = None) -> AsyncJobHandle:
        """A handle for a job that was submitted earlier or elsewhere; as `Client.handle`."""
        return self._handle(self._core.known(job_id, since))

    async def get(
        self,
        job_id: str,
        *,
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Client
        fresh: bool = True,
    ) -> JobInfo:
        """All about one job; as `Client.get`."""
        return await drive_async(self._queries.get(job_id, Deadline(timeout), fresh=fresh))

    async def list(
        self,
        filters: Filters | None = None,
        *,
        order: "JobOrder | str" = "newest",
        limit: int = 100,
        cursor: str | None = None,
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Client
        fresh: bool = True,
    ) -> "JobPage":
        """One page of jobs from the view; as `Client.list`."""
        asked = self._queries.page(filters or Filters(), order, limit, cursor, Deadline(timeout), fresh=fresh)
        return await drive_async(asked)

    async def history(
        self,
        job_id: str,
        *,
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Client
    ) -> Sequence[HistoryEntry]:
        """Every event of a job, from the log; as `Client.history`."""
        return await drive_async(self._queries.history(job_id, Deadline(timeout)))

    async def close(self) -> None:
        """Wait for commands on their way and end all threads; as `Client.close`."""
        await asyncio.to_thread(self._core.close)
        await asyncio.to_thread(self._queries.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _handle(self, watch: Watch) -> AsyncJobHandle:
        return AsyncJobHandle(self._core, self._queries, watch)
