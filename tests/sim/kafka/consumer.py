"""The client library's consumer and admin client as the projector uses them, on the simulated cluster."""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future as Answer
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tests.sim.kafka.broker import Link, SimBroker
from tests.sim.kafka.fetcher import Fetcher
from tests.sim.kafka.log import Record
from tests.sim.process import Process
from tests.sim.world import SECOND

__all__ = ["SimAdminClient", "SimConsumer"]

_READ_MAX = 2_000
_WAIT = 5 * SECOND
"""Longer than the program asks for, which is only woken more often."""


class _Message:
    """A record, or where a partition ends."""

    def __init__(self, place: tuple[str, int], offset: int, record: Record | None) -> None:
        self._place = place
        self._offset = offset
        self._record = record

    def error(self) -> KafkaError | None:
        return KafkaError(KafkaError._PARTITION_EOF) if self._record is None else None

    def partition(self) -> int:
        return self._place[1]

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return (1, 0 if self._record is None else self._record.written_at // 1000)

    def key(self) -> bytes | None:
        return None if self._record is None else self._record.key()

    def value(self) -> bytes | None:
        return None if self._record is None else self._record.value()


class SimConsumer:
    """Reads what is assigned by hand, committed records only. `linger`: what it waits for more once there is some."""

    def __init__(self, process: Process, broker: SimBroker, linger: int) -> None:
        self._process = process
        self._broker = broker
        self._linger = linger
        self._fetcher = Fetcher(process, broker)
        self._link = Link(process, broker)
        self._read: deque[Any] = deque()

    def assign(self, places: Sequence[TopicPartition]) -> None:
        """Takes on these partitions, each from its offset."""
        for each in places:
            self._fetcher.add((each.topic, each.partition), each.offset, active=True)

    def poll(self, _timeout_s: float) -> Any:
        """The next record or end; None: nothing came."""
        if not self._read:
            result = self._fetcher.read(_READ_MAX, _WAIT, self._linger)
            self._read += [_Message((each.topic(), each.partition()), each.offset(), each) for each in result.records]  # type: ignore[arg-type]  # what is received here are records of the simulated log
            self._read += [_Message(place, offset, None) for place, offset in result.ends]
        return self._read.popleft() if self._read else None

    def consume(self, limit: int, _timeout_s: float) -> list[Any]:
        """What is there already."""
        return [self._read.popleft() for _ in range(min(limit, len(self._read)))]

    def get_watermark_offsets(
        self, place: TopicPartition, timeout: float = 0.0, *, cached: bool = False
    ) -> tuple[int, int]:
        """The first offset and the one behind the last committed record. Raises KafkaException."""
        log = self._broker.log((place.topic, place.partition))
        if cached:
            return log.start, log.end
        answer = self._link.call(lambda: (log.start, log.end))
        if not self._process.wait(answer, round(timeout * SECOND)):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return answer.result()

    def close(self) -> None:
        """Nothing of it is known to the cluster: it has no group."""


class SimAdminClient:
    """Tells of topics."""

    def __init__(self, process: Process, broker: SimBroker) -> None:
        self._process = process
        self._broker = broker
        self._link = Link(process, broker)

    def describe_topics(self, topics: Any, request_timeout: float) -> dict[str, Answer[Any]]:
        """By name, what is known of a topic."""
        (name,) = topics.topic_names
        answer = self._link.call(
            lambda: SimpleNamespace(topic_id=self._broker.topic_id(name), partitions=self._broker.logs(name))
        )
        told: Answer[Any] = Answer()
        if self._process.wait(answer, round(request_timeout * SECOND)):
            told.set_result(answer.result())
        else:
            told.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
        return {name: told}
