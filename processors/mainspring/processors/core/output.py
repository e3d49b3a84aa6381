"""What a partition decided, collected for the shell to write."""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from mainspring.schemas.commands import CancelJob, SubmitJob
from mainspring.schemas.common import ConfirmedStart, Priority
from mainspring.schemas.followups import InstanceFinished, InstanceReplaced
from mainspring.schemas.records import JobEvent, ScheduleEvent, Signal
from mainspring.schemas.signals import StartConfirmed
from mainspring.schemas.work import WorkOffered

__all__ = ["Message", "Offer", "Outbox", "Output"]

Message: TypeAlias = SubmitJob | CancelJob | InstanceFinished | InstanceReplaced
"""What one partition decides to tell another."""


class Offer(NamedTuple):
    """A job to put on a work topic; the shell chooses the partition, another than `avoid` where it can."""

    queue: str
    lane: Priority
    record: WorkOffered
    avoid: int | None


@dataclass(slots=True)
class Output:
    """Records to write in this transaction. Events in the order they were decided; follow-ups with their key."""

    events: list[JobEvent] = field(default_factory=list)
    schedule_events: list[ScheduleEvent] = field(default_factory=list)
    offers: list[Offer] = field(default_factory=list)
    signals: list[Signal] = field(default_factory=list)
    followups: list[tuple[str, Message]] = field(default_factory=list)


class Outbox:
    """Collects output until it is drained; the starts that one worker won are confirmed in one record."""

    def __init__(self) -> None:
        self._output = Output()
        self._starts: dict[tuple[str, str], tuple[int, list[ConfirmedStart]]] = {}

    @property
    def events(self) -> list[JobEvent]:
        """Events since the last drain."""
        return self._output.events

    @property
    def schedule_events(self) -> list[ScheduleEvent]:
        """Events of schedules since the last drain."""
        return self._output.schedule_events

    def offer(self, offer: Offer) -> None:
        """Adds an offer."""
        self._output.offers.append(offer)

    def signal(self, signal: Signal) -> None:
        """Adds a signal; a confirmation joins the others of its worker."""
        if type(signal) is not StartConfirmed:
            self._output.signals.append(signal)
            return
        worker = (signal.worker_id, signal.incarnation)
        held = self._starts.get(worker)
        if held is None:
            self._starts[worker] = (signal.confirmed_at_ms, list(signal.starts))
        else:
            held[1].extend(signal.starts)

    def followup(self, key: str, record: Message) -> None:
        """Adds a record for the partition of `key`."""
        self._output.followups.append((key, record))

    def drain(self) -> Output:
        """Empties the box. Confirmations come first, so that whatever stops an attempt follows its start."""
        output, self._output = self._output, Output()
        if self._starts:
            confirmed: list[Signal] = [
                StartConfirmed(worker_id=worker, incarnation=incarnation, confirmed_at_ms=at_ms, starts=tuple(starts))
                for (worker, incarnation), (at_ms, starts) in self._starts.items()
            ]
            output.signals = confirmed + output.signals
            self._starts = {}
        return output
