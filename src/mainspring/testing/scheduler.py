"""The scheduler of a kit: the real core over rows in memory, and the log of what it decided."""

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Final

from mainspring.client.progress import Progress
from mainspring.processors.core import Offer, PartitionCore, Rules
from mainspring.processors.core.explain import WhyNot
from mainspring.processors.core.memory import RowsInMemory
from mainspring.processors.core.schedule.rows import ScheduleRowsInMemory
from mainspring.schemas import Codec, Event, JobEvent, Record
from mainspring.schemas.attempts import AttemptClaimed, AttemptHeartbeat, OfferDeclined
from mainspring.schemas.common import Cause, CauseSource, JobStatus
from mainspring.schemas.records import Signal
from mainspring.testing.clock import VirtualClock

__all__ = ["VirtualScheduler"]

_ROOM: Final = 1_000
"""Offers of one round, as a scheduler process makes them in one transaction."""
_WITHOUT_EVIDENCE: Final = (AttemptClaimed, AttemptHeartbeat, OfferDeclined)


class VirtualScheduler:
    """One partition. What is given is decided by `decide`; what was decided is in `events`, `signals` and `offers`."""

    def __init__(self, clock: VirtualClock, rules: Rules, codec: Codec, seed: int) -> None:
        self.rows = RowsInMemory()
        self.schedule_rows = ScheduleRowsInMemory()
        self.events: list[Event] = []
        self.events_of: defaultdict[str, list[JobEvent]] = defaultdict(list)
        self.progress: defaultdict[str, Progress] = defaultdict(lambda: Progress(keep_spec=True))
        self.signals: list[Signal] = []
        self.offers: dict[str, Offer] = {}
        """By job id: the latest offer that no worker has read."""
        self.submitted_events = 0
        """How many events were about jobs that no schedule has fired."""
        self._clock = clock
        self.rules = rules
        self._encode = codec.encode
        self._seed = seed
        self._inbox: deque[tuple[Record, CauseSource]] = deque()
        self._offsets: defaultdict[CauseSource, int] = defaultdict(int)
        self._next_seq = 0
        self._core = self._load()

    def restart(self) -> None:
        """Another process takes over: a new core from the rows, with fresh leases."""
        self.decide()
        self._next_seq = self._core.next_seq
        self._core = self._load()

    @property
    def has_input(self) -> bool:
        """Whether something was given that is not decided."""
        return bool(self._inbox)

    def give(self, record: Record, source: CauseSource) -> None:
        """Puts a command or a report into the log; it is decided later."""
        self._inbox.append((record, source))

    def decide(self) -> bool:
        """Decides what was given. Returns whether there was anything."""
        any_given = bool(self._inbox)
        while self._inbox:
            self.apply(*self._inbox.popleft())
        return any_given

    def apply(self, record: Record, source: CauseSource) -> None:
        """Decides one record."""
        offset = self._offsets[source]
        self._offsets[source] += 1
        raw = b""
        if source is CauseSource.ATTEMPTS and not isinstance(record, _WITHOUT_EVIDENCE):
            raw = self._encode(record)
        self._core.apply(record, Cause(source=source, partition=0, offset=offset), self._clock.now, raw)
        self._publish()

    def tick(self, room: int) -> bool:
        """Does what is due, and offers at most `room` jobs. Returns whether it has offered any."""
        now = self._clock.now
        known = len(self.offers)
        self._core.tick(now)
        self._core.dispatch(now, min(room, _ROOM))
        self._publish()
        return len(self.offers) > known

    def placed(self, job_id: str, reader: int) -> None:
        """Which worker has read the offer, so that the next one goes to another."""
        self._core.placed(job_id, reader)

    def overdue_leases(self) -> bool:
        """Whether a lease has run out, as far as the scheduler has heard."""
        return self._core.overdue_leases(self._clock.now)

    def expire_leases(self) -> None:
        """All that workers had to say has been read: what they did not renew is lost."""
        now = self._clock.now
        self._core.expire_leases(now, now)
        self._publish()

    def next_us(self) -> int | None:
        """When `tick` or a lease has work.

        Where jobs wait for a slot the core would offer at once, and hides behind that when it would do anything else:
        leases are the business of the kit then, and offers are renewed late.
        """
        wake = self._core.wake_at()
        if wake is None:
            return None
        instants = []
        if wake.wall_ms is not None:
            instants.append(self._clock.at_wall_ms(wake.wall_ms))
        if wake.mono_ms is not None:
            at_us = self._clock.at_mono_ms(wake.mono_ms)
            if at_us > self._clock.now_us:
                instants.append(at_us)
            elif self.offers:
                instants.append(self._clock.now_us + self.rules.renew_max_ms * 1000)
        return min(instants, default=None)

    def explain(self, job_id: str) -> WhyNot:
        """Why the job is not running."""
        return self._core.explain(job_id, self._clock.now)

    def awaits_its_time(self) -> bool:
        """Whether a job that no schedule has fired is due later, for the first time or again."""
        now_ms = self._clock.now.wall_ms
        return any(
            state.due_at_ms > now_ms and state.status in (JobStatus.PENDING, JobStatus.RETRY_WAIT)
            for job_id, state in self.rows.states.items()
            if "@" not in job_id
        )

    def held_by(self, incarnations: Iterable[str]) -> bool:
        """Whether the table says that one of these workers runs an attempt."""
        wanted = frozenset(incarnations)
        return any(
            state.incarnation in wanted for state in self.rows.states.values() if state.status is JobStatus.RUNNING
        )

    def _load(self) -> PartitionCore:
        core = PartitionCore(0, self.rules, self.rows, self._seed, self.schedule_rows)
        schedules = tuple(self.schedule_rows.states.values())
        core.load(tuple(self.rows.states.values()), self._next_seq, self._clock.now, schedules)
        return core

    def _publish(self) -> None:
        output = self._core.drain()
        for event in output.events:
            self.events.append(event)
            self.events_of[event.job_id].append(event)
            self.progress[event.job_id].apply(event)
            self.submitted_events += "@" not in event.job_id
        self.events += output.schedule_events
        self.signals += output.signals
        for offer in output.offers:
            self.offers.pop(offer.record.job_id, None)  # a renewed one goes to the end
            self.offers[offer.record.job_id] = offer
        for _, followup in output.followups:
            self.give(followup, CauseSource.FOLLOWUPS)
