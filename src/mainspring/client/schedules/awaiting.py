"""`client.schedules` for callers that await."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Generic, TypeVar, Unpack

from mainspring.client.commands import Arguments
from mainspring.client.handle import TIMEOUT_S
from mainspring.client.schedules.core import ScheduleCore
from mainspring.client.schedules.definition import Policies
from mainspring.client.schedules.info import (
    AcceptedBackfill,
    AcceptedChange,
    Declaration,
    PlannedUpdate,
    ScheduleEntry,
    ScheduleFilters,
    ScheduleInfo,
)
from mainspring.client.schedules.rules import Timing
from mainspring.client.steps import drive_async
from mainspring.client.watch import Watch
from mainspring.client.wire import Deadline
from mainspring.jobs.options import JobOptions
from mainspring.jobs.spec import Submittable

if TYPE_CHECKING:
    from mainspring.processors.projector.schedulemodel import ScheduleOrder, SchedulePage

__all__ = ["AsyncSchedules"]

H = TypeVar("H")
"""The handles of jobs that the client gives."""


class AsyncSchedules(Generic[H]):
    """`Schedules` for asyncio: the same operations, arguments and errors, awaited."""

    def __init__(self, core: ScheduleCore, handle: Callable[[Watch], H]) -> None:
        self.core = core
        self.handle_of = handle

    async def create(
        self,
        schedule_id: str,
        when: Timing,
        job: Submittable,
        args: Arguments = None,
        *,
        options: JobOptions | None = None,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Schedules
        **policies: Unpack[Policies],
    ) -> ScheduleInfo:
        """Have a job fired by the plan from now on; as `Schedules.create`."""
        steps = self.core.create(schedule_id, when, job, args, options, reason, policies, Deadline(timeout))
        return await drive_async(steps)

    async def update(
        self,
        schedule_id: str,
        *,
        when: Timing | None = None,
        job: Submittable | None = None,
        args: Arguments = None,
        options: JobOptions | None = None,
        expected_version: int | None = None,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Schedules
        **policies: Unpack[Policies],
    ) -> AcceptedChange:
        """Go on by another definition: what is given replaces what it had, all else stays; as `Schedules.update`."""
        deadline = Deadline(timeout)
        plan = await drive_async(self.core.plan_update(schedule_id, when, job, args, options, policies, deadline))
        return await drive_async(self.core.update(plan, expected_version, reason, deadline))

    async def declare(
        self,
        schedule_id: str,
        when: Timing,
        job: Submittable,
        args: Arguments = None,
        *,
        options: JobOptions | None = None,
        dry_run: bool = False,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Schedules
        **policies: Unpack[Policies],
    ) -> Declaration:
        """Have a schedule with exactly this definition, whether it is there or not; as `Schedules.declare`."""
        steps = self.core.declare(
            schedule_id, when, job, args, options, reason, policies, Deadline(timeout), dry_run=dry_run
        )
        return await drive_async(steps)

    async def plan_update(
        self,
        schedule_id: str,
        *,
        when: Timing | None = None,
        job: Submittable | None = None,
        args: Arguments = None,
        options: JobOptions | None = None,
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Schedules
        **policies: Unpack[Policies],
    ) -> PlannedUpdate:
        """What `update` with these arguments would change; as `Schedules.plan_update`."""
        return await drive_async(
            self.core.plan_update(schedule_id, when, job, args, options, policies, Deadline(timeout))
        )

    async def send_update(
        self,
        plan: PlannedUpdate,
        *,
        expected_version: int | None = None,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Schedules
    ) -> AcceptedChange:
        """Carry out what `plan_update` gave; as `Schedules.send_update`."""
        return await drive_async(self.core.update(plan, expected_version, reason, Deadline(timeout)))

    async def pause(
        self,
        schedule_id: str,
        note: str = "",
        *,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Schedules
    ) -> AcceptedChange:
        """Fire nothing until it is resumed; as `Schedules.pause`."""
        return await drive_async(self.core.pause(schedule_id, note, reason, Deadline(timeout)))

    async def resume(
        self,
        schedule_id: str,
        *,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Schedules
    ) -> AcceptedChange:
        """Go on with what is planned from now on; as `Schedules.resume`."""
        return await drive_async(self.core.resume(schedule_id, reason, Deadline(timeout)))

    async def trigger(
        self,
        schedule_id: str,
        *,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Schedules
    ) -> H:
        """Fire one instance now, beside the plan and whatever the policies say; as `Schedules.trigger`."""
        watch = await drive_async(self.core.trigger(schedule_id, reason, Deadline(timeout)))
        return self.handle_of(watch)

    async def backfill(
        self,
        schedule_id: str,
        since: datetime,
        until: datetime,
        *,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Schedules
    ) -> AcceptedBackfill:
        """Fire the occurrences of a range in the past; as `Schedules.backfill`."""
        return await drive_async(self.core.backfill(schedule_id, since, until, reason, Deadline(timeout)))

    async def delete(
        self,
        schedule_id: str,
        *,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Schedules
    ) -> AcceptedChange:
        """End a schedule for good; as `Schedules.delete`."""
        return await drive_async(self.core.delete(schedule_id, reason, Deadline(timeout)))

    async def get(
        self,
        schedule_id: str,
        *,
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Schedules
        fresh: bool = True,
    ) -> ScheduleInfo:
        """All about one schedule; as `Schedules.get`."""
        return await drive_async(self.core.get(schedule_id, Deadline(timeout), fresh=fresh))

    async def list(
        self,
        filters: ScheduleFilters | None = None,
        *,
        order: "ScheduleOrder | str" = "id",
        limit: int = 100,
        cursor: str | None = None,
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Schedules
        fresh: bool = True,
    ) -> "SchedulePage":
        """One page of schedules from the view; as `Schedules.list`."""
        deadline = Deadline(timeout)
        return await drive_async(
            self.core.page(filters or ScheduleFilters(), order, limit, cursor, deadline, fresh=fresh)
        )

    async def history(
        self,
        schedule_id: str,
        *,
        since: datetime | None = None,
        timeout: float | None = TIMEOUT_S,  # noqa: ASYNC109 - as in Schedules
    ) -> Sequence[ScheduleEntry]:
        """Every event of a schedule, from the log; as `Schedules.history`."""
        return await drive_async(self.core.history(schedule_id, since, Deadline(timeout)))
