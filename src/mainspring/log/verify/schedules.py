"""The schedules of one partition: their events are folded, and their ledger is held against their definitions."""

from dataclasses import replace
from typing import Final

from mainspring.log.source import Place, Raw
from mainspring.log.verify.findings import Check, Findings
from mainspring.log.verify.inputs import InputIndex
from mainspring.processors.core.errors import CoreError
from mainspring.processors.core.schedule.ahead import OpenTimes, open_times, rewind_to_ms
from mainspring.processors.core.schedule.evolve import evolve_schedule
from mainspring.processors.core.timing import Timing, occurrence_id, tzdata_version
from mainspring.schemas.codes import FireOrigin
from mainspring.schemas.common import CauseSource
from mainspring.schemas.epoch import instant_text
from mainspring.schemas.records import ScheduleEvent
from mainspring.schemas.schedule import ScheduleSpec, ScheduleStatus
from mainspring.schemas.schedule_events import (
    OccurrenceFired,
    OccurrencesSkipped,
    ScheduleCommandRejected,
    ScheduleCreated,
    ScheduleDeleted,
    ScheduleResumed,
    ScheduleRewound,
    ScheduleUpdated,
)
from mainspring.schemas.tables import ScheduleState
from mainspring.topics import Topic, partition_for

__all__ = ["ScheduleAuditor"]

_Closing: Final = ScheduleUpdated | ScheduleResumed | ScheduleDeleted


class ScheduleAuditor:
    """Folds the schedule events of one partition of `events`; memory grows with the schedules.

    After a fault the event is taken as right and the fold goes on: one fault is not told a hundred times.
    """

    def __init__(
        self,
        topic: Topic,
        partition: int,
        inputs: dict[CauseSource, InputIndex],
        findings: Findings,
        *,
        from_start: bool,
    ) -> None:
        self.states: dict[str, ScheduleState] = {}
        self.specs: dict[str, ScheduleSpec] = {}
        self.headless_events = 0
        self.unverifiable_causes = 0
        self.unverifiable_outcomes = 0
        self._topic = topic
        self._partition = partition
        self._inputs = inputs
        self._findings = findings
        self._from_start = from_start
        self._last_cause: tuple[CauseSource, int, int] | None = None
        self._tzdata = tzdata_version()

    def see(self, raw: Raw, event: ScheduleEvent) -> None:
        """Checks one event and folds it."""
        schedule_id = event.schedule_id
        self._check_key(raw, event)
        self._check_cause(raw, event)
        state = self.states.get(schedule_id)
        if isinstance(event, ScheduleCommandRejected):
            if state is not None and event.revision != state.revision:
                detail = f"a refusal says revision {event.revision} and the schedule has {state.revision}"
                self._fault(Check.REVISION_GAP, raw, event, detail)
            return
        if isinstance(event, ScheduleCreated):
            self._created(raw, event, state)
        elif state is not None:
            self._changed(raw, event, state)
        elif self._from_start:
            detail = f"{type(event).__name__} of a schedule that was never created here"
            self._fault(Check.ORPHAN_EVENT, raw, event, detail)
        else:
            self.headless_events += 1

    def _created(self, raw: Raw, event: ScheduleCreated, state: ScheduleState | None) -> None:
        if state is not None:
            self._fault(Check.ILLEGAL_TRANSITION, raw, event, f"created while it is {state.status.name}")
        if event.revision != 1:
            self._fault(Check.REVISION_GAP, raw, event, f"a schedule begins with revision 1, not {event.revision}")
        self._keep(event.schedule_id, evolve_schedule(None, replace(event, revision=1)), event.spec)

    def _changed(self, raw: Raw, event: ScheduleEvent, state: ScheduleState) -> None:
        if event.revision != state.revision + 1:
            detail = f"revision {event.revision} where {state.revision + 1} is next"
            self._fault(Check.REVISION_GAP, raw, event, detail)
            state = replace(state, revision=event.revision - 1)
        if isinstance(event, ScheduleRewound):
            self._check_rewind(raw, event, state)
        else:
            self._check_ledger(raw, event, state)
        try:
            after = evolve_schedule(state, event)
        except CoreError as error:
            self._fault(Check.ILLEGAL_TRANSITION, raw, event, str(error))
            after = replace(state, revision=event.revision)
        spec = event.spec if isinstance(event, ScheduleUpdated) else self.specs[event.schedule_id]
        self._keep(event.schedule_id, after, spec)

    def _keep(self, schedule_id: str, state: ScheduleState | None, spec: ScheduleSpec) -> None:
        if state is None:
            del self.states[schedule_id], self.specs[schedule_id]
        else:
            self.states[schedule_id], self.specs[schedule_id] = state, spec

    # The ledger.

    def _check_ledger(self, raw: Raw, event: ScheduleEvent, state: ScheduleState) -> None:
        if not isinstance(event, OccurrenceFired | OccurrencesSkipped | _Closing):
            return
        if isinstance(event, ScheduleUpdated) and not event.plans_anew:
            if event.spec.timing != self.specs[event.schedule_id].timing:
                self._fault(Check.LEDGER, raw, event, "another timing, and planning does not begin anew")
            return
        if isinstance(event, OccurrenceFired) and event.job_id != occurrence_id(event.schedule_id, event.nominal_ms):
            detail = f"{event.job_id!r} is not the job of {instant_text(event.nominal_ms)}"
            self._fault(Check.LEDGER, raw, event, detail)
        if isinstance(event, OccurrenceFired | OccurrencesSkipped):
            if event.version != state.version:
                detail = f"decided by version {event.version} of the definition while {state.version} was in force"
                self._fault(Check.LEDGER, raw, event, detail)
            if event.tzdata != self._tzdata:
                self.unverifiable_outcomes += 1
                return
        try:
            wrong = _wrong(event, state, self._timing(state))
        except Exception:  # noqa: BLE001 - a definition that this version cannot expand was paused for just that
            self.unverifiable_outcomes += 1
            return
        if wrong is not None:
            self._fault(Check.LEDGER, raw, event, wrong)

    def _check_rewind(self, raw: Raw, event: ScheduleRewound, state: ScheduleState) -> None:
        if event.to_ms != rewind_to_ms(state, event.decided_at_ms):
            detail = f"rewound to {instant_text(event.to_ms)}, where neither the clock nor what it remembers allows it"
            self._fault(Check.LEDGER, raw, event, detail)

    def _timing(self, state: ScheduleState) -> Timing | OpenTimes:
        timing = Timing(self.specs[state.schedule_id].timing, state.schedule_id, state.created_at_ms)
        return open_times(timing, state.ahead)

    # What every event has.

    def _check_key(self, raw: Raw, event: ScheduleEvent) -> None:
        key = event.schedule_id.encode()
        if raw.key != key:
            detail = f"the key is {raw.key!r} and the event is about {event.schedule_id!r}"
            self._fault(Check.BAD_KEY, raw, event, detail)
        home = partition_for(key, self._topic.partitions)
        if home != self._partition:
            self._fault(Check.WRONG_PARTITION, raw, event, f"it belongs on partition {home}")

    def _check_cause(self, raw: Raw, event: ScheduleEvent) -> None:
        cause = event.cause
        if cause.partition != self._partition:
            self._fault(Check.CAUSE_FOREIGN, raw, event, f"its cause is on partition {cause.partition}")
            return
        if cause.source is CauseSource.TIMER:
            return
        index = self._inputs[cause.source]
        if cause.offset < index.span.start:
            self.unverifiable_causes += 1
            return
        if cause.offset >= index.span.end:
            detail = f"{index.place(cause.offset)} lies behind the end {index.span.end}"
            self._fault(Check.CAUSE_ABSENT, raw, event, detail)
            return
        known = index.decide(cause.offset, event.schedule_id)
        # One input may have several events, all in one transaction: what was due, and then what was asked.
        this = (cause.source, cause.offset, event.txn.id)
        again, self._last_cause = known.was_decided and this != self._last_cause, this
        if not known.is_there:
            detail = f"{index.place(cause.offset)} holds no record that was committed"
            self._fault(Check.CAUSE_ABSENT, raw, event, detail)
        elif not known.is_about_job:
            self._fault(Check.CAUSE_FOREIGN, raw, event, f"{index.place(cause.offset)} is about something else")
        elif again:
            detail = f"another event was decided on {index.place(cause.offset)}, too"
            self._fault(Check.DECIDED_TWICE, raw, event, detail)

    def _fault(self, check: Check, raw: Raw, event: ScheduleEvent, detail: str) -> None:
        place = Place(topic=self._topic.name, partition=self._partition, offset=raw.offset)
        self._findings.add(check, f"schedule {event.schedule_id!r}: {detail}", place=place)


def _wrong(event: ScheduleEvent, state: ScheduleState, timing: Timing | OpenTimes) -> str | None:
    """What is wrong with an entry of the ledger, held against the definition; None: nothing."""
    if isinstance(event, OccurrenceFired):
        return _wrong_fire(event, state, timing) if event.origin == FireOrigin.PLANNED else None
    if isinstance(event, OccurrencesSkipped):
        first = timing.next_after(state.cursor_ms)
        if first is None or first.nominal_ms != event.first_ms:
            return _not_next(event.first_ms, None if first is None else first.nominal_ms)
        latest, before = timing.latest(state.cursor_ms, event.last_ms)
        if latest is None or latest.nominal_ms != event.last_ms or before + 1 != event.count:
            planned = 0 if latest is None else before + 1
            return f"{event.count} occurrences up to {instant_text(event.last_ms)}, and {planned} were planned"
        return None
    if state.status is ScheduleStatus.COMPLETED:
        return None
    open_, before = timing.latest(state.cursor_ms, event.decided_at_ms)
    return None if open_ is None else f"{before + 1} occurrences up to {instant_text(open_.nominal_ms)} have no outcome"


def _wrong_fire(event: OccurrenceFired, state: ScheduleState, timing: Timing | OpenTimes) -> str | None:
    planned = timing.next_after(state.cursor_ms)
    if planned is None or planned.nominal_ms != event.nominal_ms:
        return _not_next(event.nominal_ms, None if planned is None else planned.nominal_ms)
    if event.decided_at_ms < planned.fire_at_ms:
        return f"fired {planned.fire_at_ms - event.decided_at_ms} ms before its time"
    return None


def _not_next(found_ms: int, planned_ms: int | None) -> str:
    planned = "nothing" if planned_ms is None else instant_text(planned_ms)
    return f"the outcome of {instant_text(found_ms)} where {planned} is planned next"
