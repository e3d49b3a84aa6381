"""The schedules of one partition: their rows, and the index of when each has something to decide."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from mainspring.processors.core.due import DueIndex
from mainspring.processors.core.errors import CoreError
from mainspring.processors.core.instants import Now
from mainspring.processors.core.output import Outbox
from mainspring.processors.core.ports import IsOver, never
from mainspring.processors.core.rules import Rules
from mainspring.processors.core.schedule.ahead import rewind_to_ms
from mainspring.processors.core.schedule.decide_commands import decide_command, reject
from mainspring.processors.core.schedule.decide_due import (
    complete,
    decide_backfill,
    decide_due,
    decide_rewind,
    due_at_ms,
)
from mainspring.processors.core.schedule.decide_instances import decide_finished, decide_unprocessable
from mainspring.processors.core.schedule.draft import Definition, Draft, ScheduleContext
from mainspring.processors.core.schedule.evolve import NO_PLAN, with_plan
from mainspring.processors.core.schedule.rows import ScheduleRows
from mainspring.processors.core.timing import tzdata_version
from mainspring.schemas.codes import RejectCode
from mainspring.schemas.common import Cause
from mainspring.schemas.followups import InstanceFinished
from mainspring.schemas.records import ScheduleCommand
from mainspring.schemas.schedule import ScheduleStatus
from mainspring.schemas.schedule_limits import schedule_of
from mainspring.schemas.tables import Plan, ScheduleState

__all__ = ["ScheduleKeeper"]

_SCHEDULES_AT_ONCE: Final = 4_000
"""Schedules that one tick of all partitions together looks at, and what they fire together: about as much as a batch of
inputs, so that ten thousand schedules of one instant are a few transactions; few, as what is fired runs in between."""

_SHARE_BYTES: Final = 4_096
"""A fire counts as one for each of these of its payload or part of them, so that large ones make no transaction that
outlasts its time-out."""

_FIRES_PER_TURN: Final = 100
"""Fires of one schedule in a tick, so that one that catches up does not hold up the others; fewer the more rules and
exclusions are asked for each of them."""


class ScheduleKeeper:
    """Implements the part of `PartitionCore` that is about schedules."""

    def __init__(self, rows: ScheduleRows, rules: Rules, outbox: Outbox, timer: Cause) -> None:
        self._rows = rows
        self._queues = frozenset(rules.queues)
        self._per_tick = max(1, _SCHEDULES_AT_ONCE // rules.partitions)
        self._outbox = outbox
        self._timer = timer
        self._due: DueIndex[None] = DueIndex()
        self._again: list[str] = []
        """Schedules to look at because the clock was set back."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def load(self, states: Iterable[ScheduleState], now: Now) -> None:
        """Rebuilds the index from all rows.

        What was computed with other time zone data, or by a clock that was ahead of this one, is computed anew, soon.
        """
        tzdata = tzdata_version()
        entries: list[tuple[str, int, None]] = []
        for state in states:
            self._count += 1
            due_ms = state.plan.due_at_ms if state.plan.tzdata == tzdata else 0
            if due_ms is not None and rewind_to_ms(state, now.wall_ms) is not None:
                due_ms = 0
            if due_ms is not None:
                entries.append((state.schedule_id, due_ms, None))
        self._due.load(entries)

    def next_at(self) -> int | None:
        """When the next has something to decide, epoch milliseconds UTC; 0: at once."""
        return 0 if self._again else self._due.next_at()

    def look_again(self) -> None:
        """The clock was set back: lets the ticks to come look at all that wait for a time, for it may be nearer."""
        # Those that wait for an instance or a command are looked at when that comes.
        self._again = list(self._due)

    def apply(self, record: ScheduleCommand | InstanceFinished, cause: Cause, now: Now, next_seq: int) -> bool:
        """Takes an input; whether it took `next_seq`."""
        definition = None
        if isinstance(record, InstanceFinished):
            draft = self._draft(record.schedule_id, cause, now, next_seq)
            definition = self._definition_if_any(draft.state)
            decide_finished(draft, definition, record)
        else:
            draft = self._draft(schedule_of(record), cause, now, next_seq)
            definition = self._definition_if_any(draft.state)
            try:
                decide_command(draft, definition, record)
            except CoreError:
                raise
            except Exception as error:  # noqa: BLE001 - rules that fail at an instant cost the command, not the partition
                draft = self._draft(schedule_of(record), cause, now, next_seq)
                reject(draft, record, RejectCode.UNPROCESSABLE, _cannot_be_computed(draft.schedule_id, error))
        is_new = draft.state is not None and draft.spec is not None and draft.state.version == 1
        try:
            self._carry_out(draft, definition)
        except CoreError:
            raise
        except Exception as error:  # noqa: BLE001 - as for a tick: the command is decided, and what it leaves is paused
            self._give_up(draft, error)
        return is_new

    def refuse(self, command: ScheduleCommand, code: RejectCode, message: str, cause: Cause, now: Now) -> None:
        """Answers a command in which the shell found something wrong."""
        draft = self._draft(schedule_of(command), cause, now, 0)
        reject(draft, command, code, message)
        self._outbox.schedule_events.extend(draft.events)

    def tick(self, now: Now, is_over: IsOver = never) -> None:
        """Decides on what is due, on one schedule at least. Bounded: where more is due, `next_at` stays in the past."""
        self._look_at_some(now, is_over)
        due = self._due.pop_due(now.wall_ms, self._per_tick)
        room = self._per_tick
        for taken, (schedule_id, _) in enumerate(due):
            if room > 0 and (taken == 0 or not is_over()):
                room -= self._decide(schedule_id, now, room // (len(due) - taken))
            else:
                self._due.add(schedule_id, now.wall_ms, None)

    def _look_at_some(self, now: Now, is_over: IsOver) -> None:
        """After the clock was set back."""
        for taken in range(min(len(self._again), self._per_tick)):
            if taken and is_over():
                return
            schedule_id = self._again.pop()
            state = self._rows.schedule(schedule_id)
            if state is not None and rewind_to_ms(state, now.wall_ms) is not None:
                self._decide(schedule_id, now, 1)

    def _decide(self, schedule_id: str, now: Now, share: int) -> int:
        """What time has brought for one schedule; returns what its messages count as, `share` or little more."""
        draft = self._draft(schedule_id, self._timer, now, 0)
        if draft.state is None:
            return 0
        weight = 1
        try:
            definition = self._definition(draft.state)
            if definition is not None:
                weight += len(definition.spec.job.payload) // _SHARE_BYTES
                rules = len(definition.spec.timing.rules) + len(definition.spec.timing.exclude)
                room = max(1, min(share // weight, _FIRES_PER_TURN // rules))
                decide_due(draft, definition, room)
                decide_backfill(draft, definition, room)
            self._carry_out(draft, definition)
        except CoreError:
            raise
        except Exception as error:  # noqa: BLE001 - rules that cannot be computed cost their schedule, not the partition
            draft = self._draft(schedule_id, self._timer, now, 0)
            self._give_up(draft, error)
        return len(draft.followups) * weight

    def _give_up(self, draft: Draft, error: Exception) -> None:
        decide_unprocessable(draft, _named(error))
        self._write(draft, Plan(tzdata=tzdata_version()))

    def _draft(self, schedule_id: str, cause: Cause, now: Now, next_seq: int) -> Draft:
        context = ScheduleContext(now.wall_ms, cause, self._queues, next_seq)
        return Draft(schedule_id, self._rows.schedule(schedule_id), context)

    def _definition(self, state: ScheduleState | None) -> Definition | None:
        spec = None if state is None else self._rows.schedule_spec(state.schedule_id)
        if state is None or spec is None:
            return None
        definition = Definition(spec, state.created_at_ms, state.ahead)
        definition.remember(state)
        return definition

    def _definition_if_any(self, state: ScheduleState | None) -> Definition | None:
        """The definition, None also where it cannot be computed: it can still be replaced or deleted."""
        try:
            return self._definition(state)
        except CoreError:
            raise
        except Exception:  # noqa: BLE001 - whatever is wrong with the rules, their schedule was paused for it
            return None

    def _carry_out(self, draft: Draft, definition: Definition | None = None) -> None:
        """Completes what is over, plans what comes next, and writes. `definition`: the one in force, if it is known."""
        if draft.state is None:
            self._write(draft, NO_PLAN)
            return
        if draft.spec is not None:
            definition = Definition(draft.spec, draft.state.created_at_ms, draft.state.ahead)
        elif definition is None:
            # By the row as it was: the plan that it has is what follows the cursor that it has.
            definition = self._definition(self._rows.schedule(draft.schedule_id))
        assert definition is not None, draft.schedule_id
        if decide_rewind(draft):
            definition = Definition(definition.spec, draft.present.created_at_ms, draft.present.ahead)
        complete(draft, definition)
        self._write(draft, _plan(draft.present, definition))

    def _write(self, draft: Draft, plan: Plan) -> None:
        rows, schedule_id = self._rows, draft.schedule_id
        before = rows.schedule(schedule_id)
        after = None if draft.state is None else with_plan(draft.state, plan)
        self._count += (after is not None) - (before is not None)
        if after != before:
            rows.put_schedule(schedule_id, after)
        if after is None and before is not None:
            rows.put_schedule_spec(schedule_id, None)
        elif draft.spec is not None:
            rows.put_schedule_spec(schedule_id, draft.spec)
        self._outbox.schedule_events.extend(draft.events)
        for job_id, message in draft.followups:
            self._outbox.followup(job_id, message)
        if plan.due_at_ms is None or after is None:
            self._due.discard(schedule_id)
        else:
            # Whoever is behind goes to the end of the line, or those that catch up would keep the others waiting.
            self._due.add(schedule_id, max(plan.due_at_ms, draft.now_ms), None)


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _cannot_be_computed(schedule_id: str, error: Exception) -> str:
    return (
        f"the occurrences of schedule {schedule_id!r} cannot be computed ({_named(error)}); "
        "give it another definition, or delete it"
    )


def _plan(state: ScheduleState, definition: Definition) -> Plan:
    """The next occurrence; computed only where the cursor, the definition or the time zone data has moved."""
    plan = state.plan
    if plan.tzdata != definition.tzdata:
        following = None
        if state.status is ScheduleStatus.ACTIVE:
            following = definition.next_after(state.cursor_ms)
        plan = Plan(
            nominal_ms=None if following is None else following.nominal_ms,
            fire_at_ms=None if following is None else following.fire_at_ms,
            tzdata=definition.tzdata,
        )
    return replace(plan, due_at_ms=due_at_ms(state, definition.spec.overlap, plan.fire_at_ms))
