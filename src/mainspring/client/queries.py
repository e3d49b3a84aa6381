"""Questions about jobs: answered by the view, and about one job also by the log itself."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, cast

from mainspring.client.core import ClientCore
from mainspring.client.errors import JobNotFoundError, ViewBehindError, ViewUnavailableError
from mainspring.client.info import JobInfo, epoch_ms
from mainspring.client.outcomes import result_of
from mainspring.client.progress import JobEvent, Progress
from mainspring.client.steps import Steps, wait
from mainspring.client.wire import Deadline
from mainspring.schemas.common import JobStatus, Priority
from mainspring.schemas.events import JobCompleted
from mainspring.schemas.records import JOB_EVENT_TYPES

if TYPE_CHECKING:
    from mainspring.processors.projector.model import JobDetail, JobFilter, JobOrder, JobPage
    from mainspring.processors.projector.view import View

__all__ = ["Filters", "HistoryEntry", "Queries"]


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One event of a job, and where it stands in `events`."""

    partition: int
    offset: int
    event: JobEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which jobs to list: every condition that is given must hold.

    `since` ≤ submitted < `until`; `text` is part of the id or the name.
    """

    status: Iterable[JobStatus] = ()
    queue: str | None = None
    name: str | None = None
    tenant: str | None = None
    tag: str | None = None
    priority: Priority | None = None
    schedule_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None

    def to_model(self) -> "JobFilter":
        """The same for the view."""
        from mainspring.processors.projector.model import JobFilter

        return JobFilter(
            status=tuple(self.status),
            queue=self.queue,
            name=self.name,
            tenant=self.tenant,
            tag=self.tag,
            priority=self.priority,
            schedule_id=self.schedule_id,
            since_ms=None if self.since is None else epoch_ms(self.since),
            until_ms=None if self.until is None else epoch_ms(self.until),
            text=self.text,
        )


class Queries:
    """Reads for one client, which wait for its own commands if asked to (`fresh`)."""

    def __init__(self, core: ClientCore) -> None:
        self._core = core
        self._url = core.config.view_url
        self._lock = threading.Lock()
        self._view: View | None = None

    def get(self, job_id: str, deadline: Deadline, *, fresh: bool) -> Steps[JobInfo]:
        """The job by the view, else by its partition of the log. Raises `JobNotFoundError`, `ViewBehindError`."""
        view = yield from self.opened()
        partition = self._core.wire.partition_of(job_id)
        if view is None:
            return (yield from self._folded(job_id, deadline, fresh=fresh))
        if fresh:
            yield from self.caught_up(view, [partition], job_id, deadline)
        detail = yield from wait(self._core.wire.in_background(view.get, job_id), deadline.left())
        if detail is None:
            raise JobNotFoundError(job_id, "the view")
        if detail.result is not None and len(detail.result) < (detail.result_bytes or 0):
            return (
                yield from self._folded(job_id, deadline, fresh=False)
            )  # the view keeps only the head of a large result
        return JobInfo.of_detail(detail, self._result(detail))

    def page(
        self,
        filters: Filters,
        order: "JobOrder | str",
        limit: int,
        cursor: str | None,
        deadline: Deadline,
        *,
        fresh: bool,
    ) -> Steps["JobPage"]:
        """One page of jobs by the view. Raises `ViewUnavailableError`, `ViewBehindError`."""
        view = yield from self.opened()
        if view is None:
            raise ViewUnavailableError("list")
        from mainspring.processors.projector.model import JobOrder

        if fresh:
            yield from self.caught_up(view, self._core.wire.partitions, None, deadline)
        conditions, by = filters.to_model(), JobOrder(order)

        def page() -> "JobPage":
            return view.list(conditions, order=by, limit=limit, cursor=cursor)

        return (yield from wait(self._core.wire.in_background(page), deadline.left()))

    def history(self, job_id: str, deadline: Deadline) -> Steps[list[HistoryEntry]]:
        """Every event of the job, refusals included, out of the log."""
        wire = self._core.wire
        partition = wire.partition_of(job_id)
        events, _ = yield from wire.scan(partition, job_id.encode(), wire.hint(job_id), deadline)
        return [
            HistoryEntry(partition, offset, cast(JobEvent, event))
            for event, offset in events
            if type(event) in JOB_EVENT_TYPES
        ]

    def close(self) -> None:
        """Close the view."""
        with self._lock:
            view, self._view = self._view, None
        if view is not None:
            view.close()

    def opened(self) -> Steps["View | None"]:
        """The view; None where there is none, or nothing installed to read it with."""
        self._core.wire.check_usable()
        if self._url is None or self._view is not None:
            return self._view
        return (yield from wait(self._core.wire.in_background(self._open, self._url)))

    def _open(self, url: str) -> "View | None":
        """None when there is no view (yet), or nothing installed to read it with; the next question looks again."""
        try:
            from mainspring.processors.projector.errors import ViewAbsentError
            from mainspring.processors.projector.view import View
        except ModuleNotFoundError:  # the extra that brings SQL is not installed
            return None
        with self._lock:
            if self._view is None:
                try:
                    self._view = View(url)
                except ViewAbsentError:
                    return None
            return self._view

    def caught_up(self, view: "View", partitions: Iterable[int], job_id: str | None, deadline: Deadline) -> Steps[None]:
        """Returns when the view has seen what this client has sent to these partitions. Raises `ViewBehindError`."""
        yield from self._core.own_commands_decided(partitions, deadline)
        for partition in partitions:
            watch = self._core.wire.last.get(partition)
            if watch is None or watch.verdict is None:
                continue
            left = deadline.left()
            waiting = self._core.wire.in_background(
                view.wait_for, partition, watch.verdict.offset, 3600.0 if left is None else left
            )
            if not (yield from wait(waiting)):
                raise ViewBehindError(job_id, deadline.timeout_s or 0.0)

    def _folded(self, job_id: str, deadline: Deadline, *, fresh: bool) -> Steps[JobInfo]:
        wire = self._core.wire
        partition = wire.partition_of(job_id)
        if fresh:
            yield from self._core.own_commands_decided([partition], deadline)
        events, _ = yield from wire.scan(partition, job_id.encode(), wire.hint(job_id), deadline)
        progress = Progress(keep_spec=True)
        for event, _ in events:
            if type(event) in JOB_EVENT_TYPES:  # the id may be that of a schedule, too
                progress.apply(cast(JobEvent, event))
        if progress.spec is None:
            raise JobNotFoundError(job_id, "the log")
        end = progress.terminal
        result = result_of(end, self._core.config.decode_result) if isinstance(end, JobCompleted) else None
        return JobInfo.of_events(progress, result)

    def _result(self, detail: "JobDetail") -> object:
        if detail.result is None:
            return None
        return self._core.config.decode_result(detail.result, detail.result_content_type or "application/json")
