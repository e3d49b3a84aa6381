"""What the group has committed, asked through consumers that never join it.

The admin client could be asked the same, but librdkafka ends the process when the answer is that the coordinator has
moved (confluentinc/librdkafka#5040): it looks for a consumer's group and finds none. These have one.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from mainspring.processors.engine.errors import UnstableOffsetsError
from mainspring.processors.engine.kafka.faults import fault_of
from mainspring.processors.engine.ports import Mark, Place

__all__ = ["CommittedOffsets", "GroupOffsets"]

_CALL_S = 3.0
_STABLE_S = 0.15
"""How long a stable answer may take: the client asks again by itself while a transaction holds an offset."""
_AT_ONCE = 8
"""Questions under way at a time: a takeover of many partitions asks for each."""
_NOWHERE = 1_000_000
"""A partition that no topic has, of which the group knows nothing and no transaction holds anything."""

Marks = dict[Place, Mark | None]


class GroupOffsets:
    """Asks on threads of its own, so that nobody who asks waits."""

    def __init__(self, stable: dict[str, Any], unstable: dict[str, Any]) -> None:
        self._configs = {True: stable, False: unstable}
        self._consumers: dict[bool, Consumer] = {}
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="offsets")

    def committed(self, places: Sequence[Place], *, stable: bool) -> "CommittedOffsets":
        """Offset and note of each place; with `stable`, UnstableOffsetsError while a transaction holds one."""
        if stable not in self._consumers:
            self._consumers[stable] = Consumer(self._configs[stable])
        ask = _stable if stable else _as_they_are
        return CommittedOffsets(self._pool.submit(ask, self._consumers[stable], tuple(places)))

    def close(self) -> None:
        """Asks nothing more. A question under way ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._consumers.clear()


class CommittedOffsets:
    """The answer to one question."""

    def __init__(self, future: "Future[Marks]") -> None:
        self._future = future

    def done(self) -> bool:
        """Whether it is there."""
        return self._future.done()

    def result(self) -> Marks:
        """The answer; raises UnstableOffsetsError or TransactionError."""
        try:
            return self._future.result(0)
        except KafkaException as error:
            raise fault_of(error) from error


def _as_they_are(consumer: Consumer, places: Sequence[Place]) -> Marks:
    return _ask(consumer, places, _CALL_S)


def _stable(consumer: Consumer, places: Sequence[Place]) -> Marks:
    """A time-out has two causes: the coordinator was still being looked for, or a transaction holds an offset."""
    try:
        return _ask(consumer, places, _STABLE_S)
    except KafkaException as error:
        if not _timed_out(error):
            raise
    _ask(consumer, [(places[0][0], _NOWHERE)], _CALL_S)
    try:
        return _ask(consumer, places, _STABLE_S)
    except KafkaException as error:
        if not _timed_out(error):
            raise
        raise UnstableOffsetsError(", ".join(f"{topic}[{partition}]" for topic, partition in places)) from error


def _ask(consumer: Consumer, places: Sequence[Place], timeout_s: float) -> Marks:
    marks: Marks = {}
    for place in consumer.committed([TopicPartition(topic, partition) for topic, partition in places], timeout_s):
        if place.error is not None:
            raise KafkaException(place.error)
        mark = Mark(offset=place.offset, metadata=place.metadata or "") if place.offset >= 0 else None
        marks[place.topic, place.partition] = mark
    return marks


def _timed_out(error: KafkaException) -> bool:
    return bool(error.args[0].code() == KafkaError._TIMED_OUT)
