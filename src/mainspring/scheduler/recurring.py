"""Recurring schedules of the facade: the plain kind, a job at a fixed interval."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from mainspring.client.errors import ScheduleNotFoundError
from mainspring.client.schedules.core import ScheduleCore
from mainspring.client.schedules.rules import Every
from mainspring.client.schedules.values import duration_ms
from mainspring.client.steps import Steps
from mainspring.client.wire import Deadline
from mainspring.jobs.ids import new_job_id
from mainspring.jobs.spec import Submittable
from mainspring.schemas import ScheduleEvent
from mainspring.schemas.codes import FireOrigin
from mainspring.schemas.epoch import to_datetime
from mainspring.schemas.schedule import IntervalRule, Overlap
from mainspring.schemas.schedule_events import (
    OccurrenceFired,
    OccurrencesSkipped,
    ScheduleCompleted,
    ScheduleDeleted,
    SchedulePaused,
    ScheduleResumed,
    ScheduleUpdated,
)

__all__ = ["Recurring", "RecurringSchedule"]

VERDICT_S = 30.0


@dataclass(slots=True, kw_only=True)
class RecurringSchedule:
    """A job at a fixed interval, as the instance that scheduled it sees it: it follows the log.

    Attributes:
        factory: made the job that every run has as its template; it was called once.
        next_run: when the next run is planned, in UTC.
        allow_overlap: whether a run may start while another has not ended; otherwise it is skipped.
        active: False once it is cancelled, paused or over.
    """

    schedule_id: str
    factory: Callable[[], Submittable]
    interval: timedelta
    next_run: datetime
    allow_overlap: bool = False
    active: bool = True

    def advance(self, now: datetime) -> int:
        """Move `next_run` along its grid to the first time later than `now`, and return how many it has passed.

        A gap of any length is one division, so nothing drifts, and what was missed in it is one run.
        """
        if now < self.next_run:
            return 0
        passed = (now - self.next_run) // self.interval + 1
        self.next_run += passed * self.interval
        return passed


class Recurring:
    """The schedules that one facade has made. Lives on the event loop; not for other threads."""

    def __init__(self) -> None:
        self.schedules: dict[str, RecurringSchedule] = {}
        self._created_ms: dict[str, int] = {}
        self._early: dict[str, list[ScheduleEvent]] = {}

    def create(
        self,
        core: ScheduleCore,
        factory: Callable[[], Submittable],
        job: Submittable,
        interval: str | float | timedelta,
        schedule_id: str | None,
        *,
        allow_overlap: bool,
    ) -> Steps[str]:
        """Returns the id of the accepted schedule."""
        drawn = new_job_id() if schedule_id is None else schedule_id
        overlap = Overlap.ALLOW_ALL if allow_overlap else Overlap.SKIP
        early = self._early.setdefault(drawn, [])
        try:
            info = yield from core.create(
                drawn, Every(interval), job, None, None, "", {"overlap": overlap}, Deadline(VERDICT_S)
            )
        finally:
            self._early.pop(drawn, None)
        self._created_ms[drawn] = round(info.created_at.timestamp() * 1000)
        length = timedelta(milliseconds=duration_ms("interval", interval))
        self.schedules[drawn] = RecurringSchedule(
            schedule_id=drawn,
            factory=factory,
            interval=length,
            next_run=info.created_at + length,
            allow_overlap=allow_overlap,
        )
        # What followed the verdict may have been told before the verdict was.
        for event in early:
            self.see(event)
        return drawn

    def cancel(self, core: ScheduleCore, schedule_id: str) -> Steps[bool]:
        """Whether there was such a schedule."""
        try:
            yield from core.delete(schedule_id, "", Deadline(VERDICT_S))
        except ScheduleNotFoundError:
            return False
        self._end(schedule_id)
        return True

    def see(self, event: ScheduleEvent) -> None:
        """Take in one event."""
        schedule_id = event.schedule_id
        if (early := self._early.get(schedule_id)) is not None:
            early.append(event)
        schedule = self.schedules.get(schedule_id)
        if schedule is None:
            return
        match event:
            case OccurrenceFired(origin=FireOrigin.PLANNED):
                schedule.advance(to_datetime(event.nominal_ms))
            case OccurrencesSkipped():
                schedule.advance(to_datetime(event.last_ms))
            case ScheduleUpdated():
                _update(schedule, event, self._created_ms[schedule_id])
            case SchedulePaused() | ScheduleCompleted():
                schedule.active = False
            case ScheduleResumed():
                schedule.active = True
            case ScheduleDeleted():
                self._end(schedule_id)
            case _:
                pass  # nothing that shows here

    def _end(self, schedule_id: str) -> None:
        schedule = self.schedules.pop(schedule_id, None)
        self._created_ms.pop(schedule_id, None)
        if schedule is not None:
            schedule.active = False


def _update(schedule: RecurringSchedule, event: ScheduleUpdated, created_ms: int) -> None:
    """Somebody gave it another definition. One that is no plain interval any more has only its next run here."""
    from mainspring.processors.core.timing import Timing

    timing = event.spec.timing
    rule = timing.rules[0]
    if isinstance(rule, IntervalRule):
        schedule.interval = timedelta(milliseconds=rule.every_ms)
    schedule.allow_overlap = event.spec.overlap is Overlap.ALLOW_ALL
    following = Timing(timing, schedule.schedule_id, created_ms).next_after(event.decided_at_ms)
    if following is not None:
        schedule.next_run = to_datetime(following.nominal_ms)
