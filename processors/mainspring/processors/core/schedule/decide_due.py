"""Decisions on occurrences whose time has come: fired, or skipped for a reason.

Resolved as late as possible. While an instance runs and the policy makes the next one wait, nothing is decided; once it
has ended, what fell due by then (`busy_until_ms`) has overlapped with it, and what fell due since is caught up with.
"""

from typing import Final

from mainspring.processors.core.schedule.ahead import OpenTimes, rewind_to_ms
from mainspring.processors.core.schedule.draft import Definition, Draft
from mainspring.processors.core.schedule.fire import fire, skip, stop_active
from mainspring.processors.core.timing import Occurrence, Timing
from mainspring.schemas.codes import CompletionCode, FireOrigin, OccurrenceOutcome, StopMode
from mainspring.schemas.schedule import CatchUp, Overlap, ScheduleStatus
from mainspring.schemas.schedule_events import BackfillEnded, ScheduleCompleted, ScheduleRewound
from mainspring.schemas.tables import Backfill, ScheduleState

__all__ = [
    "ON_TIME_MS",
    "close_overlapped",
    "close_rest",
    "complete",
    "decide_backfill",
    "decide_due",
    "decide_rewind",
    "due_at_ms",
]

ON_TIME_MS: Final = 10_000
"""An occurrence that is late by no more than this is on time under every catch-up policy: a takeover takes seconds."""

_SURPLUS_PER_TURN: Final = 1_000
"""Waiting occurrences beyond the buffer that are looked at in one turn; the rest is next."""

_EXCLUSIVE: Final = frozenset(
    {Overlap.SKIP, Overlap.BUFFER_ONE, Overlap.BUFFER_ALL, Overlap.CANCEL_OTHER, Overlap.REPLACE_OTHER}
)
_WAITING: Final = frozenset({Overlap.SKIP, Overlap.BUFFER_ONE, Overlap.BUFFER_ALL})


def due_at_ms(state: ScheduleState, overlap: Overlap, fire_at_ms: int | None) -> int | None:
    """When there is something to decide; 0: at once; None: not before an instance has ended or a command comes."""
    if state.status is ScheduleStatus.PAUSED:
        return None
    if state.backfills and (overlap is Overlap.ALLOW_ALL or not state.active):
        return 0
    if state.status is not ScheduleStatus.ACTIVE or (state.active and _is_blocked(state, overlap)):
        return None
    return fire_at_ms


def _is_blocked(state: ScheduleState, overlap: Overlap) -> bool:
    if overlap is Overlap.CANCEL_OTHER:
        return all(each.cancelled for each in state.active)
    return overlap in _WAITING


def decide_due(draft: Draft, definition: Definition, room: int) -> None:
    """Decides on what is due now; fires at most `room` occurrences, and what is left is due at once."""
    if draft.present.status is not ScheduleStatus.ACTIVE:
        return
    overlap = definition.spec.overlap
    if draft.present.active and overlap is Overlap.CANCEL_OTHER:
        due, _ = _due(definition.timing, draft.present.cursor_ms, draft.now_ms)
        if due is not None:
            stop_active(draft, StopMode.CANCELLED, due)
        return
    if draft.present.active and overlap in _WAITING:
        return
    if not draft.present.active and overlap in _EXCLUSIVE and _decide_waiting(draft, definition):
        return
    _catch_up(draft, definition, room)


def _due(timing: Timing | OpenTimes, after_ms: int, now_ms: int) -> tuple[Occurrence | None, int]:
    """The last occurrence behind `after_ms` that was to be fired by now, and how many there are before it."""
    latest, before = timing.latest(after_ms, now_ms)
    while latest is not None and latest.fire_at_ms > now_ms:
        latest, before = timing.latest(after_ms, latest.nominal_ms - 1)
    return latest, before


def _decide_waiting(draft: Draft, definition: Definition) -> bool:
    """Decides on what fell due while an instance ran; whether that is all for now."""
    state, timing, spec = draft.present, definition.timing, definition.spec
    ended_ms = min(state.busy_until_ms, draft.now_ms)
    latest, before = _due(timing, state.cursor_ms, ended_ms)
    if latest is None:
        return False
    reason = "an instance had not ended"
    if spec.overlap is Overlap.BUFFER_ONE:
        first = definition.next_after(state.cursor_ms) or latest
        fire(draft, definition, first, FireOrigin.PLANNED, reason="waited for an instance to end")
        if before:
            skip(draft, definition, OccurrenceOutcome.OVERLAP, latest, before, f"{reason} and one waited already")
        return True
    if spec.overlap is Overlap.BUFFER_ALL:
        surplus = before + 1 - spec.buffer_max
        if surplus > 0:
            last, count = _oldest(timing, state.cursor_ms, ended_ms, surplus, before + 1)
            why = f"{reason} and {spec.buffer_max} waited already"
            skip(draft, definition, OccurrenceOutcome.OVERLAP, last, count, why)
            return True
        first = definition.next_after(state.cursor_ms) or latest
        fire(draft, definition, first, FireOrigin.PLANNED, reason="waited for an instance to end")
        return True
    if spec.overlap is Overlap.CANCEL_OTHER:
        newest, older = _due(timing, state.cursor_ms, draft.now_ms)
        why = "a later one took its place"
        _newest_only(draft, definition, newest or latest, older, OccurrenceOutcome.OVERLAP, why)
        return True
    if spec.overlap is Overlap.SKIP:
        skip(draft, definition, OccurrenceOutcome.OVERLAP, latest, before + 1, reason)
    return False


def _oldest(
    timing: Timing | OpenTimes, after_ms: int, until_ms: int, wanted: int, there: int
) -> tuple[Occurrence, int]:
    """The last of the oldest occurrences of a range that has `there` of them, and how many it is: at most `wanted`.

    Where they come evenly, almost all at once; what is left is next.
    """
    latest, before = timing.latest(after_ms, after_ms + (until_ms - after_ms) * wanted // there)
    if latest is not None and before < wanted:
        return latest, before + 1
    few = timing.between(after_ms, until_ms, min(wanted, _SURPLUS_PER_TURN)).occurrences
    return few[-1], len(few)


def _newest_only(
    draft: Draft, definition: Definition, newest: Occurrence, older: int, outcome: OccurrenceOutcome, reason: str
) -> None:
    if older:
        previous, before = definition.timing.latest(draft.present.cursor_ms, newest.nominal_ms - 1)
        if previous is not None:
            skip(draft, definition, outcome, previous, before + 1, reason)
    fire(draft, definition, newest, FireOrigin.PLANNED)


def _catch_up(draft: Draft, definition: Definition, room: int) -> None:
    spec, timing, now_ms = definition.spec, definition.timing, draft.now_ms
    if _fire_only_one(draft, definition):
        return
    window_ms = ON_TIME_MS if spec.catch_up is CatchUp.NONE else max(spec.catch_up_window_ms, ON_TIME_MS)
    missed, before = _due(timing, draft.present.cursor_ms, now_ms - window_ms - 1)
    if missed is not None:
        skip(draft, definition, OccurrenceOutcome.MISSED, missed, before + 1, f"late by more than {window_ms} ms")
    newest, older = _due(timing, draft.present.cursor_ms, now_ms)
    if newest is None:
        return
    is_all = spec.catch_up is CatchUp.ALL
    if is_all and spec.overlap not in (Overlap.CANCEL_OTHER, Overlap.REPLACE_OTHER):
        _fire_all(draft, definition, room)
        return
    if spec.overlap is Overlap.REPLACE_OTHER:
        stop_active(draft, StopMode.REPLACED, newest)
    outcome = OccurrenceOutcome.OVERLAP if is_all else OccurrenceOutcome.COALESCED
    _newest_only(draft, definition, newest, older, outcome, "a later one was due, too")


def _fire_only_one(draft: Draft, definition: Definition) -> bool:
    """The everyday case, without a look at the whole range: one is due, on time, and the next is to come."""
    first = definition.next_after(draft.present.cursor_ms)
    if first is None or not 0 <= draft.now_ms - first.fire_at_ms <= ON_TIME_MS:
        return False
    following = definition.next_after(first.nominal_ms)
    if following is not None and following.fire_at_ms <= draft.now_ms:
        return False
    if definition.spec.overlap is Overlap.REPLACE_OTHER:
        stop_active(draft, StopMode.REPLACED, first)
    fire(draft, definition, first, FireOrigin.PLANNED)
    return True


def _fire_all(draft: Draft, definition: Definition, room: int) -> None:
    """Oldest first. Where the policy is exclusive, the first keeps the others waiting."""
    max_runs = definition.spec.max_runs
    left = room if max_runs is None else min(room, max(0, max_runs - draft.present.runs))
    limit = 1 if definition.spec.overlap in _EXCLUSIVE else left
    for occurrence in definition.timing.between(draft.present.cursor_ms, draft.now_ms, min(limit, left)).occurrences:
        if occurrence.fire_at_ms <= draft.now_ms:
            fire(draft, definition, occurrence, FireOrigin.PLANNED)


def decide_backfill(draft: Draft, definition: Definition, room: int) -> None:
    """Fires occurrences of the oldest backfill: one after the other, or up to `room` where instances may overlap.

    A pause holds it: what is wrong with the instances is wrong with those of a backfill, and nothing else stops one.
    """
    if draft.present.status is ScheduleStatus.PAUSED:
        return
    overlaps = definition.spec.overlap is Overlap.ALLOW_ALL
    if not draft.present.backfills or (draft.present.active and not overlaps):
        return
    backfill = draft.present.backfills[0]
    limit = room if overlaps else 1
    found = _not_fired(draft.present, definition, backfill, limit + 1)
    for occurrence in found[:limit]:
        fire(
            draft,
            definition,
            occurrence,
            FireOrigin.BACKFILL,
            command_id=backfill.command_id,
            actor=backfill.actor,
            reason=backfill.reason,
        )
    if len(found) <= limit:
        draft.add(BackfillEnded(**draft.head(), command_id=backfill.command_id))


def _not_fired(state: ScheduleState, definition: Definition, backfill: Backfill, limit: int) -> list[Occurrence]:
    """The next occurrences of a backfill, without those that were fired, and those whose turn as planned is to come."""
    until_ms = backfill.until_ms
    if state.status is ScheduleStatus.ACTIVE:
        until_ms = min(until_ms, state.cursor_ms)
    # Of another version only the times were planned that it had; which of these were the same, their jobs know.
    runs = [run for run in state.fired_runs if run.version == state.version]
    found: list[Occurrence] = []
    occurrence = definition.next_after(backfill.after_ms)
    while occurrence is not None and occurrence.nominal_ms <= until_ms and len(found) < limit:
        nominal_ms = occurrence.nominal_ms
        run = next((each for each in runs if each.first_ms <= nominal_ms <= each.last_ms), None)
        if run is None:
            found.append(occurrence)
        occurrence = definition.next_after(nominal_ms if run is None else run.last_ms)
    return found


def close_overlapped(draft: Draft, definition: Definition) -> None:
    """Skips what fell due while an instance ran, before a pause: a resume makes up for nothing, so nothing can wait.

    It is not what the pause keeps from firing, so its outcome is another.
    """
    state, overlap = draft.present, definition.spec.overlap
    if overlap not in _EXCLUSIVE or overlap is Overlap.REPLACE_OTHER:
        return
    until_ms = draft.now_ms if state.active else min(state.busy_until_ms, draft.now_ms)
    latest, before = _due(definition.timing, state.cursor_ms, until_ms)
    if latest is not None:
        reason = "an instance had not ended before the schedule was paused"
        skip(draft, definition, OccurrenceOutcome.OVERLAP, latest, before + 1, reason)


def close_rest(draft: Draft, definition: Definition, reason: str) -> None:
    """Gives an outcome to everything planned up to now that has none, before the schedule goes on by other terms."""
    state = draft.present
    if state.status is ScheduleStatus.COMPLETED:
        return
    latest, before = definition.timing.latest(state.cursor_ms, draft.now_ms)
    if latest is None:
        return
    outcome = OccurrenceOutcome.MISSED
    if state.status is ScheduleStatus.PAUSED:
        outcome = OccurrenceOutcome.PAUSED
    elif state.active and definition.spec.overlap in _EXCLUSIVE:
        outcome = OccurrenceOutcome.OVERLAP
    skip(draft, definition, outcome, latest, before + 1, reason)


def decide_rewind(draft: Draft) -> bool:
    """Takes the cursor back to the present where the clock that moved it was ahead; says whether it was."""
    to_ms = rewind_to_ms(draft.present, draft.now_ms)
    if to_ms is None:
        return False
    draft.add(ScheduleRewound(**draft.head(), from_ms=draft.present.cursor_ms, to_ms=to_ms))
    return True


def complete(draft: Draft, definition: Definition) -> None:
    """Ends the schedule where nothing is planned any more."""
    state, spec = draft.present, definition.spec
    if state.status is not ScheduleStatus.ACTIVE:
        return
    if spec.max_runs is not None and state.runs >= spec.max_runs:
        draft.add(ScheduleCompleted(**draft.head(), completion_code=CompletionCode.MAX_RUNS))
    elif definition.next_after(state.cursor_ms) is None:
        draft.add(ScheduleCompleted(**draft.head(), completion_code=CompletionCode.END))
