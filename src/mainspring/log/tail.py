"""The newest records, and those to come."""

from collections import deque
from collections.abc import Callable, Generator, Sequence

from mainspring.log.kafka import KafkaLog
from mainspring.log.records import LogRecord, decoded
from mainspring.log.source import Span
from mainspring.schemas import Codec
from mainspring.topics import Topic, partition_for

__all__ = ["tail"]


def tail(
    log: KafkaLog,
    codec: Codec,
    *,
    topics: Sequence[Topic] | None = None,
    last: int = 10,
    job_id: str | None = None,
    follow: bool = False,
    stopped: Callable[[], bool] = lambda: False,
) -> Generator[LogRecord, None, None]:
    """The `last` records of the topics (`events` by default) by time, then, with `follow`, each new one.

    It follows until `stopped()`. `job_id` keeps to the records with that key. Raises LogError.
    """
    chosen = list(topics) if topics is not None else [log.topology.events]
    spans = log.spans(chosen)
    newest: deque[LogRecord] = deque(maxlen=max(0, last))
    starts: dict[tuple[str, int], int] = {}
    found: list[LogRecord] = []
    for topic in chosen:
        for partition in _partitions(topic, job_id):
            span = spans[topic.name, partition]
            starts[topic.name, partition] = span.end
            found.extend(_last_of(log, codec, topic, partition, span, last, job_id))
    newest.extend(sorted(found, key=lambda each: (each.timestamp_ms, each.place)))
    yield from newest
    if follow:
        for topic_name, partition, raw in log.follow(starts, stopped):
            if job_id is None or raw.key == job_id.encode():
                yield decoded(codec, topic_name, partition, raw)


def _partitions(topic: Topic, job_id: str | None) -> Sequence[int]:
    if job_id is None:
        return range(topic.partitions)
    return (partition_for(job_id.encode(), topic.partitions),)


def _last_of(
    log: KafkaLog, codec: Codec, topic: Topic, partition: int, span: Span, last: int, job_id: str | None
) -> list[LogRecord]:
    """The last records of one partition; control records and aborted ones take offsets, so the window grows."""
    window = 2 * last + 10
    kept: deque[LogRecord] = deque(maxlen=max(0, last))
    while last > 0:
        part = Span(start=max(span.start, span.end - window), end=span.end)
        kept.clear()
        for batch in log.read(topic, partition, part):
            kept.extend(
                decoded(codec, topic.name, partition, raw)
                for raw in batch
                if job_id is None or raw.key == job_id.encode()
            )
        if len(kept) == last or part.start == span.start:
            break
        window *= 8
    return list(kept)
