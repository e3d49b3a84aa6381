"""A view of a log in memory: the projector's fold and store, without Kafka."""

from __future__ import annotations

from collections.abc import Iterable

from mainspring.log.source import LogSource
from mainspring.processors.projector.config import Retention
from mainspring.processors.projector.database import open_writer, parse_url, single_writer
from mainspring.processors.projector.fold import fold_batch
from mainspring.processors.projector.placed import Placed
from mainspring.processors.projector.retention import apply_retention, tidy_ledgers
from mainspring.processors.projector.store import Position, ViewStore
from mainspring.processors.projector.view import JobFilter, View
from mainspring.schemas import (
    EVENT_TYPES,
    JOB_EVENT_TYPES,
    SCHEDULE_EVENT_TYPES,
    Codec,
    CommandRejected,
    ReportRefused,
    ScheduleCommandRejected,
)
from tests.support.scheduler_double import SchedulerDouble
from tests.support.synthetic_log import MemoryLog

_RECORDS_ONLY = (CommandRejected, ReportRefused, ScheduleCommandRejected)


def placed_events(log: LogSource, codec: Codec, partition: int) -> list[Placed]:
    """The events of one partition."""
    topic = log.topology.events
    spans = log.spans([topic])
    found: list[Placed] = []
    for batch in log.read(topic, partition, spans[topic.name, partition]):
        for raw in batch:
            assert raw.value is not None
            event = codec.decode(raw.value)
            assert type(event) in EVENT_TYPES
            found.append(Placed(event=event, partition=partition, offset=raw.offset))  # type: ignore[arg-type]  # EVENT_TYPES holds the members of Event
    return found


def project(log: LogSource, codec: Codec, url: str, *, upto: int | None = None) -> None:
    """Folds the log's events into a view, each partition to its end or to an offset."""
    engine = open_writer(parse_url(url))
    with single_writer(engine) as connection:
        store = ViewStore(connection)
        store.prepare(rebuild=True)
        for partition in range(log.topology.partitions):
            events = [each for each in placed_events(log, codec, partition) if upto is None or each.offset < upto]
            write(store, log, partition, events)
    engine.dispose()


def project_in_pieces(log: LogSource, codec: Codec, url: str, cut: int) -> None:
    """Folds the log's events into a view: of each partition one by one up to a cut, then the rest at once."""
    engine = open_writer(parse_url(url))
    with single_writer(engine) as connection:
        store = ViewStore(connection)
        store.prepare(rebuild=False)
        for partition in range(log.topology.partitions):
            events = placed_events(log, codec, partition)
            for event in events[:cut]:
                write(store, log, partition, [event])
            if len(events) > cut or not events:
                write(store, log, partition, events[cut:])
    engine.dispose()


def write(store: ViewStore, log: LogSource, partition: int, events: Iterable[Placed]) -> None:
    """Folds one batch."""
    batch = list(events)
    # A refusal may be about an id of any kind, which a database may not even be asked for.
    changing = [each.event for each in batch if type(each.event) not in _RECORDS_ONLY]
    of_schedules = {event.schedule_id for event in changing if type(event) in SCHEDULE_EVENT_TYPES}  # type: ignore[union-attr]  # SCHEDULE_EVENT_TYPES holds the members of ScheduleEvent
    of_jobs = {event.job_id for event in changing if type(event) in JOB_EVENT_TYPES}  # type: ignore[union-attr]  # JOB_EVENT_TYPES holds the members of JobEvent
    changes = fold_batch(
        batch, store.load(of_jobs), store.load_schedules(of_schedules), payload_bytes=1_000, result_bytes=1_000
    )
    position = Position(
        partition=partition,
        topic=log.topology.events.name,
        topic_id="memory",
        next_offset=batch[-1].offset + 1 if batch else 0,
        last_event_offset=batch[-1].offset if batch else -1,
    )
    store.write(changes, [position])


def keep(url: str, retention: Retention, now_ms: int) -> int:
    """Applies a retention to a view; returns how many jobs left it."""
    engine = open_writer(parse_url(url))
    with single_writer(engine) as connection:
        store = ViewStore(connection)
        store.prepare(rebuild=False, keeps_all=retention.is_unlimited)
        removed = apply_retention(store, retention, now_ms, lambda: False)
        tidy_ledgers(store, retention, now_ms, lambda: False)
    engine.dispose()
    return removed


def memory(double: SchedulerDouble) -> MemoryLog:
    """The log in memory that a double writes."""
    assert isinstance(double.sink, MemoryLog)
    return double.sink


def ids(view: View, **wanted: object) -> set[str]:
    """The jobs that a filter finds."""
    return {job.job_id for job in view.list(JobFilter(**wanted), limit=500).jobs}  # type: ignore[arg-type]  # by name
