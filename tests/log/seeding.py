"""How a fault is seeded in a sound log: a record is edited, dropped or written where none belongs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mainspring.log.source import Place
from mainspring.schemas import AttemptClaimed, DeadLetter, JobStarted, Txn
from mainspring.topics import Topic
from tests.log.conftest import Written

Fault = Callable[[Written], Place | None]


def events_at(written: Written, kind: type[Any], **wanted: Any) -> tuple[int, int]:
    return written.log.find(written.codec, written.topology.events, kind, **wanted)


def edit_event(written: Written, kind: type[Any], wanted: dict[str, Any], **changes: Any) -> Place:
    topic = written.topology.events
    partition, offset = events_at(written, kind, **wanted)
    written.log.edit(written.codec, topic, partition, offset, **changes)
    return Place(topic=topic.name, partition=partition, offset=offset)


def next_event_of(written: Written, job_id: str, after: Place) -> Place:
    """Where the job's next event stands."""
    records = written.log.records[written.topology.events.name, after.partition]
    for raw in records[after.offset + 1 :]:
        if raw is not None and raw.key == job_id.encode():
            return Place(topic=after.topic, partition=after.partition, offset=raw.offset)
    raise AssertionError(f"no event of {job_id} after {after}")


def last_event(written: Written, job_id: str) -> Place:
    topic = written.topology.events
    partition = written.double.partition(job_id)
    raw = [raw for raw in written.log.records[topic.name, partition] if raw is not None][-1]
    assert raw.key == job_id.encode()
    return Place(topic=topic.name, partition=partition, offset=raw.offset)


def write_raw_event(written: Written, event: Any) -> Place:
    """Past the fold of the double, which would refuse it."""
    topic, home = written.topology.events, written.double.partition(event.job_id)
    written.log.begin()
    offset = written.log.append(topic, home, event.job_id.encode(), written.codec.encode(event), event.decided_at_ms)
    written.log.commit()
    return Place(topic=topic.name, partition=home, offset=offset)


def started(written: Written, job_id: str, **changes: Any) -> JobStarted:
    double, state = written.double, written.double.states[job_id]
    claim = AttemptClaimed(
        job_id=job_id,
        attempt=state.attempt + 1,
        worker_id="worker-9",
        incarnation="worker-9.1",
        reported_at_ms=double.now_ms,
        free_slot=True,
    )
    cause = double.put(written.topology.attempts, job_id, claim)
    event = JobStarted(
        job_id=job_id,
        revision=state.revision + 1,
        decided_at_ms=max(double.now_ms, state.due_at_ms),
        cause=cause,
        attempt=state.attempt + 1,
        worker_id="worker-9",
        incarnation="worker-9.1",
        due_at_ms=state.due_at_ms,
        txn=Txn(id=78, index=0, size=1),
    )
    return replace(event, **changes)


def put_aside(written: Written, topic: Topic, offset: int, key: bytes, *, at_ms: int) -> DeadLetter:
    """Writes the dead letter of a record of partition 0 that nobody can read."""
    letter = DeadLetter(
        topic=topic.name,
        partition=0,
        offset=offset,
        key=key,
        reason="UNDECODABLE",
        detail="no magic byte",
        value=b"garbage",
        value_bytes=7,
        recorded_by="double",
        recorded_at_ms=1,
    )
    written.log.append(written.topology.dead_letters, 0, key, written.codec.encode(letter), at_ms)
    return letter
