"""`client.schedules` for callers that block."""

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
from mainspring.client.steps import drive
from mainspring.client.watch import Watch
from mainspring.client.wire import Deadline
from mainspring.jobs.options import JobOptions
from mainspring.jobs.spec import Submittable

if TYPE_CHECKING:
    from mainspring.processors.projector.schedulemodel import ScheduleOrder, SchedulePage

__all__ = ["Schedules"]

H = TypeVar("H")
"""The handles of jobs that the client gives."""


class Schedules(Generic[H]):
    """Recurring schedules, as the log decides on them: every command waits for the scheduler's verdict.

    Each may raise `ScheduleNotFoundError`, `ScheduleRejectedError` (with the code of the refusal), `NotDeliveredError`,
    `VerdictTimeoutError` and `InvalidScheduleError` (nothing was sent). `timeout` is in seconds; None waits for ever.
    """

    def __init__(self, core: ScheduleCore, handle: Callable[[Watch], H]) -> None:
        self.core = core
        self.handle_of = handle

    def create(
        self,
        schedule_id: str,
        when: Timing,
        job: Submittable,
        args: Arguments = None,
        *,
        options: JobOptions | None = None,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,
        **policies: Unpack[Policies],
    ) -> ScheduleInfo:
        """Have a job fired by the plan from now on.

        `when` is `Every(…)`, `Cron(…)`, several of them, or `When(…)`. `job` and `args` are as in `Client.submit`, and
        `options` the terms of each instance, but for ids and instants. Raises `DuplicateScheduleError`, too.
        """
        steps = self.core.create(schedule_id, when, job, args, options, reason, policies, Deadline(timeout))
        return drive(steps)

    def update(
        self,
        schedule_id: str,
        *,
        when: Timing | None = None,
        job: Submittable | None = None,
        args: Arguments = None,
        options: JobOptions | None = None,
        expected_version: int | None = None,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,
        **policies: Unpack[Policies],
    ) -> AcceptedChange:
        """Go on by another definition: what is given replaces what it had, all else stays.

        `when` is the whole timing: `when=Cron(…)` also drops the exclusions, calendars, zone, start, end and jitter
        that it had; to keep them, give a `When` that has them. `args` or `options` without a `job` change those of the
        job it has. What runs keeps the version it was fired with. The schedule is read first, and
        `VersionConflictError` is raised if somebody else changes it meanwhile, or it has not `expected_version`.
        """
        deadline = Deadline(timeout)
        plan = drive(self.core.plan_update(schedule_id, when, job, args, options, policies, deadline))
        return drive(self.core.update(plan, expected_version, reason, deadline))

    def declare(
        self,
        schedule_id: str,
        when: Timing,
        job: Submittable,
        args: Arguments = None,
        *,
        options: JobOptions | None = None,
        dry_run: bool = False,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,
        **policies: Unpack[Policies],
    ) -> Declaration:
        """Have a schedule with exactly this definition, whether it is there or not: for deployments, again and again.

        Arguments as for `create`; what is not given is as `create` has it, and not as the schedule had it. Nothing is
        written where it has the definition already, and no pause or history is touched. Says what it did; `dry_run`
        says what it would do, and sends nothing. The schedule is read from the log (cost as for `history`).
        """
        steps = self.core.declare(
            schedule_id, when, job, args, options, reason, policies, Deadline(timeout), dry_run=dry_run
        )
        return drive(steps)

    def plan_update(
        self,
        schedule_id: str,
        *,
        when: Timing | None = None,
        job: Submittable | None = None,
        args: Arguments = None,
        options: JobOptions | None = None,
        timeout: float | None = TIMEOUT_S,
        **policies: Unpack[Policies],
    ) -> PlannedUpdate:
        """What `update` with these arguments would change. Nothing is sent."""
        return drive(self.core.plan_update(schedule_id, when, job, args, options, policies, Deadline(timeout)))

    def send_update(
        self,
        plan: PlannedUpdate,
        *,
        expected_version: int | None = None,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,
    ) -> AcceptedChange:
        """Carry out what `plan_update` gave, if nobody has changed the schedule since. Raises as `update`."""
        return drive(self.core.update(plan, expected_version, reason, Deadline(timeout)))

    def pause(
        self, schedule_id: str, note: str = "", *, reason: str = "", timeout: float | None = TIMEOUT_S
    ) -> AcceptedChange:
        """Fire nothing until it is resumed; what runs goes on. `note` is shown with the schedule meanwhile."""
        return drive(self.core.pause(schedule_id, note, reason, Deadline(timeout)))

    def resume(self, schedule_id: str, *, reason: str = "", timeout: float | None = TIMEOUT_S) -> AcceptedChange:
        """Go on with what is planned from now on; what was planned meanwhile is recorded as skipped."""
        return drive(self.core.resume(schedule_id, reason, Deadline(timeout)))

    def trigger(self, schedule_id: str, *, reason: str = "", timeout: float | None = TIMEOUT_S) -> H:
        """Fire one instance now, beside the plan and whatever the policies say. Returns the handle of its job.

        Where the job is refused, as by a queue that is not declared any more, the handle raises that as after a submit.
        """
        watch = drive(self.core.trigger(schedule_id, reason, Deadline(timeout)))
        return self.handle_of(watch)

    def backfill(
        self,
        schedule_id: str,
        since: datetime,
        until: datetime,
        *,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,
    ) -> AcceptedBackfill:
        """Fire the occurrences of the past from `since` to `until` (both included), by the definition in force.

        They are fired one after the other, or together with `allow_all`. One that was fired before is left out, and its
        job id is refused: nothing runs twice. Returns when the range is accepted.
        """
        return drive(self.core.backfill(schedule_id, since, until, reason, Deadline(timeout)))

    def delete(self, schedule_id: str, *, reason: str = "", timeout: float | None = TIMEOUT_S) -> AcceptedChange:
        """End a schedule for good; its instances run on, its history stays in the log."""
        return drive(self.core.delete(schedule_id, reason, Deadline(timeout)))

    def get(self, schedule_id: str, *, timeout: float | None = TIMEOUT_S, fresh: bool = True) -> ScheduleInfo:
        """All about one schedule, from the view; without one from the log (cost as for `history`).

        `fresh` waits until this client's own commands are decided and seen by the view. Raises `ViewBehindError`, too.
        """
        return drive(self.core.get(schedule_id, Deadline(timeout), fresh=fresh))

    def list(
        self,
        filters: ScheduleFilters | None = None,
        *,
        order: "ScheduleOrder | str" = "id",
        limit: int = 100,
        cursor: str | None = None,
        timeout: float | None = TIMEOUT_S,
        fresh: bool = True,
    ) -> "SchedulePage":
        """One page of schedules from the view; `cursor` is `next_cursor` of the page before. `fresh` as in `get`.

        `order` is `id`, `next` (the next to fire first) or `newest`. Raises `ViewUnavailableError`, `ViewBehindError`.
        """
        deadline = Deadline(timeout)
        return drive(self.core.page(filters or ScheduleFilters(), order, limit, cursor, deadline, fresh=fresh))

    def history(
        self, schedule_id: str, *, since: datetime | None = None, timeout: float | None = TIMEOUT_S
    ) -> Sequence[ScheduleEntry]:
        """Every event of a schedule, refused commands included, from the log: about a microsecond per event in it."""
        return drive(self.core.history(schedule_id, since, Deadline(timeout)))
