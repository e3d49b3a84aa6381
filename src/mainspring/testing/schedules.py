"""Recurring schedules of a kit: the operations of the client, answered by the simulation."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from mainspring.client.errors import ViewUnavailableError
from mainspring.client.outcomes import rejected
from mainspring.client.schedules.core import ScheduleCore, checked_id
from mainspring.client.schedules.info import ScheduleEntry, ScheduleInfo
from mainspring.client.steps import Steps
from mainspring.client.watch import Start, Watch
from mainspring.client.wire import Deadline
from mainspring.jobs.payload import PayloadCodec
from mainspring.jobs.spec import Submittable
from mainspring.schemas.commands import TriggerSchedule
from mainspring.schemas.epoch import to_datetime
from mainspring.schemas.records import ScheduleCommand, ScheduleEvent
from mainspring.schemas.schedule_events import OccurrenceFired, ScheduleCommandRejected
from mainspring.testing.operations import Operations

__all__ = ["VirtualScheduleCore"]


class VirtualScheduleCore(ScheduleCore):
    """Every command is decided at the instant at which it is given."""

    def __init__(self, operations: Operations, payloads: PayloadCodec, adopt: Callable[[Submittable], None]) -> None:
        self._operations = operations
        self._payloads = payloads
        self._adopt = adopt

    @property
    def payloads(self) -> PayloadCodec:
        """As the client has it."""
        return self._payloads

    def now_ms(self) -> int:
        return self._operations.now_ms

    def meet(self, job: Submittable) -> None:
        self._adopt(job)

    def trigger(self, schedule_id: str, reason: str, deadline: Deadline) -> Steps[Watch]:
        event = yield from self._decided(self._about(TriggerSchedule, reason, schedule_id=schedule_id), deadline)
        assert isinstance(event, OccurrenceFired), event  # its verdict, unless it is refused
        return Watch(event.job_id, 0, Start(), None)

    def get(self, schedule_id: str, deadline: Deadline, *, fresh: bool) -> Steps[ScheduleInfo]:
        return (yield from self.folded(schedule_id, deadline, fresh=fresh))

    def page(self, *_: Any, **__: Any) -> Steps[Any]:
        raise ViewUnavailableError("list")

    def history(self, schedule_id: str, since: datetime | None, deadline: Deadline) -> Steps[list[ScheduleEntry]]:
        yield from ()
        events = self._operations.schedule_events(checked_id(schedule_id))
        found = (ScheduleEntry(0, offset, event) for offset, event in events)
        return [entry for entry in found if since is None or to_datetime(entry.event.decided_at_ms) >= since]

    def _about(self, kind: type[Any], reason: str, **fields: Any) -> Any:
        return self._operations.about_schedule(kind, reason, **fields)

    def _own_decided(self, schedule_id: str, deadline: Deadline) -> Steps[None]:
        yield from ()

    def _decided(self, command: ScheduleCommand, deadline: Deadline) -> Steps[ScheduleEvent]:
        yield from ()
        event = self._operations.decide_schedule(command)
        if isinstance(event, ScheduleCommandRejected):
            raise rejected(event)
        return event
