"""The writer's side of the database: one transaction per batch, with the positions in it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from operator import itemgetter
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Dialect,
    Table,
    and_,
    bindparam,
    delete,
    func,
    insert,
    inspect,
    not_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from mainspring.processors.projector.errors import ViewMismatchError
from mainspring.processors.projector.fold import Changes
from mainspring.processors.projector.jobrow import JobRow
from mainspring.processors.projector.schedulefold import ScheduleChanges
from mainspring.processors.projector.schedulerow import ScheduleRow
from mainspring.processors.projector.tables import (
    SCHEMA_VERSION,
    attempts,
    counters,
    events,
    job_specs,
    job_tags,
    jobs,
    meta,
    metadata,
    occurrences,
    positions,
    rejections,
    schedule_changes,
    schedules,
    unreadable,
)
from mainspring.schemas.schedule_events import ScheduleCreated, ScheduleUpdated

__all__ = ["Position", "ViewStore", "chunked"]

T = TypeVar("T")

CHUNK = 500
"""Ids in one IN list; SQLite's oldest limit of variables is 999."""

_LOADED = [column for column in jobs.c if column.name != "result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far one partition is folded: the next offset, and the last event as the proof that the topic is the same.

    `last_event_offset` is −1 and `last_event_id` empty while the partition has had no event.
    """

    partition: int
    topic: str
    topic_id: str
    next_offset: int
    last_event_offset: int = -1
    last_event_id: str = ""
    last_event_at_ms: int = 0


class ViewStore:
    """Writes one view through one connection. Not thread-safe; the caller holds the lock of the single writer."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._put_into = {table.name: _Put(connection.dialect, table) for table in metadata.sorted_tables}

    def prepare(self, *, rebuild: bool, keeps_all: bool = True) -> None:
        """Makes the tables, or checks that they are of this version; `rebuild` drops what is there.

        `keeps_all` False is remembered: from then on, a job that is not in the view is no fault of it.
        """
        with self._connection.begin():
            present = inspect(self._connection).has_table(meta.name)
            if present and rebuild:
                metadata.drop_all(self._connection)
            metadata.create_all(self._connection)
            found = self._connection.scalar(select(meta.c.value).where(meta.c.name == "schema_version"))
            if found is None:
                self._connection.execute(insert(meta).values(name="schema_version", value=str(SCHEMA_VERSION)))
                self._connection.execute(insert(meta).values(name="retention", value="everything"))
            elif found != str(SCHEMA_VERSION):
                raise ViewMismatchError(
                    f"the view has schema version {found} and this projector writes {SCHEMA_VERSION}; "
                    "a view is only a fold of the log: run `mainspring projector --rebuild`"
                )
            if not keeps_all:
                self._connection.execute(update(meta).where(meta.c.name == "retention").values(value="limited"))

    def remember_source(self, topic: str, topic_id: str) -> None:
        """Keeps which topic the view is a fold of, so that readers can tell it from others before its first event."""
        with self._connection.begin():
            self._put(meta, [{"name": "topic", "value": topic}, {"name": "topic_id", "value": topic_id}])

    def positions(self) -> dict[int, Position]:
        """Where each partition stands; empty for a new view."""
        with self._connection.begin():
            rows = self._connection.execute(select(positions)).mappings().all()
        return {row["partition"]: Position(**row) for row in rows}

    def load(self, job_ids: Iterable[str]) -> dict[str, JobRow]:
        """The rows of these jobs, without their results."""
        known: dict[str, JobRow] = {}
        statement = select(*_LOADED).where(jobs.c.job_id.in_(bindparam("ids", expanding=True)))
        with self._connection.begin():
            for chunk in chunked(job_ids, CHUNK):
                for row in self._connection.execute(statement, {"ids": chunk}).mappings():
                    known[row["job_id"]] = JobRow.loaded(row)
        return known

    def load_schedules(self, schedule_ids: Iterable[str]) -> dict[str, ScheduleRow]:
        """The rows of these schedules."""
        known: dict[str, ScheduleRow] = {}
        statement = select(schedules).where(schedules.c.schedule_id.in_(bindparam("ids", expanding=True)))
        with self._connection.begin():
            for chunk in chunked(schedule_ids, CHUNK):
                for row in self._connection.execute(statement, {"ids": chunk}).mappings():
                    known[row["schedule_id"]] = ScheduleRow.loaded(row)
        return known

    def renew_plans(self, tzdata: str) -> int:
        """Computes anew when schedules fire next, where that followed from other time zone data; returns how many."""
        statement = select(schedules.c.schedule_id).where(schedules.c.tzdata != tzdata)
        with self._connection.begin():
            outdated = list(self._connection.scalars(statement))
        for chunk in chunked(outdated, CHUNK):
            rows = [row.values() for row in self.load_schedules(chunk).values()]
            with self._connection.begin():
                self._put(schedules, rows)
        return len(outdated)

    def write(self, changes: Changes, moved: Sequence[Position]) -> None:
        """Applies a batch and moves the positions, all or nothing."""
        with self._connection.begin():
            self._forget_former_lives(changes.resubmitted)
            self._put(jobs, [row.values() for row in changes.jobs.values()])
            self._put(job_specs, list(changes.specs.values()))
            self._put(job_tags, [{"tag": tag, "job_id": job} for job, tags in changes.tags.items() for tag in tags])
            self._put(events, changes.events)
            self._put(attempts, list(changes.started.values()))
            if changes.ended:
                self._connection.execute(_END_ATTEMPT, list(changes.ended.values()))
            self._put(rejections, changes.rejections)
            self._put(unreadable, changes.unreadable)
            self._count(changes.counters)
            self._write_schedules(changes.schedules)
            self._put(positions, [asdict(position) for position in moved])

    def _write_schedules(self, changes: ScheduleChanges) -> None:
        self._put(schedules, [row.values() for row in changes.rows.values() if row is not None])
        gone = [schedule_id for schedule_id, row in changes.rows.items() if row is None]
        for chunk in chunked(gone, CHUNK):
            self._connection.execute(delete(schedules).where(schedules.c.schedule_id.in_(chunk)))
        self._put(occurrences, list(changes.entries.values()))
        if changes.ended:
            self._connection.execute(_END_INSTANCE, list(changes.ended.values()))
        if changes.deleted:
            deleted = [{"of_id": key[0], "of_incarnation": key[1], "at_ms": at} for key, at in changes.deleted.items()]
            self._connection.execute(_SETTLE_ORPHANS, deleted)
        self._put(schedule_changes, changes.changes)

    def _put(self, table: Table, rows: list[dict[str, Any]]) -> None:
        if rows:
            self._put_into[table.name](self._connection, rows)

    def _forget_former_lives(self, job_ids: Iterable[str]) -> None:
        for chunk in chunked(job_ids, CHUNK):
            for table in (attempts, job_tags):
                self._connection.execute(delete(table).where(table.c.job_id.in_(chunk)))

    def _count(self, moves: Mapping[tuple[str, str], int]) -> None:
        rows = [{"queue": queue, "status": status, "jobs": by} for (queue, status), by in moves.items() if by]
        if rows:
            self._put(counters, rows)
            # Else a view would show by its zeros which way it was folded, and a rebuilt one would differ.
            self._connection.execute(delete(counters).where(counters.c.jobs == 0))

    def finished_before(self, finished_ms: int, limit: int) -> list[str]:
        """Ids of jobs that finished before, the oldest first."""
        statement = (
            select(jobs.c.job_id)
            .where(jobs.c.finished_at_ms < finished_ms)
            .order_by(jobs.c.finished_at_ms, jobs.c.job_id)
            .limit(limit)
        )
        with self._connection.begin():
            return list(self._connection.scalars(statement))

    def oldest_finished(self, limit: int) -> list[str]:
        """Ids of the jobs that finished first."""
        statement = (
            select(jobs.c.job_id)
            .where(jobs.c.finished_at_ms.is_not(None))
            .order_by(jobs.c.finished_at_ms, jobs.c.job_id)
            .limit(limit)
        )
        with self._connection.begin():
            return list(self._connection.scalars(statement))

    def finished_count(self, terminal: Sequence[str]) -> int:
        """How many jobs have one of these statuses."""
        statement = select(func.coalesce(func.sum(counters.c.jobs), 0)).where(counters.c.status.in_(terminal))
        with self._connection.begin():
            return int(self._connection.scalar(statement) or 0)

    def remove(self, job_ids: Sequence[str]) -> None:
        """Takes these jobs and all that is told of them out of the view."""
        with self._connection.begin():
            for chunk in chunked(job_ids, CHUNK):
                gone = self._connection.execute(
                    select(jobs.c.queue, jobs.c.status, func.count())
                    .where(jobs.c.job_id.in_(chunk))
                    .group_by(jobs.c.queue, jobs.c.status)
                ).all()
                self._count({(queue, status): -number for queue, status, number in gone})
                for table in (jobs, job_specs, job_tags, attempts, events, rejections):
                    self._connection.execute(delete(table).where(table.c.job_id.in_(chunk)))

    def settled_before(self, settled_ms: int, limit: int) -> list[tuple[str, int, int]]:
        """Entries of ledgers that nothing can happen to any more since then, the oldest first, by their keys."""
        return self._settled(occurrences.c.settled_at_ms < settled_ms, limit)

    def oldest_settled(self, limit: int) -> list[tuple[str, int, int]]:
        """Entries of ledgers that were settled first, by their keys."""
        return self._settled(occurrences.c.settled_at_ms.is_not(None), limit)

    def _settled(self, condition: ColumnElement[bool], limit: int) -> list[tuple[str, int, int]]:
        key = (occurrences.c.schedule_id, occurrences.c.incarnation, occurrences.c.revision)
        statement = select(*key).where(condition).order_by(occurrences.c.settled_at_ms, *key).limit(limit)
        with self._connection.begin():
            return [(row[0], row[1], row[2]) for row in self._connection.execute(statement)]

    def settled_count(self) -> int:
        """How many entries of ledgers are settled."""
        statement = select(func.count()).where(occurrences.c.settled_at_ms.is_not(None))
        with self._connection.begin():
            return int(self._connection.scalar(statement) or 0)

    def remove_entries(self, keys: Sequence[tuple[str, int, int]]) -> None:
        """Takes entries out of the ledgers."""
        found = [{"of_id": each[0], "of_incarnation": each[1], "of_revision": each[2]} for each in keys]
        with self._connection.begin():
            self._connection.execute(delete(occurrences).where(*_ENTRY), found)

    def remove_changes_before(self, decided_ms: int, limit: int) -> int:
        """Takes old changes of schedules out of the view, but for the definitions of those that exist; how many."""
        place = (schedule_changes.c.partition, schedule_changes.c.offset)
        exists = schedule_changes.c.schedule_id.in_(select(schedules.c.schedule_id))
        statement = (
            select(*place)
            .where(
                schedule_changes.c.decided_at_ms < decided_ms,
                not_(and_(schedule_changes.c.type.in_(_DEFINING), exists)),
            )
            .limit(limit)
        )
        with self._connection.begin():
            old = [{"p": row.partition, "o": row.offset} for row in self._connection.execute(statement)]
            if old:
                at = (place[0] == bindparam("p"), place[1] == bindparam("o"))
                self._connection.execute(delete(schedule_changes).where(*at), old)
        return len(old)

    def remove_refusals_before(self, decided_ms: int, limit: int) -> int:
        """Takes old refusals of commands out of the view, also those that no job belongs to; returns how many."""
        place = (rejections.c.partition, rejections.c.offset)
        statement = select(*place).where(rejections.c.decided_at_ms < decided_ms).limit(limit)
        with self._connection.begin():
            old = [{"p": row.partition, "o": row.offset} for row in self._connection.execute(statement)]
            for table in (events, rejections) if old else ():
                at = (table.c.partition == bindparam("p"), table.c.offset == bindparam("o"))
                self._connection.execute(delete(table).where(*at), old)
        return len(old)


def chunked(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of at most `size`."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk


_END_ATTEMPT = (
    update(attempts)
    .where(attempts.c.job_id == bindparam("of_job"), attempts.c.attempt == bindparam("of_attempt"))
    .values(
        {
            name: bindparam(name)
            for name in (
                "ended_at_ms",
                "outcome",
                "retry_delay_ms",
                "error_type",
                "error_message",
                "error_traceback",
            )
        }
    )
)


_ENTRY = (
    occurrences.c.schedule_id == bindparam("of_id"),
    occurrences.c.incarnation == bindparam("of_incarnation"),
    occurrences.c.revision == bindparam("of_revision"),
)

_END_INSTANCE = (
    update(occurrences)
    .where(*_ENTRY)
    .values({name: bindparam(name) for name in ("ended", "ended_detail", "ended_at_ms", "settled_at_ms")})
)

_SETTLE_ORPHANS = (
    update(occurrences)
    .where(*_ENTRY[:2], occurrences.c.settled_at_ms.is_(None))
    .values(settled_at_ms=bindparam("at_ms"))
)

_DEFINING = (ScheduleCreated.__name__, ScheduleUpdated.__name__)


class _Put:
    """Writes rows of one table with a statement compiled once: SQLAlchemy's own way costs as much as the database's."""

    def __init__(self, dialect: Dialect, table: Table) -> None:
        compiled = _upsert(dialect.name, table).compile(dialect=dialect)
        self._sql = str(compiled)
        self._in_order = itemgetter(*compiled.positiontup) if dialect.positional else None

    def __call__(self, connection: Connection, rows: list[dict[str, Any]]) -> None:
        parameters: list[Any] = rows if self._in_order is None else list(map(self._in_order, rows))
        connection.exec_driver_sql(self._sql, parameters)


def _upsert(dialect: str, table: Table) -> Any:
    """Insert or replace by primary key; counters add up instead."""
    statement = postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
    keys = [column.name for column in table.primary_key.columns]
    rest = [column for column in table.columns if column.name not in keys]
    if not rest:
        return statement.on_conflict_do_nothing(index_elements=keys)
    values: dict[str, Any] = {column.name: statement.excluded[column.name] for column in rest}
    if table is counters:
        values = {"jobs": counters.c.jobs + statement.excluded.jobs}
    return statement.on_conflict_do_update(index_elements=keys, set_=values)
