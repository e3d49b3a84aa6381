"""Questions to the broker, each answered when it is."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from mainspring.processors.engine.errors import UnstableOffsetsError
from mainspring.processors.engine.kafka.faults import fault_of
from mainspring.processors.engine.kafka.logs import library_logger
from mainspring.processors.engine.ports import Mark, Pending, Place

__all__ = ["KafkaAdmin"]

T = TypeVar("T")

_CALL_S = 5.0


class KafkaAdmin:
    """Questions to the broker."""

    def __init__(self, config: dict[str, Any], group: str) -> None:
        self._client = AdminClient(config, logger=library_logger("admin"))
        self._group = group

    def committed(self, places: Sequence[Place], *, stable: bool) -> Pending[dict[Place, Mark | None]]:
        asked = ConsumerGroupTopicPartitions(self._group, [TopicPartition(topic, p) for topic, p in places])
        answer = self._client.list_consumer_group_offsets([asked], require_stable=stable, request_timeout=_CALL_S)
        return _Answer(answer[self._group], _marks)

    def ends(self, places: Sequence[Place]) -> Pending[dict[Place, int]]:
        return self._offsets(places, OffsetSpec.latest())

    def beginnings(self, places: Sequence[Place]) -> Pending[dict[Place, int]]:
        return self._offsets(places, OffsetSpec.earliest())

    def topic_id(self, topic: str) -> Pending[str]:
        answer = self._client.describe_topics(TopicCollection([topic]), request_timeout=_CALL_S)
        return _Answer(answer[topic], lambda description: str(description.topic_id))

    def close(self) -> None:
        pass

    def _offsets(self, places: Sequence[Place], spec: OffsetSpec) -> Pending[dict[Place, int]]:
        asked = {TopicPartition(topic, partition): spec for topic, partition in places}
        answers = self._client.list_offsets(
            asked, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=_CALL_S
        )
        return _Answers({(place.topic, place.partition): answer for place, answer in answers.items()})


class _Answer(Generic[T]):
    """A future of the client library, its answer translated."""

    def __init__(self, future: "Future[Any]", translate: Callable[[Any], T]) -> None:
        self._future = future
        self._translate = translate

    def done(self) -> bool:
        return self._future.done()

    def result(self) -> T:
        try:
            return self._translate(self._future.result(0))
        except KafkaException as error:
            raise fault_of(error) from error


class _Answers:
    """Several futures of offsets as one."""

    def __init__(self, futures: dict[Place, "Future[Any]"]) -> None:
        self._futures = futures

    def done(self) -> bool:
        return all(future.done() for future in self._futures.values())

    def result(self) -> dict[Place, int]:
        try:
            return {place: future.result(0).offset for place, future in self._futures.items()}
        except KafkaException as error:
            raise fault_of(error) from error


def _marks(answer: Any) -> dict[Place, Mark | None]:
    marks: dict[Place, Mark | None] = {}
    for place in answer.topic_partitions:
        if place.error is not None:
            if place.error.code() == KafkaError.UNSTABLE_OFFSET_COMMIT:
                raise UnstableOffsetsError(f"{place.topic}[{place.partition}]")
            raise KafkaException(place.error)
        mark = Mark(offset=place.offset, metadata=place.metadata or "") if place.offset >= 0 else None
        marks[place.topic, place.partition] = mark
    return marks
