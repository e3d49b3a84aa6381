"""One job's whole life, from every topic that tells of it."""

import math
from collections.abc import Iterable, Iterator

from mainspring.log.records import LogRecord, decoded
from mainspring.log.source import LogSource, Place, Span
from mainspring.schemas import EVENT_TYPES, Codec
from mainspring.schemas.attempts import AttemptClaimed, AttemptHeartbeat
from mainspring.schemas.common import Cause, CauseSource
from mainspring.schemas.dead_letters import DeadLetter
from mainspring.schemas.events import JobRetryScheduled, JobStarted, JobSubmitted
from mainspring.schemas.followups import ForwardedCommand
from mainspring.schemas.logs import LogCaptured
from mainspring.schemas.signals import ClaimRefused
from mainspring.topics import Topic, partition_for

__all__ = ["dead_letters", "history", "job_logs"]


def history(source: LogSource, codec: Codec, job_id: str, *, heartbeats: bool = False) -> tuple[LogRecord, ...]:
    """What was asked, reported, decided and captured about a job, in order: each input before the event that it caused.

    `heartbeats` adds the heartbeats that name the job, which are many. Reads the job's partition of each topic from its
    beginning; what retention removed is missing. Empty when no topic tells of the job. Raises LogError.
    """
    topology = source.topology
    found: list[LogRecord] = []
    for topic in (topology.commands, topology.followups, topology.attempts, topology.events, topology.logs):
        found.extend(_of_key(source, codec, topic, job_id))
    found.extend(_forwarded(source, codec, found))
    found.extend(_refused_claims(source, codec, found, job_id))
    found.extend(record for record in dead_letters(source, codec) if record.key == job_id.encode())
    if heartbeats:
        found.extend(_heartbeats(source, codec, job_id))
    return _in_order(found, source)


def job_logs(source: LogSource, codec: Codec, job_id: str) -> tuple[LogCaptured, ...]:
    """What the attempts of a job wrote, the first attempt first. Empty when nothing was captured or kept."""
    records = _of_key(source, codec, source.topology.logs, job_id)
    logs = [each.record for each in records if type(each.record) is LogCaptured]
    return tuple(sorted(logs, key=lambda log: (log.attempt, log.reported_at_ms)))


def dead_letters(source: LogSource, codec: Codec) -> Iterator[LogRecord]:
    """All records that were put aside, the oldest first; `record` is the DeadLetter."""
    topic = source.topology.dead_letters
    spans = source.spans([topic])
    for partition in range(topic.partitions):
        for batch in source.read(topic, partition, spans[topic.name, partition]):
            for raw in batch:
                record = decoded(codec, topic.name, partition, raw)
                if type(record.record) is DeadLetter:
                    yield record


def _of_key(source: LogSource, codec: Codec, topic: Topic, job_id: str) -> Iterator[LogRecord]:
    key = job_id.encode()
    partition = partition_for(key, topic.partitions)
    span = source.spans([topic])[topic.name, partition]
    for batch in source.read(topic, partition, span):
        for raw in batch:
            if raw.key == key:
                yield decoded(codec, topic.name, partition, raw)


def _forwarded(source: LogSource, codec: Codec, found: Iterable[LogRecord]) -> Iterator[LogRecord]:
    """The commands that arrived on another partition and were sent on from there."""
    commands = source.topology.commands
    for each in found:
        if type(each.record) is not ForwardedCommand or each.record.topic != commands.name:
            continue
        original = each.record
        span = source.spans([commands])[commands.name, original.partition]
        if not span.start <= original.offset < span.end:
            continue
        one = Span(start=original.offset, end=original.offset + 1)
        for batch in source.read(commands, original.partition, one):
            for raw in batch:
                yield decoded(codec, commands.name, original.partition, raw)


def _refused_claims(source: LogSource, codec: Codec, found: Iterable[LogRecord], job_id: str) -> Iterator[LogRecord]:
    """What workers were told whose claim of the job lost; without it, such a claim looks like a job that got stuck."""
    claims: set[tuple[str, str, int]] = set()
    starts: set[tuple[str, str, int]] = set()
    for each in found:
        record = each.record
        if type(record) is AttemptClaimed:
            claims.add((record.worker_id, record.incarnation, record.attempt))
        elif type(record) is JobStarted:
            starts.add((record.worker_id, record.incarnation, record.attempt))
    topic, about = source.topology.signals, job_id.encode()
    for worker_id in {lost[0] for lost in claims - starts}:
        key = worker_id.encode()
        partition = partition_for(key, topic.partitions)
        for batch in source.read(topic, partition, source.spans([topic])[topic.name, partition]):
            for raw in batch:
                if raw.key == key and about in (raw.value or b""):
                    told = decoded(codec, topic.name, partition, raw)
                    if type(told.record) is ClaimRefused and told.record.job_id == job_id:
                        yield told


def _heartbeats(source: LogSource, codec: Codec, job_id: str) -> Iterator[LogRecord]:
    topic = source.topology.attempts
    partition = partition_for(job_id.encode(), topic.partitions)
    for batch in source.read(topic, partition, source.spans([topic])[topic.name, partition]):
        for raw in batch:
            record = decoded(codec, topic.name, partition, raw)
            beat = record.record
            if type(beat) is AttemptHeartbeat and any(held.job_id == job_id for held in beat.attempts):
                yield record


def _in_order(found: Iterable[LogRecord], source: LogSource) -> tuple[LogRecord, ...]:
    """The events as they were decided, and everything else by time around them.

    The clocks of workers and brokers differ, and a worker may claim before the broker has stamped the event beside the
    offer. So a report stands right before the event that it caused, a command not behind its own, and a report that
    caused none not before the event that made its attempt possible.
    """
    records = list(found)
    topology = source.topology
    effects, openers = _turning_points(records, source)

    def key(each: LogRecord) -> tuple[int, float, int, str, int]:
        """Time, then the offset of the event it belongs to, then before or after that one."""
        time_ms, place = each.timestamp_ms, each.place
        if place.topic == topology.events.name:
            return time_ms, place.offset, 1, place.topic, place.offset
        effect = effects.get(place)
        if effect is not None:
            is_report = place.topic == topology.attempts.name
            time_ms = effect.timestamp_ms if is_report else min(time_ms, effect.timestamp_ms)
            return time_ms, effect.place.offset, 0, place.topic, place.offset
        if place.topic in (topology.commands.name, topology.followups.name):
            return time_ms, -1, 0, place.topic, place.offset
        opener = openers.get(getattr(each.record, "attempt", 0))
        if opener is not None:
            time_ms = max(time_ms, opener.timestamp_ms)
        return time_ms, math.inf, 2, place.topic, place.offset

    return tuple(sorted(records, key=key))


def _turning_points(
    records: Iterable[LogRecord], source: LogSource
) -> tuple[dict[Place, LogRecord], dict[int, LogRecord]]:
    """By place of an input the first event that it caused; by attempt the event that made it possible."""
    topology = source.topology
    topics = {
        CauseSource.COMMANDS: topology.commands.name,
        CauseSource.FOLLOWUPS: topology.followups.name,
        CauseSource.ATTEMPTS: topology.attempts.name,
    }
    effects: dict[Place, LogRecord] = {}
    openers: dict[int, LogRecord] = {}
    for each in sorted(records, key=lambda record: record.place.offset):
        event = each.record
        if type(event) not in EVENT_TYPES:
            continue
        cause: Cause = event.cause  # type: ignore[union-attr]  # EVENT_TYPES holds the members of Event
        if cause.source in topics:
            place = Place(topic=topics[cause.source], partition=cause.partition, offset=cause.offset)
            effects.setdefault(place, each)
        if type(event) is JobSubmitted:
            openers[1] = each
        elif type(event) is JobRetryScheduled:
            openers[event.attempt + 1] = each
    return effects, openers
