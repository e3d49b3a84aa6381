"""Questions to the broker, each answered when it is."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from mainspring.processors.engine.kafka.faults import fault_of
from mainspring.processors.engine.kafka.logs import library_logger
from mainspring.processors.engine.kafka.offsets import GroupOffsets
from mainspring.processors.engine.ports import Mark, Pending, Place
from mainspring.topics.offsets import answered_offset

__all__ = ["KafkaAdmin"]

T = TypeVar("T")

_CALL_S = 3.0
_RECONNECT_S = 1.0


class KafkaAdmin:
    """Questions to the broker.

    After a question that failed, the next one goes through a new client. The client library's never recovers by itself
    from a broker that was away: it goes on asking for offsets with an epoch that is over.
    """

    def __init__(self, config: dict[str, Any], group: GroupOffsets) -> None:
        self._config = config
        self._group = group
        self._client = self._connect()

    def committed(self, places: Sequence[Place], *, stable: bool) -> Pending[dict[Place, Mark | None]]:
        return self._group.committed(places, stable=stable)

    def ends(self, places: Sequence[Place]) -> Pending[dict[Place, int]]:
        return self._offsets(places, OffsetSpec.latest())

    def beginnings(self, places: Sequence[Place]) -> Pending[dict[Place, int]]:
        return self._offsets(places, OffsetSpec.earliest())

    def topic_id(self, topic: str) -> Pending[str]:
        client = self._client
        answer = client.describe_topics(TopicCollection([topic]), request_timeout=_CALL_S)
        return _Answer([answer[topic]], lambda found: str(found[0].topic_id), self._doubt(client))

    def close(self) -> None:
        self._group.close()

    def _offsets(self, places: Sequence[Place], spec: OffsetSpec) -> Pending[dict[Place, int]]:
        client = self._client
        asked = {TopicPartition(topic, partition): spec for topic, partition in places}
        answers = client.list_offsets(asked, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=_CALL_S)
        which = [(str(place.topic), int(place.partition)) for place in answers]
        return _Answer(
            list(answers.values()),
            lambda found: {place: answered_offset(each) for place, each in zip(which, found, strict=True)},
            self._doubt(client),
        )

    def _connect(self) -> AdminClient:
        self._connected_at_s = time.monotonic()
        return AdminClient(self._config, logger=library_logger("admin"))

    def _doubt(self, client: AdminClient) -> Callable[[], None]:
        """What to call when a question to this client has failed. It keeps the client, whose answers go with it."""

        def failed() -> None:
            # Not at every failure: while a broker is away, some come at once.
            if client is self._client and time.monotonic() - self._connected_at_s >= _RECONNECT_S:
                self._client = self._connect()

        return failed


class _Answer(Generic[T]):
    """Futures of the client library as one, their answers translated."""

    def __init__(
        self, futures: "Sequence[Future[Any]]", translate: Callable[[list[Any]], T], failed: Callable[[], None]
    ) -> None:
        self._futures = futures
        self._translate = translate
        self._failed = failed

    def done(self) -> bool:
        return all(future.done() for future in self._futures)

    def result(self) -> T:
        try:
            return self._translate([future.result(0) for future in self._futures])
        except KafkaException as error:
            self._failed()
            raise fault_of(error) from error
