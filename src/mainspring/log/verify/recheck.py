"""A second look at the few jobs whose digests differ: with names, columns and offsets, on a log that may have grown."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from mainspring.log.source import LogSource, Place, Raw, Span
from mainspring.log.verify.decoding import DeadPlaces, Reader
from mainspring.log.verify.findings import Check, Findings
from mainspring.log.verify.tables import SPEC_PREFIX, STATE_PREFIX, differences, key_of
from mainspring.processors.core.errors import CoreError
from mainspring.processors.core.job.evolve import evolve
from mainspring.processors.core.job.transitions import TERMINAL
from mainspring.schemas import JOB_EVENT_TYPES, Codec
from mainspring.schemas.events import JobSubmitted
from mainspring.schemas.job import JobSpec
from mainspring.schemas.records import Record
from mainspring.schemas.tables import JobState
from mainspring.topics import Topic

__all__ = ["recheck_table", "recheck_view"]

T = TypeVar("T")

LOOKS = 5
"""On a live log a job may change between reading its table and its events; a fault differs at every look."""


@dataclass(frozen=True, slots=True)
class _At(Generic[T]):
    value: T
    place: Place


@dataclass(slots=True)
class _Fold:
    states: dict[str, _At[JobState]] = field(default_factory=dict)
    specs: dict[str, JobSpec] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Difference:
    check: Check
    job_id: str
    detail: str
    place: Place | None


def recheck_table(
    source: LogSource, codec: Codec, partition: int, suspects: frozenset[int], findings: Findings, *, from_start: bool
) -> None:
    """Reports the suspects whose row still is not the fold."""
    topology = source.topology
    topics = (topology.scheduler_changelog, topology.events)
    remaining, found = suspects, list[_Difference]()
    for _ in range(LOOKS if source.is_live else 1):
        table_spans = source.spans(topics[:1])
        event_spans = source.spans(topics[1:])
        table = _read_table(source, codec, topics[0], partition, table_spans[topics[0].name, partition], remaining)
        fold = _read_fold(source, codec, topics[1], partition, event_spans[topics[1].name, partition], remaining)
        found = list(_table_differences(table, fold, from_start=from_start))
        remaining = frozenset(key_of(each.job_id) for each in found)
        if not remaining:
            break
    for each in found:
        findings.add(each.check, f"job {each.job_id!r}: {each.detail}", place=each.place, job_id=each.job_id)


def recheck_view(
    source: LogSource,
    codec: Codec,
    partition: int,
    span: Span,
    suspects: Mapping[int, JobState | None],
    findings: Findings,
) -> None:
    """Reports the suspects whose row in the view is not the fold of `span`, which ends where the view stands."""
    fold = _read_fold(source, codec, source.topology.events, partition, span, frozenset(suspects))
    seen: set[str] = set()
    for row in suspects.values():
        if row is None:
            continue
        seen.add(row.job_id)
        folded = fold.states.get(row.job_id)
        if folded is None:
            findings.add(
                Check.VIEW_EXTRA, f"job {row.job_id!r}: in the view and no event submitted it", job_id=row.job_id
            )
        elif detail := differences(row, folded.value):
            findings.add(Check.VIEW_DIFFERS, f"job {row.job_id!r}: {detail}", place=folded.place, job_id=row.job_id)
    for job_id, at in fold.states.items():
        if job_id not in seen:
            findings.add(
                Check.VIEW_ABSENT,
                f"job {job_id!r}: {at.value.status.name} by its events and not in the view",
                place=at.place,
                job_id=job_id,
            )


@dataclass(slots=True)
class _Table:
    states: dict[str, _At[JobState]] = field(default_factory=dict)
    specs: dict[str, _At[JobSpec]] = field(default_factory=dict)


def _table_differences(table: _Table, fold: _Fold, *, from_start: bool) -> Iterator[_Difference]:
    for job_id, at in fold.states.items():
        row = table.states.get(job_id)
        if row is None:
            if at.value.status not in TERMINAL:
                detail = f"{at.value.status.name} by its events and without a row in the scheduler's table"
                yield _Difference(Check.TABLE_ABSENT, job_id, detail, at.place)
            continue
        if detail := differences(row.value, at.value):
            yield _Difference(Check.TABLE_DIFFERS, job_id, detail, row.place)
        spec = table.specs.get(job_id)
        if spec is None:
            yield _Difference(Check.TABLE_ABSENT, job_id, "has a state row and no specification row", row.place)
        elif spec.value != fold.specs[job_id]:
            yield _Difference(
                Check.TABLE_DIFFERS, job_id, "its specification row is not what was submitted", spec.place
            )
    for job_id, row in table.states.items():
        if job_id not in fold.states and from_start:
            yield _Difference(Check.TABLE_EXTRA, job_id, "has a row and no event submitted it", row.place)


def _read_table(
    source: LogSource, codec: Codec, topic: Topic, partition: int, span: Span, keys: frozenset[int]
) -> _Table:
    table = _Table()
    for raw, record, place in _records(source, codec, topic, partition, span):
        if raw.value is None and raw.key:
            job_id = raw.key[1:].decode("utf-8", "replace")
            if raw.key[:1] == STATE_PREFIX:
                table.states.pop(job_id, None)
            elif raw.key[:1] == SPEC_PREFIX:
                table.specs.pop(job_id, None)
        elif type(record) is JobState and key_of(record.job_id) in keys:
            table.states[record.job_id] = _At(record, place(raw.offset))
        elif type(record) is JobSpec and key_of(record.job_id) in keys:
            table.specs[record.job_id] = _At(record, place(raw.offset))
    return table


def _read_fold(
    source: LogSource, codec: Codec, topic: Topic, partition: int, span: Span, keys: frozenset[int]
) -> _Fold:
    fold = _Fold()
    for raw, record, place in _records(source, codec, topic, partition, span):
        if type(record) not in JOB_EVENT_TYPES:
            continue
        job_id: str = record.job_id  # type: ignore[union-attr]  # JOB_EVENT_TYPES holds the members of JobEvent
        if key_of(job_id) not in keys:
            continue
        former = fold.states.get(job_id)
        before = None if former is None or type(record) is JobSubmitted else former.value
        try:
            after = evolve(before, record)  # type: ignore[arg-type]  # JOB_EVENT_TYPES holds the members of JobEvent
        except CoreError:
            continue  # The first look has told of it.
        if after is not None and after is not before:
            fold.states[job_id] = _At(after, place(raw.offset))
            if type(record) is JobSubmitted:
                fold.specs[job_id] = record.spec
    return fold


def _records(
    source: LogSource, codec: Codec, topic: Topic, partition: int, span: Span
) -> Iterator[tuple[Raw, Record | None, Callable[[int], Place]]]:
    """Decodes without complaint: what does not decode has been told of."""
    reader = Reader(codec, topic, partition, Findings(), DeadPlaces())
    batches: Iterator[Sequence[Raw]] = source.read(topic, partition, span)
    for batch in batches:
        for raw in batch:
            yield raw, None if raw.value is None else reader.decode(raw), reader.place
