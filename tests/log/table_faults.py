"""Faults of transactions, and of the rows that they keep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mainspring.log.source import Place
from mainspring.log.verify import Check
from mainspring.schemas import JobCompleted, JobRetryScheduled, JobSpec, JobState, JobSubmitted
from tests.log.conftest import Written
from tests.log.seeding import Fault, edit_event, events_at


def a_counter_that_stood_still(written: Written) -> Place:
    _, first = events_at(written, JobSubmitted, job_id="waits")
    assert first
    return edit_event(written, JobSubmitted, {"job_id": "waits"}, seq=1)


def a_transaction_of_which_one_event_is_gone(written: Written) -> Place:
    topic = written.topology.events
    gone = written.log.find(written.codec, topic, JobCompleted, job_id="gone")
    written.log.drop(topic, *gone)
    partition, offset = events_at(written, JobRetryScheduled, job_id="retried")
    done = written.log.find(written.codec, topic, JobCompleted, job_id="done")
    first = min((partition, offset), done)
    return Place(topic=topic.name, partition=first[0], offset=first[1])


def a_transaction_place_that_is_taken_twice(written: Written) -> Place:
    topic = written.topology.events
    partition, offset = events_at(written, JobCompleted, job_id="done")
    raw = written.log.records[topic.name, partition][offset]
    assert raw is not None
    assert raw.value is not None
    record = written.codec.decode(raw.value)
    assert isinstance(record, JobCompleted)
    edit_event(written, JobCompleted, {"job_id": "gone"}, txn=record.txn)
    first = min(
        events_at(written, kind, job_id=job)
        for kind, job in ((JobRetryScheduled, "retried"), (JobCompleted, "done"), (JobCompleted, "gone"))
    )
    return Place(topic=topic.name, partition=first[0], offset=first[1])


def last_row(written: Written, kind: type[Any], job_id: str) -> tuple[int, int]:
    return written.log.find(written.codec, written.topology.scheduler_changelog, kind, -1, job_id=job_id)


def a_row_that_is_not_the_fold(written: Written) -> Place:
    topic = written.topology.scheduler_changelog
    partition, offset = last_row(written, JobState, "runs")
    written.log.edit(written.codec, topic, partition, offset, attempt=5)
    return Place(topic=topic.name, partition=partition, offset=offset)


def a_finished_row_that_is_not_the_fold(written: Written) -> Place:
    topic = written.topology.scheduler_changelog
    partition, offset = last_row(written, JobState, "done")
    written.log.edit(written.codec, topic, partition, offset, lost=2)
    return Place(topic=topic.name, partition=partition, offset=offset)


def a_lost_table_update(written: Written) -> Place:
    topic = written.topology.scheduler_changelog
    written.log.drop(topic, *last_row(written, JobState, "done"))
    partition, offset = last_row(written, JobState, "done")
    return Place(topic=topic.name, partition=partition, offset=offset)


def a_specification_row_that_is_not_what_was_submitted(written: Written) -> Place:
    topic = written.topology.scheduler_changelog
    partition, offset = last_row(written, JobSpec, "runs")
    written.log.edit(written.codec, topic, partition, offset, name="other")
    return Place(topic=topic.name, partition=partition, offset=offset)


def an_unfinished_job_without_a_row(written: Written) -> Place:
    topic, home = written.topology.scheduler_changelog, written.double.partition("waits")
    written.log.append(topic, home, b"Jwaits", None, 1)
    partition, offset = events_at(written, JobSubmitted, job_id="waits")
    return Place(topic=written.topology.events.name, partition=partition, offset=offset)


def an_unfinished_job_without_a_specification(written: Written) -> Place:
    topic, home = written.topology.scheduler_changelog, written.double.partition("waits")
    written.log.append(topic, home, b"Swaits", None, 1)
    partition, offset = last_row(written, JobState, "waits")
    return Place(topic=topic.name, partition=partition, offset=offset)


def a_row_of_a_job_that_no_event_tells_of(written: Written) -> Place:
    topic = written.topology.scheduler_changelog
    state = replace(written.double.states["waits"], job_id="stranger")
    home = written.double.partition("stranger")
    offset = written.log.append(topic, home, b"Jstranger", written.codec.encode(state), 1)
    return Place(topic=topic.name, partition=home, offset=offset)


TABLE_FAULTS: list[tuple[Fault, Check]] = [
    (a_counter_that_stood_still, Check.SEQ_ORDER),
    (a_transaction_of_which_one_event_is_gone, Check.TORN_TRANSACTION),
    (a_transaction_place_that_is_taken_twice, Check.TORN_TRANSACTION),
    (a_row_that_is_not_the_fold, Check.TABLE_DIFFERS),
    (a_finished_row_that_is_not_the_fold, Check.TABLE_DIFFERS),
    (a_lost_table_update, Check.TABLE_DIFFERS),
    (a_specification_row_that_is_not_what_was_submitted, Check.TABLE_DIFFERS),
    (an_unfinished_job_without_a_row, Check.TABLE_ABSENT),
    (an_unfinished_job_without_a_specification, Check.TABLE_ABSENT),
    (a_row_of_a_job_that_no_event_tells_of, Check.TABLE_EXTRA),
]
