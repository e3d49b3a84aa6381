"""What a client does about schedules, whether its caller blocks or awaits: the operations, as steps."""

import time
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from mainspring.client.commands import Arguments
from mainspring.client.core import ClientCore
from mainspring.client.errors import (
    DuplicateScheduleError,
    InvalidScheduleError,
    NotDeliveredError,
    ScheduleNotFoundError,
    VersionConflictError,
    ViewUnavailableError,
)
from mainspring.client.info import epoch_ms
from mainspring.client.queries import Queries
from mainspring.client.schedules.definition import Policies, changes_between, define, redefine
from mainspring.client.schedules.info import (
    AcceptedBackfill,
    AcceptedChange,
    Declaration,
    DeclareOutcome,
    PlannedUpdate,
    ScheduleEntry,
    ScheduleFilters,
    ScheduleInfo,
)
from mainspring.client.schedules.rules import Timing
from mainspring.client.schedules.values import instant_ms
from mainspring.client.steps import Steps, wait
from mainspring.client.watch import FiredWatch, Start, Watch
from mainspring.client.wire import Deadline
from mainspring.jobs.errors import InvalidJobError
from mainspring.jobs.options import JobOptions
from mainspring.jobs.payload import PayloadCodec
from mainspring.jobs.spec import Submittable
from mainspring.schemas.commands import (
    BackfillSchedule,
    CreateSchedule,
    DeleteSchedule,
    PauseSchedule,
    ResumeSchedule,
    TriggerSchedule,
    UpdateSchedule,
)
from mainspring.schemas.epoch import to_datetime
from mainspring.schemas.records import SCHEDULE_EVENT_TYPES, ScheduleCommand, ScheduleEvent
from mainspring.schemas.schedule import ScheduleSpec
from mainspring.schemas.schedule_events import BackfillAccepted, OccurrenceFired, ScheduleCreated
from mainspring.schemas.schedule_limits import check_schedule_command, check_schedule_id, schedule_of

if TYPE_CHECKING:
    from mainspring.processors.projector.schedulemodel import ScheduleOrder, SchedulePage

__all__ = ["ScheduleCore", "checked_id"]

_DECLARE_TRIES = 5
"""How often a declaration looks anew where others change the schedule meanwhile, such as another deployment."""
_SEND_AGAIN = "Ask for the schedule, and send it again if it is as it was."


class ScheduleCore:
    """The operations. Safe to share between threads, as the client that they belong to."""

    def __init__(self, core: ClientCore, queries: Queries) -> None:
        self._core = core
        self._queries = queries

    def meet(self, job: Submittable) -> None:
        """Is told of each job that a definition names, before it is looked at: here, nothing has to be done for it."""

    def create(
        self,
        schedule_id: str,
        when: Timing,
        job: Submittable,
        args: Arguments,
        options: JobOptions | None,
        reason: str,
        policies: Policies,
        deadline: Deadline,
    ) -> Steps[ScheduleInfo]:
        """Returns the schedule as it was accepted."""
        self.meet(job)
        spec = define(checked_id(schedule_id), when, job, args, options, self.payloads, policies)
        command = self._about(CreateSchedule, reason, spec=self._checked(spec))
        event = yield from self._decided(command, deadline)
        info = ScheduleInfo.of_events([cast(ScheduleCreated, event)])
        assert info is not None, event  # the fold of a ScheduleCreated is a schedule
        return info

    def plan_update(
        self,
        schedule_id: str,
        when: Timing | None,
        job: Submittable | None,
        args: Arguments,
        options: JobOptions | None,
        policies: Policies,
        deadline: Deadline,
    ) -> Steps[PlannedUpdate]:
        """Reads the schedule and returns what would become of it. Raises `ScheduleNotFoundError`."""
        if job is not None:
            self.meet(job)
        before = yield from self.folded(schedule_id, deadline, fresh=True)
        after = redefine(
            before.definition,
            when=when,
            job=job,
            args=args,
            options=options,
            codec=self.payloads,
            policies=policies,
        )
        changes = changes_between(before.definition, after)
        return PlannedUpdate(before=before, after=self._checked(after, before.created_at), changes=changes)

    def update(
        self, plan: PlannedUpdate, expected_version: int | None, reason: str, deadline: Deadline
    ) -> Steps[AcceptedChange]:
        """Puts the new definition in force, unless somebody else has changed the schedule since it was read."""
        version = plan.before.version if expected_version is None else expected_version
        command = self._about(UpdateSchedule, reason, spec=plan.after, expected_version=version)
        return _change((yield from self._decided(command, deadline)))

    def declare(
        self,
        schedule_id: str,
        when: Timing,
        job: Submittable,
        args: Arguments,
        options: JobOptions | None,
        reason: str,
        policies: Policies,
        deadline: Deadline,
        *,
        dry_run: bool,
    ) -> Steps[Declaration]:
        """Returns when the schedule has this definition. Whoever comes in between is looked at anew."""
        self.meet(job)
        spec = define(checked_id(schedule_id), when, job, args, options, self.payloads, policies)
        for _ in range(_DECLARE_TRIES - 1):
            with suppress(DuplicateScheduleError, VersionConflictError, ScheduleNotFoundError):
                return (yield from self._declare(spec, reason, deadline, dry_run=dry_run))
        return (yield from self._declare(spec, reason, deadline, dry_run=dry_run))

    def _declare(self, spec: ScheduleSpec, reason: str, deadline: Deadline, *, dry_run: bool) -> Steps[Declaration]:
        schedule_id = spec.schedule_id
        try:
            before = yield from self.folded(schedule_id, deadline, fresh=True)
        except ScheduleNotFoundError:
            create = self._about(CreateSchedule, reason, spec=self._checked(spec))
            yield from self._decided_unless(create, deadline, dry_run=dry_run)
            return Declaration(schedule_id=schedule_id, outcome=DeclareOutcome.CREATED, version=1)
        changes, version = changes_between(before.definition, spec), before.version
        if not changes:
            return Declaration(schedule_id=schedule_id, outcome=DeclareOutcome.UNCHANGED, version=version)
        checked = self._checked(spec, before.created_at)
        update = self._about(UpdateSchedule, reason, spec=checked, expected_version=version)
        yield from self._decided_unless(update, deadline, dry_run=dry_run)
        outcome = DeclareOutcome.UPDATED
        return Declaration(schedule_id=schedule_id, outcome=outcome, version=version + 1, changes=changes)

    def _decided_unless(self, command: ScheduleCommand, deadline: Deadline, *, dry_run: bool) -> Steps[None]:
        """Sends the command, or only finds out whether it can be meant."""
        problem = check_schedule_command(command)
        if problem is not None:
            raise InvalidScheduleError(problem.code, problem.field, problem.message)
        if not dry_run:
            yield from self._decided(command, deadline)

    def pause(self, schedule_id: str, note: str, reason: str, deadline: Deadline) -> Steps[AcceptedChange]:
        """Returns when nothing more is fired."""
        command = self._about(PauseSchedule, reason, schedule_id=schedule_id, note=note)
        return _change((yield from self._decided(command, deadline)))

    def resume(self, schedule_id: str, reason: str, deadline: Deadline) -> Steps[AcceptedChange]:
        """Returns when it fires again."""
        command = self._about(ResumeSchedule, reason, schedule_id=schedule_id)
        return _change((yield from self._decided(command, deadline)))

    def delete(self, schedule_id: str, reason: str, deadline: Deadline) -> Steps[AcceptedChange]:
        """Returns when there is no such schedule any more."""
        command = self._about(DeleteSchedule, reason, schedule_id=schedule_id)
        return _change((yield from self._decided(command, deadline)))

    def trigger(self, schedule_id: str, reason: str, deadline: Deadline) -> Steps[Watch]:
        """Returns the job that was fired."""
        command = self._about(TriggerSchedule, reason, schedule_id=schedule_id)
        wire = self._core.wire
        starts = yield from wire.starts()
        event = cast(OccurrenceFired, (yield from self._decided(command, deadline)))
        partition = wire.partition_of(event.job_id)
        # All that concerns the job comes after the command that fired it.
        watch = FiredWatch(event, partition, starts[partition])
        wire.tail.register(watch, fresh=False)
        return watch

    def backfill(
        self, schedule_id: str, since: datetime, until: datetime, reason: str, deadline: Deadline
    ) -> Steps[AcceptedBackfill]:
        """Returns when it is accepted; the occurrences are fired one after the other."""
        span = {"from_ms": instant_ms("since", since), "until_ms": instant_ms("until", until)}
        command = self._about(BackfillSchedule, reason, schedule_id=schedule_id, **span)
        event = cast(BackfillAccepted, (yield from self._decided(command, deadline)))
        return AcceptedBackfill(
            schedule_id=event.schedule_id,
            revision=event.revision,
            decided_at=to_datetime(event.decided_at_ms),
            command_id=event.command_id,
            count=event.count,
        )

    def get(self, schedule_id: str, deadline: Deadline, *, fresh: bool) -> Steps[ScheduleInfo]:
        """The schedule by the view, else by the log. Raises `ScheduleNotFoundError`, `ViewBehindError`."""
        partition = self._core.wire.partition_of(checked_id(schedule_id))
        view = yield from self._queries.opened()
        if view is None:
            return (yield from self.folded(schedule_id, deadline, fresh=fresh))
        if fresh:
            yield from self._queries.caught_up(view, [partition], schedule_id, deadline)
        asked = self._core.wire.in_background(view.schedule, schedule_id)
        detail = yield from wait(asked, deadline.left())
        if detail is None:
            raise ScheduleNotFoundError(schedule_id, "the view")
        return ScheduleInfo.of_detail(detail)

    def page(
        self,
        filters: ScheduleFilters,
        order: "ScheduleOrder | str",
        limit: int,
        cursor: str | None,
        deadline: Deadline,
        *,
        fresh: bool,
    ) -> Steps["SchedulePage"]:
        """One page of schedules by the view. Raises `ViewUnavailableError`, `ViewBehindError`."""
        view = yield from self._queries.opened()
        if view is None:
            raise ViewUnavailableError("list")
        from mainspring.processors.projector.schedulemodel import ScheduleOrder

        if fresh:
            yield from self._queries.caught_up(view, self._core.wire.partitions, None, deadline)
        conditions, by = filters.to_model(), ScheduleOrder(order)

        def page() -> "SchedulePage":
            return view.schedules(conditions, order=by, limit=limit, cursor=cursor)

        return (yield from wait(self._core.wire.in_background(page), deadline.left()))

    def folded(self, schedule_id: str, deadline: Deadline, *, fresh: bool) -> Steps[ScheduleInfo]:
        """The schedule by its partition of the log. Raises `ScheduleNotFoundError`."""
        if fresh:
            yield from self._own_decided(checked_id(schedule_id), deadline)
        entries = yield from self.history(schedule_id, None, deadline)
        info = ScheduleInfo.of_events(entry.event for entry in entries)
        if info is None:
            raise ScheduleNotFoundError(schedule_id, "the log")
        return info

    def history(self, schedule_id: str, since: datetime | None, deadline: Deadline) -> Steps[list[ScheduleEntry]]:
        """Every event of the schedule, refusals included, out of the log."""
        wire = self._core.wire
        wire.check_usable()
        partition = wire.partition_of(checked_id(schedule_id))
        start = wire.hint(schedule_id) if since is None else Start(time_ms=epoch_ms(since))
        events, _ = yield from wire.scan(partition, schedule_id.encode(), start, deadline)
        return [
            ScheduleEntry(partition, offset, cast(ScheduleEvent, event))
            for event, offset in events
            if type(event) in SCHEDULE_EVENT_TYPES
        ]

    @property
    def payloads(self) -> PayloadCodec:
        """Writes the arguments of jobs that are given by name."""
        return self._core.config.payloads

    def now_ms(self) -> int:
        """The present, epoch milliseconds UTC."""
        return time.time_ns() // 1_000_000

    def _checked(self, spec: ScheduleSpec, created_at: datetime | None = None) -> ScheduleSpec:
        """The definition, if its rules mean something: what the scheduler would say of them, before it is asked.

        `created_at`: when the schedule was created that is to have it; intervals without an anchor count from there.
        """
        from mainspring.processors.core.timing import check_timing

        now_ms = self.now_ms()
        created_ms = now_ms if created_at is None else epoch_ms(created_at)
        problem = check_timing(spec.timing, created_ms=created_ms, after_ms=now_ms)
        if problem is not None:
            raise InvalidScheduleError(problem.code, problem.field, problem.message)
        return spec

    def _about(self, kind: type[Any], reason: str, **fields: Any) -> Any:
        self._core.wire.check_usable()
        return self._core.maker.about_schedule(kind, reason, **fields)

    def _own_decided(self, schedule_id: str, deadline: Deadline) -> Steps[None]:
        """Returns when what this client has asked of the schedule is decided."""
        wire = self._core.wire
        wire.check_usable()
        yield from self._core.own_commands_decided([wire.partition_of(schedule_id)], deadline)

    def _decided(self, command: ScheduleCommand, deadline: Deadline) -> Steps[ScheduleEvent]:
        """Sends the command and returns the event that accepts it. Raises what a refusal says."""
        wire, schedule_id = self._core.wire, schedule_of(command)
        try:
            envelope = self._core.maker.envelope(command)
        except InvalidJobError as error:
            raise InvalidScheduleError(error.code, error.field, error.message) from error
        starts = yield from wire.starts()
        watch = wire.watch_schedule(schedule_id, command.command_id, starts)
        try:
            yield from wire.send(envelope)
        except NotDeliveredError as error:
            raise NotDeliveredError((schedule_id,), error.cause, _SEND_AGAIN) from error
        wire.last[watch.partition] = watch
        verdict = yield from self._core.verdict(watch, deadline)
        assert verdict is not None, command  # only a submit can be adopted
        return cast(ScheduleEvent, verdict.event)


def checked_id(schedule_id: str) -> str:
    """The id, if a schedule can have it. Raises `InvalidScheduleError`."""
    problem = check_schedule_id(schedule_id)
    if problem is not None:
        raise InvalidScheduleError(problem.code, problem.field, problem.message)
    return schedule_id


def _change(event: ScheduleEvent) -> AcceptedChange:
    return AcceptedChange(
        schedule_id=event.schedule_id, revision=event.revision, decided_at=to_datetime(event.decided_at_ms)
    )
