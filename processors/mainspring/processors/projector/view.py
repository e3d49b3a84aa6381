"""Reading the view: jobs and schedules, what happened to them, counts, and how far the view has come."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Self

from sqlalchemy import ColumnElement, Connection, Select, func, not_, select
from sqlalchemy.exc import DBAPIError

from mainspring.processors.projector.database import open_reader, parse_url
from mainspring.processors.projector.errors import ViewAbsentError, ViewMismatchError
from mainspring.processors.projector.jobrow import state_of
from mainspring.processors.projector.listing import DETAIL, SUMMARY, detail_of, page_statement, summary_of, take_page
from mainspring.processors.projector.model import (
    AttemptRecord,
    EventRecord,
    JobCounts,
    JobDetail,
    JobFilter,
    JobOrder,
    JobPage,
    JobSummary,
    RejectionRecord,
    UnreadableRecord,
    ViewPosition,
    ViewSource,
)
from mainspring.processors.projector.rows import attempt_of, event_of
from mainspring.processors.projector.schedulelisting import (
    changes_page,
    changes_statement,
    ledger_page,
    ledger_statement,
    schedule_detail_of,
    schedule_detail_statement,
    schedule_page,
    schedule_statement,
)
from mainspring.processors.projector.schedulemodel import (
    FIRED,
    OccurrenceFilter,
    OccurrencePage,
    OccurrenceRecord,
    ScheduleChange,
    ScheduleChangePage,
    ScheduleDetail,
    ScheduleFilter,
    ScheduleOrder,
    SchedulePage,
    ScheduleSummary,
)
from mainspring.processors.projector.schedulerow import ScheduleRow
from mainspring.processors.projector.tables import (
    SCHEMA_VERSION,
    attempts,
    counters,
    events,
    job_specs,
    jobs,
    meta,
    occurrences,
    positions,
    rejections,
    schedules,
    unreadable,
)
from mainspring.processors.projector.text import clean
from mainspring.schemas.common import JobStatus
from mainspring.schemas.schedule import ScheduleSpec
from mainspring.schemas.tables import JobState, ScheduleState

__all__ = [
    "AttemptRecord",
    "EventRecord",
    "JobCounts",
    "JobDetail",
    "JobFilter",
    "JobOrder",
    "JobPage",
    "JobSummary",
    "Ledger",
    "OccurrenceFilter",
    "OccurrencePage",
    "OccurrenceRecord",
    "RejectionRecord",
    "ScheduleChange",
    "ScheduleChangePage",
    "ScheduleDetail",
    "ScheduleFilter",
    "ScheduleOrder",
    "SchedulePage",
    "ScheduleSummary",
    "UnreadableRecord",
    "View",
    "ViewPosition",
    "ViewSource",
]

ALL: Final = JobFilter()
ALL_SCHEDULES: Final = ScheduleFilter()
ALL_OCCURRENCES: Final = OccurrenceFilter()
MAX_PAGE = 500
FIRST_WAIT_S, LONGEST_WAIT_S = 0.002, 0.05


class View:
    """Reads one view; it cannot write. Thread-safe. Close it, or use it as a context manager.

    Raises ViewUrlError, ViewAbsentError when there is no view, ViewMismatchError when another version made it.
    """

    def __init__(self, url: str) -> None:
        self._engine = open_reader(parse_url(url))
        with self._connect() as connection:
            found = connection.scalar(select(meta.c.value).where(meta.c.name == "schema_version"))
        if found is None:
            self._engine.dispose()
            raise ViewAbsentError("the view is being made; try again once the projector runs")
        if found != str(SCHEMA_VERSION):
            self._engine.dispose()
            raise ViewMismatchError(
                f"the view has schema version {found} and this program reads {SCHEMA_VERSION}: "
                "run the projector of this version once with --rebuild"
            )

    def close(self) -> None:
        """Closes the connections to the database."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, job_id: str) -> JobDetail | None:
        """One job with its payload and result; None when the view does not know it."""
        statement = select(*DETAIL).join_from(jobs, job_specs, jobs.c.job_id == job_specs.c.job_id)
        with self._connect() as connection:
            row = connection.execute(statement.where(jobs.c.job_id == clean(job_id))).mappings().one_or_none()
        return None if row is None else detail_of(row)

    def list(
        self,
        filters: JobFilter = ALL,
        *,
        order: JobOrder = JobOrder.NEWEST,
        limit: int = 100,
        cursor: str | None = None,
    ) -> JobPage:
        """One page of at most `limit` (1–500) jobs; `cursor` is the `next_cursor` of the page before.

        ValueError for another limit or a cursor of another list.
        """
        rows = self._page(page_statement(select(*SUMMARY), filters, order, cursor), limit)
        return take_page([summary_of(row) for row in rows], order, limit)

    def ids_starting(self, prefix: str, limit: int) -> tuple[str, ...]:
        """Up to `limit` ids of jobs that begin with these characters, in order."""
        begins = jobs.c.job_id.startswith(clean(prefix), autoescape=True)
        statement = select(jobs.c.job_id).where(begins).order_by(jobs.c.job_id)
        with self._connect() as connection:
            # SQLite's LIKE takes upper and lower case for the same.
            found = (each for each in connection.scalars(statement) if each.startswith(prefix))
            return tuple(islice(found, limit))

    def counts(self) -> JobCounts:
        """How many jobs there are, by status and queue; the cost does not grow with their number."""
        by_status: dict[JobStatus, int] = {}
        by_queue: dict[str, dict[JobStatus, int]] = {}
        with self._connect() as connection:
            rows = connection.execute(select(counters).where(counters.c.jobs != 0)).all()
        for queue, name, number in rows:
            status = JobStatus[name]
            by_status[status] = by_status.get(status, 0) + number
            by_queue.setdefault(queue, {})[status] = number
        return JobCounts(by_status=by_status, by_queue=by_queue)

    def events(self, job_id: str) -> tuple[EventRecord, ...]:
        """All that was decided about a job, in order; refusals included."""
        statement = select(events).where(events.c.job_id == clean(job_id)).order_by(events.c.offset)
        with self._connect() as connection:
            return tuple(event_of(row) for row in connection.execute(statement).mappings())

    def attempts(self, job_id: str) -> tuple[AttemptRecord, ...]:
        """The attempts of a job, the first one first."""
        statement = select(attempts).where(attempts.c.job_id == clean(job_id)).order_by(attempts.c.attempt)
        with self._connect() as connection:
            return tuple(attempt_of(row) for row in connection.execute(statement).mappings())

    def schedule(self, schedule_id: str) -> ScheduleDetail | None:
        """One schedule with its definition; None when the view does not know it, or it was deleted."""
        with self._connect() as connection:
            row = connection.execute(schedule_detail_statement(schedule_id)).mappings().one_or_none()
        return None if row is None else schedule_detail_of(row)

    def schedules(
        self,
        filters: ScheduleFilter = ALL_SCHEDULES,
        *,
        order: ScheduleOrder = ScheduleOrder.ID,
        limit: int = 100,
        cursor: str | None = None,
    ) -> SchedulePage:
        """One page of at most `limit` (1–500) schedules; limits and cursors are as for `list`."""
        return schedule_page(self._page(schedule_statement(filters, order, cursor), limit), order, limit)

    def occurrences(
        self,
        schedule_id: str,
        filters: OccurrenceFilter = ALL_OCCURRENCES,
        *,
        limit: int = 100,
        cursor: str | None = None,
    ) -> OccurrencePage:
        """One page of a schedule's ledger, what was decided last first; limits and cursors are as for `list`.

        It outlasts its schedule, and goes on with the next one of the same id.
        """
        return ledger_page(self._page(ledger_statement(schedule_id, filters, cursor), limit), limit)

    def schedule_changes(self, schedule_id: str, *, limit: int = 100, cursor: str | None = None) -> ScheduleChangePage:
        """One page of what befell a schedule beside its occurrences, the newest first; refused commands included.

        Limits and cursors are as for `list`. It outlasts its schedule.
        """
        return changes_page(self._page(changes_statement(schedule_id, cursor), limit), limit)

    def rejections(self, *, job_id: str | None = None, limit: int = 100) -> tuple[RejectionRecord, ...]:
        """Refused commands, the newest first."""
        statement: Select[Any] = select(rejections).order_by(rejections.c.decided_at_ms.desc()).limit(limit)
        if job_id is not None:
            statement = statement.where(rejections.c.job_id == clean(job_id))
        with self._connect() as connection:
            return tuple(RejectionRecord(**row) for row in connection.execute(statement).mappings())

    def unreadable(self, *, limit: int = 100) -> tuple[UnreadableRecord, ...]:
        """Events that the view had to leave out; none on a sound log."""
        statement = select(unreadable).order_by(unreadable.c.partition, unreadable.c.offset).limit(limit)
        with self._connect() as connection:
            return tuple(UnreadableRecord(**row) for row in connection.execute(statement).mappings())

    def position(self) -> Mapping[int, ViewPosition]:
        """How far each partition of `events` is folded; a partition without events may be absent."""
        with self._connect() as connection:
            return _positions(connection)

    def source(self) -> ViewSource | None:
        """Which topic of which cluster the view is a fold of; None while no projector has got as far as reading it."""
        with self._connect() as connection:
            rows = connection.execute(select(meta.c.name, meta.c.value).where(meta.c.name.in_(("topic", "topic_id"))))
            found = {row.name: row.value for row in rows}
        return ViewSource(**found) if len(found) == len(ViewSource.__dataclass_fields__) else None

    def wait_for(self, partition: int, offset: int, timeout_s: float = 5.0) -> bool:
        """Waits until the event at that place is in the view; False when it is not in time.

        A client that knows where its verdict stands in `events` reads its own writes this way.
        """
        statement = select(positions.c.next_offset).where(positions.c.partition == partition)
        deadline = time.monotonic() + timeout_s
        wait_s = FIRST_WAIT_S
        while True:
            with self._connect() as connection:
                next_offset = connection.scalar(statement)
            if next_offset is not None and next_offset > offset:
                return True
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            time.sleep(min(wait_s, left_s))
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    @contextmanager
    def snapshot(self) -> Iterator["Snapshot"]:
        """The view at one moment, for audits: positions and states belong together."""
        with self._engine.connect() as plain:
            connection = plain.execution_options(
                **({} if plain.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"})
            )
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN")
            yield Snapshot(connection)
            connection.rollback()

    def _page(self, statement: Select[Any], limit: int) -> Sequence[Mapping[Any, Any]]:
        """The rows of a page, and one more where there is a next page."""
        if not 1 <= limit <= MAX_PAGE:
            raise ValueError(f"a page has 1 to {MAX_PAGE} entries, not {limit}")
        with self._connect() as connection:
            return connection.execute(statement.limit(limit + 1)).mappings().all()

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        try:
            with self._engine.connect() as connection:
                yield connection
        except DBAPIError as error:
            if "no such table" in str(error.orig) or "does not exist" in str(error.orig):
                raise ViewAbsentError("the view's tables are gone: is a projector rebuilding it? Try again") from error
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """How many occurrences the ledger of a schedule has."""

    schedule_id: str
    incarnation: int
    fired: int
    skipped: int


class Snapshot:
    """The view as it was when the snapshot was taken."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._positions = _positions(connection)
        kept = connection.scalar(select(meta.c.value).where(meta.c.name == "retention"))
        self.keeps_all = kept == "everything"
        """Whether no job was ever taken out of the view for its age or number."""

    def position(self) -> Mapping[int, ViewPosition]:
        """How far each partition was folded."""
        return self._positions

    def states(self, partition: int) -> Iterator[tuple[JobState, int]]:
        """The state of every job of a partition with the offset of its last event, in no order; memory stays flat."""
        where: ColumnElement[bool] = jobs.c.partition == partition
        statement = select(*[column for column in jobs.c if column.name != "result"]).where(where)
        rows = self._connection.execution_options(yield_per=1_000).execute(statement).mappings()
        for row in rows:
            yield state_of(row), row["last_event_offset"]

    def schedules(self, partition: int) -> Iterator[tuple[ScheduleState, ScheduleSpec]]:
        """The state and the definition of every schedule of a partition, in no order."""
        statement = select(schedules).where(schedules.c.partition == partition)
        for row in self._connection.execution_options(yield_per=1_000).execute(statement).mappings():
            found = ScheduleRow.loaded(row)
            yield found.state, found.spec

    def ledgers(self, partition: int) -> Iterator[Ledger]:
        """How much the ledger of each schedule of a partition has, also of those that were deleted, in no order."""
        of_whom = (occurrences.c.schedule_id, occurrences.c.incarnation)
        is_fired = occurrences.c.outcome == FIRED
        number = func.sum(occurrences.c.count)
        statement = (
            select(*of_whom, number.filter(is_fired), number.filter(not_(is_fired)))
            .where(occurrences.c.partition == partition)
            .group_by(*of_whom)
        )
        for schedule_id, incarnation, fired, skipped in self._connection.execute(statement):
            yield Ledger(
                schedule_id=schedule_id, incarnation=incarnation, fired=int(fired or 0), skipped=int(skipped or 0)
            )


def _positions(connection: Connection) -> dict[int, ViewPosition]:
    columns = [positions.c[name] for name in ViewPosition.__dataclass_fields__]
    return {row["partition"]: ViewPosition(**row) for row in connection.execute(select(*columns)).mappings()}
