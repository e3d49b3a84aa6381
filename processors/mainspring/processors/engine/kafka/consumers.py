"""The consumers: of the inputs, and of the changelog."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from mainspring.processors.engine.errors import OffsetOutOfRangeError
from mainspring.processors.engine.kafka.faults import DENIED_CODES, consumer_error, fault_of
from mainspring.processors.engine.kafka.logs import library_logger
from mainspring.processors.engine.ports import (
    GroupMetadata,
    Mark,
    Pending,
    Place,
    ReadResult,
    RebalanceListener,
    Received,
)
from mainspring.telemetry import get_logger
from mainspring.topics.contact import Contact
from mainspring.topics.lines import Seldom

__all__ = ["KafkaChangelog", "KafkaInputs", "positions"]

_log = get_logger(__name__)

_ABSENT = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})
_SELDOM = Seldom()
_HINT = "`mainspring topics apply` makes the topics; or is the prefix (topics.prefix) another one?"


class KafkaInputs:
    """The consumer of the inputs."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._claims: list[tuple[frozenset[Place], Future[None]]] = []
        self._denied: KafkaError | None = None
        self._contact = Contact()
        callbacks = {"on_commit": self._on_commit, "error_cb": self._on_error}
        self._consumer = Consumer({**self._contact.options, **config, **callbacks}, logger=library_logger("inputs"))

    def subscribe(self, topic: str, listener: RebalanceListener) -> None:
        def numbers(places: list[TopicPartition]) -> list[int]:
            return [place.partition for place in places]

        self._consumer.subscribe(
            [topic],
            on_assign=lambda _, places: listener.on_assigned(numbers(places)),
            on_revoke=lambda _, places: listener.on_revoked(numbers(places)),
            on_lost=lambda _, places: listener.on_lost(numbers(places)),
        )

    def add(self, places: Sequence[Place]) -> None:
        # An explicit offset, so that the client does not look for a committed one; nothing is fetched while paused.
        added = [TopicPartition(topic, partition, 0) for topic, partition in places]
        self._consumer.incremental_assign(added)
        if added:
            self._consumer.pause(added)

    def remove(self, places: Sequence[Place]) -> None:
        self._consumer.incremental_unassign([TopicPartition(topic, partition) for topic, partition in places])

    def start(self, offsets: Mapping[Place, int]) -> None:
        places = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        self._consumer.pause(places)
        for place in places:
            self._consumer.seek(place)
        self._consumer.resume(places)

    def hold(self, places: Sequence[Place]) -> None:
        self._consumer.pause([TopicPartition(topic, partition) for topic, partition in places])

    def read(self, max_records: int, wait_ms: int, linger_ms: int = 0) -> ReadResult:
        consumer = self._consumer
        first = consumer.poll(wait_ms / 1_000)
        if first is None:
            self._raise_denied()
            return ReadResult()
        messages = consumer.consume(max_records - 1, linger_ms / 1_000) if max_records > 1 else []
        messages.insert(0, first)
        return sort_out(messages)

    def known_end(self, place: Place) -> int | None:
        _, end = self._consumer.get_watermark_offsets(TopicPartition(*place), cached=True)
        return end if end >= 0 else None

    def lost_s(self) -> float:
        return self._contact.lost_s

    def owned(self) -> set[Place]:
        return {(place.topic, place.partition) for place in self._consumer.assignment()}

    def group(self) -> GroupMetadata:
        return self._consumer.consumer_group_metadata()

    def claim(self, marks: Mapping[Place, Mark]) -> Pending[None]:
        answer: Future[None] = Future()
        self._claims.append((frozenset(marks), answer))
        try:
            self._consumer.commit(offsets=positions(marks), asynchronous=True)
        except KafkaException as error:
            self._claims.pop()
            answer.set_exception(fault_of(error))
        return answer

    def close(self) -> None:
        self._consumer.close()

    def _on_commit(self, error: KafkaError | None, places: list[TopicPartition]) -> None:
        about = frozenset((place.topic, place.partition) for place in places)
        failed = error or next((place.error for place in places if place.error is not None), None)
        for index, (claimed, answer) in enumerate(self._claims):
            if claimed == about:
                del self._claims[index]
                if failed is None:
                    answer.set_result(None)
                else:
                    answer.set_exception(fault_of(KafkaException(failed)))
                return

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in DENIED_CODES or error.fatal():
            self._denied = error
        _tell("consumer trouble", error)

    def _raise_denied(self) -> None:
        error = self._denied
        if error is None:
            return
        self._denied = None
        raise consumer_error(error, None)


class KafkaChangelog:
    """The consumer of the changelog, for restores."""

    def __init__(self, config: dict[str, Any], topic: str) -> None:
        self._topic = topic
        self._consumer = Consumer({**config, "error_cb": self._on_error}, logger=library_logger("changelog"))

    def add(self, partition: int, offset: int) -> None:
        self._consumer.incremental_assign([TopicPartition(self._topic, partition, offset)])

    def remove(self, partition: int) -> None:
        self._consumer.incremental_unassign([TopicPartition(self._topic, partition)])

    def read(self, max_records: int, wait_ms: int) -> ReadResult:
        first = self._consumer.poll(wait_ms / 1_000)
        if first is None:
            return ReadResult()
        messages = self._consumer.consume(max_records - 1, 0)
        messages.insert(0, first)
        return sort_out(messages)

    def close(self) -> None:
        self._consumer.close()

    def _on_error(self, error: KafkaError) -> None:
        _tell("restore consumer trouble", error)


def _tell(what: str, error: KafkaError) -> None:
    if not _SELDOM.is_due(f"{what} {error.code()} {error.str()}"):
        return
    hint = {"hint": _HINT} if error.code() in _ABSENT else {}
    _log.warning(what, code=error.name(), detail=error.str(), **hint)


def positions(marks: Mapping[Place, Mark]) -> list[TopicPartition]:
    """Marks as the client library takes them."""
    return [
        TopicPartition(topic, partition, mark.offset, metadata=mark.metadata)
        for (topic, partition), mark in marks.items()
    ]


def sort_out(messages: "list[Message[bytes, bytes]]") -> ReadResult:
    """Tells records from ends and errors. Nearly always there are only records."""
    records: list[Any] = [message for message in messages if message.error() is None]
    if len(records) == len(messages):
        return ReadResult(records=cast("list[Received]", records))
    ends: list[tuple[Place, int]] = []
    for message in messages:
        error = message.error()
        if error is None:
            continue
        place = (str(message.topic()), int(message.partition() or 0))
        if error.code() == KafkaError._PARTITION_EOF:
            ends.append((place, int(message.offset() or 0)))
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise OffsetOutOfRangeError(place, error.str())
        elif error.fatal() or error.code() in DENIED_CODES:
            raise consumer_error(error, place)
        else:
            _tell("consumer trouble", error)
    return ReadResult(records=cast("list[Received]", records), ends=ends)
