"""The rows of schedules against the fold: at first as they were read, and what differs once more on a live log."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

from mainspring.log.source import LogSource, Span
from mainspring.log.verify.decoding import DeadPlaces, Reader
from mainspring.log.verify.findings import Check, Findings
from mainspring.processors.core.errors import CoreError
from mainspring.processors.core.schedule.evolve import NO_PLAN, evolve_schedule
from mainspring.schemas import Codec
from mainspring.schemas.records import SCHEDULE_EVENT_TYPES
from mainspring.schemas.schedule import ScheduleSpec
from mainspring.schemas.schedule_events import ScheduleCreated, ScheduleUpdated
from mainspring.schemas.tables import ScheduleState
from mainspring.topics import Topic

__all__ = ["ScheduleTable", "compare_schedules"]

_LOOKS = 5
"""On a live log a row may be read before its events are all to be seen; a fault differs at every look."""

_Age: TypeAlias = tuple[int, int]

_STATE_PREFIX, _SPEC_PREFIX = b"R", b"D"


@dataclass(frozen=True, slots=True)
class ScheduleTable:
    """States and definitions by schedule id, from a changelog or from a fold."""

    states: dict[str, ScheduleState]
    specs: dict[str, ScheduleSpec]


def compare_schedules(
    source: LogSource, codec: Codec, partition: int, rows: ScheduleTable, fold: ScheduleTable, findings: Findings
) -> int:
    """Reports every schedule whose rows are not the fold. Returns how many rows there are. For a log from its start."""
    differing = dict(_differences(rows, fold))
    youngest = {schedule_id: _age(state) for schedule_id, state in fold.states.items()}
    looks = 1
    while differing and source.is_live and looks < _LOOKS:
        looks += 1
        # The row first: what the events tell beyond it is then younger, and the fold is compared as it was at the row.
        again = _read_rows(source, codec, partition)
        at_rows, latest = _read_fold(source, codec, partition, again)
        found = dict(_differences(again, at_rows)) | dict(_left_behind(again, youngest))
        differing = {key: found[key] for key in differing if key in found}
        youngest = latest
    for schedule_id, (check, detail) in sorted(differing.items()):
        findings.add(check, f"schedule {schedule_id!r}: {detail}")
    return len(rows.states)


def _differences(rows: ScheduleTable, fold: ScheduleTable) -> Iterator[tuple[str, tuple[Check, str]]]:
    for schedule_id, state in fold.states.items():
        row = rows.states.get(schedule_id)
        if row is None or schedule_id not in rows.specs:
            missing = "state" if row is None else "definition"
            yield schedule_id, (Check.TABLE_ABSENT, f"{state.status.name} by its events and without a {missing} row")
        elif detail := _columns(row, state):
            yield schedule_id, (Check.TABLE_DIFFERS, detail)
        elif rows.specs[schedule_id] != fold.specs[schedule_id]:
            yield schedule_id, (Check.TABLE_DIFFERS, "its definition row is not what was last accepted")
    for schedule_id in {*rows.states, *rows.specs} - fold.states.keys():
        yield schedule_id, (Check.TABLE_EXTRA, "has a row and no event created it")


def _left_behind(rows: ScheduleTable, youngest: Mapping[str, _Age]) -> Iterator[tuple[str, tuple[Check, str]]]:
    """Rows that are older than events which were there before the rows were read."""
    for schedule_id, age in youngest.items():
        row = rows.states.get(schedule_id)
        if row is not None and _age(row) < age:
            yield schedule_id, (Check.TABLE_DIFFERS, f"revision is {row.revision} and its events are at {age[1]}")


def _columns(row: ScheduleState, fold: ScheduleState) -> str:
    left, right = replace(row, plan=NO_PLAN), replace(fold, plan=NO_PLAN)
    return "; ".join(
        f"{each.name} is {getattr(left, each.name)!r} and the fold gives {getattr(right, each.name)!r}"
        for each in fields(ScheduleState)
        if getattr(left, each.name) != getattr(right, each.name)
    )


def _read_rows(source: LogSource, codec: Codec, partition: int) -> ScheduleTable:
    topic = source.topology.scheduler_changelog
    states: dict[str, ScheduleState] = {}
    specs: dict[str, ScheduleSpec] = {}
    for key, record in _records(source, codec, topic, partition):
        if isinstance(record, ScheduleState):
            states[record.schedule_id] = record
        elif isinstance(record, ScheduleSpec):
            specs[record.schedule_id] = record
        elif record is None and key[:1] in (_STATE_PREFIX, _SPEC_PREFIX):
            (states if key[:1] == _STATE_PREFIX else specs).pop(key[1:].decode("utf-8", "replace"), None)
    return ScheduleTable(states, specs)


def _read_fold(
    source: LogSource, codec: Codec, partition: int, rows: ScheduleTable
) -> tuple[ScheduleTable, dict[str, _Age]]:
    """The fold as it was when each row was written, or to its end where it was never so; and how young its end is."""
    states: dict[str, ScheduleState] = {}
    specs: dict[str, ScheduleSpec] = {}
    at_rows = ScheduleTable({}, {})
    for _, event in _records(source, codec, source.topology.events, partition):
        if type(event) not in SCHEDULE_EVENT_TYPES:
            continue
        schedule_id: str = event.schedule_id  # type: ignore[attr-defined]  # SCHEDULE_EVENT_TYPES holds the members of ScheduleEvent
        try:
            after = evolve_schedule(states.get(schedule_id), event)  # type: ignore[arg-type]  # as above
        except CoreError:
            continue  # The first look has told of it.
        if isinstance(event, ScheduleCreated | ScheduleUpdated):
            specs[schedule_id] = event.spec
        if after is None:
            states.pop(schedule_id, None)
            specs.pop(schedule_id, None)
            continue
        states[schedule_id] = after
        row = rows.states.get(schedule_id)
        if row is not None and _age(after) == _age(row):
            at_rows.states[schedule_id], at_rows.specs[schedule_id] = after, specs[schedule_id]
    folded = ScheduleTable(states | at_rows.states, specs | at_rows.specs)
    return folded, {schedule_id: _age(state) for schedule_id, state in states.items()}


def _age(state: ScheduleState) -> _Age:
    """Incarnation and revision: they grow with each event that changes the schedule."""
    return state.incarnation, state.revision


def _records(source: LogSource, codec: Codec, topic: Topic, partition: int) -> Iterator[tuple[bytes, object]]:
    """Decodes without complaint: what does not decode has been told of."""
    reader = Reader(codec, topic, partition, Findings(), DeadPlaces())
    span: Span = source.spans([topic])[topic.name, partition]
    for batch in source.read(topic, partition, span):
        for raw in batch:
            yield raw.key or b"", None if raw.value is None else reader.decode(raw)
