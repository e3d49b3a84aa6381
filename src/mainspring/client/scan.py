"""Reading a job's past out of its partition of `events`."""

from collections.abc import Callable
from typing import cast

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from mainspring.client.errors import EventsUnavailableError
from mainspring.client.patience import patiently
from mainspring.client.tail import Decoder
from mainspring.client.watch import Start
from mainspring.schemas.records import Event
from mainspring.topics.offsets import offset_at_time

__all__ = ["scan"]

BATCH = 10_000
# A broker that says nothing for this long is given up; each record and each end of the partition starts it anew.
SILENCE_S = 30.0


def scan(
    make_consumer: Callable[[], Consumer],
    topic: str,
    partition: int,
    key: bytes,
    start: Start,
    until: int,
    decode: Decoder,
) -> tuple[list[tuple[Event, int]], int]:
    """Every committed event of one key from `start` to the end, with its offset; and that end.

    `until` is where the committed events ended when they were asked for: a partition that others write to without a
    pause has no end that a reader could meet.

    Costs a read of the partition from `start`: about a microsecond a record; only those of the key are decoded.
    Raises `EventsUnavailableError`.
    """
    consumer = make_consumer()
    found: list[tuple[Event, int]] = []
    try:
        consumer.assign([TopicPartition(topic, partition, _first_offset(consumer, topic, partition, start))])
        while True:
            first = consumer.poll(SILENCE_S)
            if first is None:
                raise EventsUnavailableError(f"{topic}[{partition}]", f"no answer within {SILENCE_S:g} s")
            reached = 0
            for message in (first, *consumer.consume(BATCH, 0)):
                error = message.error()
                if error is None:
                    reached = cast(int, message.offset()) + 1
                    if message.key() == key and (event := decode(cast(bytes, message.value()))) is not None:
                        found.append((event, cast(int, message.offset())))
                elif error.code() == KafkaError._PARTITION_EOF:
                    return found, cast(int, message.offset())
                elif message.partition() == partition and not error.retriable():
                    raise EventsUnavailableError(f"{topic}[{partition}]", error.str())
            if reached >= until:
                return found, reached
    except KafkaException as error:
        raise EventsUnavailableError(f"{topic}[{partition}]", error.args[0].str()) from error
    finally:
        consumer.close()


def _first_offset(consumer: Consumer, topic: str, partition: int, start: Start) -> int:
    if start.offset is not None:
        return start.offset
    if start.time_ms is None:
        return OFFSET_BEGINNING
    asked = [TopicPartition(topic, partition, start.time_ms)]

    def ask() -> int:
        (found,) = consumer.offsets_for_times(asked, timeout=SILENCE_S)
        return offset_at_time(found)

    return patiently(ask, SILENCE_S)
