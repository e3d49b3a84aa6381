"""The scheduler's changelog and the view against the fold: first by digests, and what differs by a second look."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from mainspring.log.source import Raw
from mainspring.log.verify.decoding import Reader
from mainspring.log.verify.digests import MASK, DigestTable
from mainspring.log.verify.findings import Check, Findings
from mainspring.log.verify.jobs import JobAuditor, state_digest
from mainspring.processors.projector.text import clean
from mainspring.schemas.job import JobSpec
from mainspring.schemas.schedule import ScheduleSpec
from mainspring.schemas.tables import JobState, PositionRow, ScheduleState

if TYPE_CHECKING:
    from mainspring.processors.projector.view import Snapshot

__all__ = [
    "POSITION_KEY",
    "SPEC_PREFIX",
    "STATE_PREFIX",
    "TableRows",
    "compare_table",
    "compare_view",
    "differences",
    "key_of",
]

STATE_PREFIX, SPEC_PREFIX, POSITION_KEY = b"J", b"S", b"!position"
SCHEDULE_PREFIX, DEFINITION_PREFIX = b"R", b"D"
_NO_FOLD = frozenset({"dispatch", "plan"})
"""Columns that no event carries."""

GONE = 0
"""Digest of a deleted row; a digest that happens to be zero is stored as one."""


def key_of(job_id: str) -> int:
    """The key of a job in digest tables."""
    return (hash(job_id) & MASK) or 1


@dataclass(slots=True)
class TableRows:
    """The newest row of each key of one changelog partition, as digests."""

    states: DigestTable = field(default_factory=DigestTable)
    specs: DigestTable = field(default_factory=DigestTable)
    schedules: dict[str, ScheduleState] = field(default_factory=dict)
    definitions: dict[str, ScheduleSpec] = field(default_factory=dict)
    position: PositionRow | None = None
    records: int = 0

    def fill(self, batches: Iterable[Sequence[Raw]], reader: Reader, findings: Findings) -> None:
        """Reads a partition of the changelog."""
        for batch in batches:
            self.records += len(batch)
            for raw in batch:
                if raw.value is None:
                    self._delete(raw.key or b"")
                    continue
                row = reader.decode(raw)
                if type(row) is JobState:
                    self.states.put(key_of(row.job_id), state_digest(row) or 1)
                    key = STATE_PREFIX + row.job_id.encode()
                elif type(row) is JobSpec:
                    self.specs.put(key_of(row.job_id), hash(row) or 1)
                    key = SPEC_PREFIX + row.job_id.encode()
                elif type(row) is ScheduleState:
                    self.schedules[row.schedule_id] = row
                    key = SCHEDULE_PREFIX + row.schedule_id.encode()
                elif type(row) is ScheduleSpec:
                    self.definitions[row.schedule_id] = row
                    key = DEFINITION_PREFIX + row.schedule_id.encode()
                elif type(row) is PositionRow:
                    self.position = row
                    key = POSITION_KEY
                else:
                    continue
                if raw.key != key:
                    findings.add(
                        Check.BAD_KEY,
                        f"the key is {raw.key!r} and the row's is {key!r}",
                        place=reader.place(raw.offset),
                    )

    def _delete(self, key: bytes) -> None:
        row_id = key[1:].decode("utf-8", "replace")
        table = self.states if key[:1] == STATE_PREFIX else self.specs if key[:1] == SPEC_PREFIX else None
        if table is not None:
            table.put(key_of(row_id), GONE)
        elif key[:1] == SCHEDULE_PREFIX:
            self.schedules.pop(row_id, None)
        elif key[:1] == DEFINITION_PREFIX:
            self.definitions.pop(row_id, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableComparison:
    """How a partition's table compares: rows there, finished jobs without one, keys that need a second look."""

    rows: int
    evicted: int
    suspects: frozenset[int]


def compare_table(rows: TableRows, auditor: JobAuditor) -> TableComparison:
    """Compares by digest. A finished job may have no row: the scheduler forgets it by its history limit."""
    suspects: set[int] = set()
    present = evicted = 0
    for job_id, live in auditor.live.items():
        key = key_of(job_id)
        rows.states.mark(key)
        present += 1
        if rows.states.get(key) != (state_digest(live.state) & MASK or 1) or rows.specs.get(key) in (None, GONE):
            suspects.add(key)
    for key, digest in auditor.finished.items():
        if digest == 0:
            continue  # The id lives again; its row was compared above.
        rows.states.mark(key)
        row = rows.states.get(key)
        if row is None or row == GONE:
            evicted += 1
        elif row != digest:
            suspects.add(key)
        else:
            present += 1
    suspects.update(key for key, digest in rows.states.unmarked() if digest != GONE)
    for key, digest in rows.specs.items():
        if digest != GONE and auditor.specs.get(key) != digest:
            suspects.add(key)
    return TableComparison(rows=present, evicted=evicted, suspects=frozenset(suspects))


def compare_view(snapshot: "Snapshot", partition: int, auditor: JobAuditor) -> tuple[int, dict[int, JobState | None]]:
    """Compares a partition's rows in the view with the fold up to the view's position; the rows seen, the suspects."""
    suspects: dict[int, JobState | None] = {}
    seen = DigestTable()
    for state, _ in snapshot.states(partition):
        key = key_of(state.job_id)
        seen.put(key, 1)
        live = auditor.live.get(state.job_id)
        digest = auditor.finished.get(key) if live is None else state_digest(live.state) & MASK or 1
        if digest != (state_digest(state) & MASK or 1):
            suspects[key] = state
    if snapshot.keeps_all:
        for job_id in auditor.live:
            if seen.get(key_of(job_id)) is None:
                suspects[key_of(job_id)] = None
        for key, digest in auditor.finished.items():
            if digest and seen.get(key) is None:
                suspects[key] = None
    return len(seen), suspects


def differences(row: JobState | ScheduleState, fold: JobState | ScheduleState) -> str:
    """The columns in which a row is not the fold, with both values. NUL counts as what a database keeps of it."""
    told = []
    for each in fields(row):
        if each.name in _NO_FOLD:
            continue
        left, right = _plain(getattr(row, each.name)), _plain(getattr(fold, each.name))
        if left != right:
            told.append(f"{each.name} is {_shown(left)} and the fold gives {_shown(right)}")
    return "; ".join(told)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if value is not None and hasattr(value, "__dataclass_fields__"):
        return replace(value, **{each.name: _plain(getattr(value, each.name)) for each in fields(value)})
    return value


def _shown(value: Any) -> str:
    return str(value.name) if hasattr(value, "name") else repr(value)
