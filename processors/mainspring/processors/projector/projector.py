"""The loop of the projector: read a batch, fold it, commit it with the positions; again."""

import logging
import signal
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import closing

import structlog
from confluent_kafka import KafkaException
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from mainspring.processors.core.job.transitions import is_terminal
from mainspring.processors.core.timing import tzdata_version
from mainspring.processors.projector.config import ProjectorConfig
from mainspring.processors.projector.database import open_writer, parse_url, single_writer
from mainspring.processors.projector.errors import ProjectorError, TopicAbsentError
from mainspring.processors.projector.feed import Arrived, Feed, event_id
from mainspring.processors.projector.fold import Changes, fold_batch
from mainspring.processors.projector.jobrow import JobRow
from mainspring.processors.projector.placed import Placed
from mainspring.processors.projector.retention import apply_retention, tidy_ledgers
from mainspring.processors.projector.schedulerow import ScheduleRow
from mainspring.processors.projector.status import PartitionStatus, ProjectorStatus
from mainspring.processors.projector.store import Position, ViewStore
from mainspring.processors.projector.text import clean
from mainspring.schemas import EVENT_TYPES, SCHEDULE_EVENT_TYPES, DeadLetterReason, UnreadableRecordError
from mainspring.schemas.events import CommandRejected, ReportRefused
from mainspring.schemas.schedule_events import ScheduleCommandRejected

__all__ = ["Projector", "run_projector"]

LIVE_ROWS = 50_000
"""Rows of unfinished jobs kept in memory between batches; any other is read back from the view."""

POLL_S = 0.2
BACK_OFF_S = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)

LIVE_SCHEDULES = 10_000
"""Rows of schedules kept in memory between batches."""

_RECORDS_ONLY = (CommandRejected, ReportRefused, ScheduleCommandRejected)

log = structlog.stdlib.get_logger("mainspring.projector")


class Projector:
    """Keeps one view equal to the fold of `events`. One projector per view; a second is refused."""

    def __init__(self, config: ProjectorConfig, now_ms: Callable[[], int] = lambda: int(time.time() * 1000)) -> None:
        self._config = config
        self._url = parse_url(config.url)
        self._now_ms = now_ms
        self._rebuild = config.rebuild
        # The first of a plain dict is slow to find once many before it are gone.
        self._live: OrderedDict[str, JobRow] = OrderedDict()
        self._live_schedules: OrderedDict[str, ScheduleRow] = OrderedDict()
        self._positions: dict[int, Position] = {}
        self._passed: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._at_end: frozenset[int] = frozenset()
        self._events = self._unreadable = self._batches = 0
        self._came_round_s = time.monotonic()
        self._error: str | None = None
        self._running = False

    def run(self, stop: threading.Event) -> None:
        """Folds until `stop` is set. Raises ProjectorError where going on would make a wrong view.

        A database or a broker that does not answer is waited for, a topic that is absent for a while;
        `status().error` says so meanwhile.
        """
        self._running = True
        self._came_round_s = time.monotonic()
        failures, waited_s = 0, 0.0
        try:
            while not stop.is_set():
                committed = self._batches
                try:
                    self._session(stop)
                except (OperationalError, InterfaceError, DBAPIError, KafkaException, TopicAbsentError) as error:
                    if self._batches > committed:
                        failures, waited_s = 0, 0.0
                    is_absent = isinstance(error, TopicAbsentError)
                    if not (waited_s < self._config.topic_patience_s if is_absent else _may_pass(error)):
                        raise
                    self._error = _first_line(error)
                    wait_s = BACK_OFF_S[min(failures, len(BACK_OFF_S) - 1)]
                    waited_s = waited_s + wait_s if is_absent else 0.0
                    log.warning("projector waits", error=self._error, retry_in_s=wait_s)
                    failures += 1
                    stop.wait(wait_s)
                    self._came_round_s = time.monotonic()
        finally:
            self._running = False

    def status(self) -> ProjectorStatus:
        """Where the projector stands; may be called from any thread."""
        positions = dict(self._positions)
        return ProjectorStatus(
            running=self._running,
            events=self._events,
            unreadable=self._unreadable,
            batches=self._batches,
            loop_age_s=time.monotonic() - self._came_round_s,
            error=self._error,
            partitions=tuple(
                PartitionStatus(
                    partition=partition,
                    next_offset=max(position.next_offset, self._passed.get(partition, 0)),
                    end_offset=max(self._ends.get(partition, 0), position.next_offset),
                    last_event_at_ms=position.last_event_at_ms,
                    at_end=partition in self._at_end,
                )
                for partition, position in sorted(positions.items())
            ),
        )

    def _session(self, stop: threading.Event) -> None:
        engine = self._open_view()
        try:
            with (
                single_writer(engine) as connection,
                closing(self._open_feed()) as feed,
            ):
                store = ViewStore(connection)
                store.prepare(rebuild=self._rebuild, keeps_all=self._config.retention.is_unlimited)
                self._rebuild = False
                self._live.clear()
                self._live_schedules.clear()
                store.renew_plans(tzdata_version())
                stored = store.positions()
                self._positions = feed.begin(stored)
                store.remember_source(self._config.topology.events.name, feed.topic_id)
                self._follow(store, feed, stop)
        finally:
            self._passed, self._ends, self._at_end = {}, {}, frozenset()
            engine.dispose()

    def _open_view(self) -> Engine:
        return open_writer(self._url)

    def _open_feed(self) -> Feed:
        config = self._config
        return Feed(config.connection, config.topology, admin_timeout_s=config.admin_timeout_s)

    def _follow(self, store: ViewStore, feed: Feed, stop: threading.Event) -> None:
        config = self._config
        check_at = tidy_at = self._now_ms()
        check_at += config.topic_check_ms
        while not stop.is_set():
            arrived = list(feed.read(config.batch, POLL_S))
            self._error = None
            self._came_round_s = time.monotonic()
            if arrived:
                self._fold(store, feed, arrived)
            # Told only now: what has been read is in the view.
            self._passed, self._ends, self._at_end = feed.passed(), feed.ends(), feed.at_end()
            now_ms = self._now_ms()
            if now_ms >= check_at:
                feed.check_topic(self._positions)
                check_at = now_ms + config.topic_check_ms
            if not config.retention.is_unlimited and now_ms >= tidy_at:
                removed = apply_retention(store, config.retention, now_ms, stop.is_set)
                entries = tidy_ledgers(store, config.retention, now_ms, stop.is_set)
                tidy_at = now_ms + config.retention_every_ms
                if removed or entries:
                    log.info("finished jobs left the view", jobs=removed, occurrences=entries)

    def _fold(self, store: ViewStore, feed: Feed, arrived: list[Arrived]) -> None:
        placed, broken = self._decode(arrived)
        changes = fold_batch(
            placed,
            self._known(store, placed),
            self._known_schedules(store, placed),
            payload_bytes=self._config.payload_bytes,
            result_bytes=self._config.result_bytes,
        )
        changes.unreadable.extend(broken)
        moved = self._moved(arrived, placed, feed.topic_id)
        store.write(changes, moved)
        for row in changes.unreadable:
            log.error(
                "event left out of the view",
                **{name: row[name] for name in ("partition", "offset", "reason", "detail")},
            )
        self._positions.update({position.partition: position for position in moved})
        self._keep_live(changes)
        self._events += len(arrived)
        self._unreadable += len(changes.unreadable)
        self._batches += 1

    def _decode(self, arrived: Iterable[Arrived]) -> tuple[list[Placed], list[dict[str, object]]]:
        decode = self._config.codec.decode
        placed: list[Placed] = []
        broken: list[dict[str, object]] = []
        for record in arrived:
            reason, detail = DeadLetterReason.UNEXPECTED_TYPE, "a record without a value"
            try:
                event = decode(record.value) if record.value is not None else None
            except UnreadableRecordError as error:
                reason, detail, event = error.reason, error.detail, None
            if type(event) in EVENT_TYPES:
                placed.append(Placed(event=event, partition=record.partition, offset=record.offset))  # type: ignore[arg-type]  # EVENT_TYPES holds the members of Event
                continue
            if event is not None:
                detail = f"{type(event).__name__} is no event"
            broken.append(
                {
                    "partition": record.partition,
                    "offset": record.offset,
                    "reason": str(reason),
                    "detail": clean(detail),
                    "key": record.key,
                }
            )
        return placed, broken

    def _known(self, store: ViewStore, placed: Iterable[Placed]) -> dict[str, JobRow]:
        """The rows of the jobs that these events change, from memory or from the view."""
        known: dict[str, JobRow] = {}
        absent: set[str] = set()
        for each in placed:
            if type(each.event) in _RECORDS_ONLY or type(each.event) in SCHEDULE_EVENT_TYPES:
                continue
            job_id: str = each.event.job_id  # type: ignore[union-attr]  # what else is an Event is a JobEvent
            # Taken out: after a failed commit the changed row must not be found here again.
            row = self._live.pop(job_id, None)
            if row is not None:
                known[job_id] = row
            elif job_id not in known:
                absent.add(job_id)
        if absent:
            known.update(store.load(absent))
        return known

    def _known_schedules(self, store: ViewStore, placed: Iterable[Placed]) -> dict[str, ScheduleRow]:
        """The rows of the schedules that these events change, as `_known` finds those of jobs."""
        touched: set[str] = {
            each.event.schedule_id  # type: ignore[union-attr]  # SCHEDULE_EVENT_TYPES holds the members of ScheduleEvent
            for each in placed
            if type(each.event) in SCHEDULE_EVENT_TYPES and type(each.event) not in _RECORDS_ONLY
        }
        known = {each: row for each in touched if (row := self._live_schedules.pop(each, None)) is not None}
        absent = touched - known.keys()
        return known | store.load_schedules(absent) if absent else known

    def _keep_live(self, changes: Changes) -> None:
        for job_id, row in changes.jobs.items():
            if not is_terminal(row.state.status):
                self._live[job_id] = row
        while len(self._live) > LIVE_ROWS:
            self._live.popitem(last=False)
        self._live_schedules |= {key: row for key, row in changes.schedules.rows.items() if row is not None}
        while len(self._live_schedules) > LIVE_SCHEDULES:
            self._live_schedules.popitem(last=False)

    def _moved(self, arrived: Iterable[Arrived], placed: Iterable[Placed], topic_id: str) -> list[Position]:
        newest = {record.partition: record for record in arrived}
        decided = {each.partition: each.event.decided_at_ms for each in placed}
        return [
            Position(
                partition=partition,
                topic=self._config.topology.events.name,
                topic_id=topic_id,
                next_offset=record.offset + 1,
                last_event_offset=record.offset,
                last_event_id=event_id(record.value),
                last_event_at_ms=decided.get(partition, self._positions[partition].last_event_at_ms),
            )
            for partition, record in newest.items()
        ]


def run_projector(config: ProjectorConfig) -> int:
    """Runs one projector until SIGTERM or SIGINT. Returns the exit code: 0 after a signal, 1 where it cannot go on."""
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    try:
        Projector(config).run(stop)
    except ProjectorError as error:
        logging.getLogger("mainspring.projector").debug("projector stopped", exc_info=error)
        sys.stderr.write(f"projector: {error}\n")
        return 1
    return 0


def _may_pass(error: Exception) -> bool:
    """Whether waiting can help: the database or the broker is away, not the data wrong."""
    if isinstance(error, KafkaException):
        return not error.args[0].fatal()
    return isinstance(error, OperationalError | InterfaceError) or (
        isinstance(error, DBAPIError) and error.connection_invalidated
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
