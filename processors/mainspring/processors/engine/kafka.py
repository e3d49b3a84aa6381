"""The ports on confluent-kafka. What librdkafka does differently from what one would expect is dealt with here."""

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from mainspring.processors.engine.errors import (
    ConfigurationError,
    FatalKafkaError,
    FaultKind,
    OffsetOutOfRangeError,
    TransactionError,
    UnstableOffsetsError,
)
from mainspring.processors.engine.ports import (
    GroupMetadata,
    Mark,
    Pending,
    Place,
    Produce,
    ReadResult,
    RebalanceListener,
    Received,
)
from mainspring.telemetry import get_logger
from mainspring.topics import Connection

__all__ = ["ClientOptions", "ConfluentKafka", "SystemClock", "SystemRandomness"]

T = TypeVar("T")
R = TypeVar("R")

_log = get_logger(__name__)

_RECORD_CODES: Final = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_RECORD,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
    }
)
"""Errors that a record brings on itself: where it goes, or how large it is."""

_DENIED_CODES: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,
    }
)

_FENCED_CODES: Final = frozenset(
    {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.FENCED_INSTANCE_ID}
)

_LOST_LINK = ("FAIL", "REQTMOUT")
_QUEUE_MESSAGES = 1_000_000
_QUEUE_KBYTES = 1_048_576
_CALL_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """How the clients are tuned. All times in milliseconds."""

    group: str
    subscribed: str
    inputs: tuple[str, ...]
    changelog: str
    client_id: str
    session_timeout_ms: int = 6_000
    heartbeat_ms: int = 500
    transaction_timeout_ms: int = 3_000
    max_poll_interval_ms: int = 120_000
    group_instance_id: str | None = None
    prefetch_records: int = 20_000
    prefetch_kbytes: int = 65_536


class SystemClock:
    """The machine's clocks."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def mono_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def pause(self, delay_ms: int) -> None:
        time.sleep(delay_ms / 1_000)


class SystemRandomness:
    """The machine's randomness."""

    def bits(self, count: int) -> int:
        return int.from_bytes(os.urandom((count + 7) // 8), "big") & ((1 << count) - 1)


class ConfluentKafka:
    """Makes clients for one processor on one cluster."""

    def __init__(self, connection: Connection, options: ClientOptions) -> None:
        self._connection = connection
        self._options = options

    def inputs(self) -> "KafkaInputs":
        options = self._options
        own: dict[str, Any] = {
            "client.id": options.client_id,
            "group.id": options.group,
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": options.session_timeout_ms,
            "heartbeat.interval.ms": min(options.heartbeat_ms, options.session_timeout_ms // 3),
            "max.poll.interval.ms": max(options.max_poll_interval_ms, options.session_timeout_ms),
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 10,
            "queued.min.messages": options.prefetch_records,
            "queued.max.messages.kbytes": options.prefetch_kbytes,
        }
        if options.group_instance_id is not None:
            own["group.instance.id"] = options.group_instance_id
        return KafkaInputs(self._connection.consumer_config(**own), options.subscribed, options.inputs)

    def changelog(self) -> "KafkaChangelog":
        own = {
            "client.id": f"{self._options.client_id}-restore",
            # Never joined: librdkafka asks for a name even where partitions are assigned by hand.
            "group.id": self._options.group,
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 10,
            "fetch.wait.max.ms": 100,
        }
        return KafkaChangelog(self._connection.consumer_config(**own), self._options.changelog)

    def admin(self) -> "KafkaAdmin":
        own = {"client.id": f"{self._options.client_id}-admin"}
        return KafkaAdmin(self._connection.admin_config(**own), self._options.group)

    def output(self, transactional_id: str) -> "KafkaOutput":
        return KafkaOutput(self._producer_config(transactional_id), transactional_id)

    def fence(self, transactional_id: str) -> None:
        self.output(transactional_id).close()

    def _producer_config(self, transactional_id: str) -> dict[str, Any]:
        own = {
            "client.id": transactional_id,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": self._options.transaction_timeout_ms,
            "linger.ms": 5,
            "retry.backoff.ms": 2,
            "retry.backoff.max.ms": 50,
            "queue.buffering.max.messages": _QUEUE_MESSAGES,
            "queue.buffering.max.kbytes": _QUEUE_KBYTES,
            "log.connection.close": True,
            "log_level": 6,
        }
        return self._connection.producer_config(**own)


class KafkaInputs:
    """The consumer of the inputs."""

    def __init__(self, config: dict[str, Any], subscribed: str, topics: tuple[str, ...]) -> None:
        self._subscribed = subscribed
        self._claims: list[tuple[frozenset[Place], Future[None]]] = []
        self._denied: KafkaError | None = None
        callbacks = {"on_commit": self._on_commit, "error_cb": self._on_error}
        self._consumer = Consumer({**config, **callbacks}, logger=_library_logger("inputs"))

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
        return _sort_out(messages)

    def owned(self) -> set[Place]:
        return {(place.topic, place.partition) for place in self._consumer.assignment()}

    def group(self) -> GroupMetadata:
        return self._consumer.consumer_group_metadata()

    def claim(self, marks: Mapping[Place, Mark]) -> Pending[None]:
        answer: Future[None] = Future()
        self._claims.append((frozenset(marks), answer))
        try:
            self._consumer.commit(offsets=_positions(marks), asynchronous=True)
        except KafkaException as error:
            self._claims.pop()
            answer.set_exception(_fault(error))
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
                    answer.set_exception(_fault(KafkaException(failed)))
                return

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in _DENIED_CODES or error.fatal():
            self._denied = error
        _log.warning("consumer trouble", code=error.name(), detail=error.str())

    def _raise_denied(self) -> None:
        error = self._denied
        if error is None:
            return
        self._denied = None
        raise _consumer_error(error, None)


class KafkaChangelog:
    """The consumer of the changelog, for restores."""

    def __init__(self, config: dict[str, Any], topic: str) -> None:
        self._topic = topic
        self._consumer = Consumer({**config, "error_cb": self._on_error}, logger=_library_logger("changelog"))

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
        return _sort_out(messages)

    def close(self) -> None:
        self._consumer.close()

    def _on_error(self, error: KafkaError) -> None:
        _log.warning("restore consumer trouble", code=error.name(), detail=error.str())


class KafkaAdmin:
    """Questions to the broker."""

    def __init__(self, config: dict[str, Any], group: str) -> None:
        self._client = AdminClient(config, logger=_library_logger("admin"))
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


class KafkaOutput:
    """A transactional producer, ready to begin."""

    produce: Produce

    def __init__(self, config: dict[str, Any], transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.noted: dict[Place, int] = {}
        self._failed: KafkaError | None = None
        self._links = _LinkLog(transactional_id)
        self._producer = Producer(config, logger=self._links.logger)
        self.trace(False)
        try:
            self._call(self._producer.init_transactions, _CALL_S)
        except BaseException:
            self.close()
            raise

    def trace(self, on: bool) -> None:
        # Untraced records go straight into the client library, without a frame or a callback of ours.
        self.produce = self._produce_traced if on else cast(Produce, self._producer.produce)

    def produce_noted(self, topic: str, value: bytes | None, key: bytes | None, partition: int) -> None:
        self._producer.produce(topic, value, key, partition, on_delivery=self._note)

    def begin(self) -> None:
        self._producer.poll(0)
        self._links.lost = False
        self._failed = None
        self.noted = {}
        self._call(self._producer.begin_transaction)

    def fault_of(self, error: Exception) -> TransactionError | None:
        return _fault(error) if isinstance(error, KafkaException) else None

    def wait_for_room(self) -> None:
        self._producer.poll(0.05)

    def flush(self) -> None:
        left = self._producer.flush(_CALL_S)
        if self._failed is not None:
            code = self._failed.code()
            kind = FaultKind.RECORD if code in _RECORD_CODES else FaultKind.ABORT
            raise TransactionError(kind, self._failed.name(), self._failed.str())
        if left:
            raise TransactionError(FaultKind.ABORT, "FLUSH", f"{left} records were not acknowledged within {_CALL_S} s")

    def send_offsets(self, marks: Mapping[Place, Mark], group: GroupMetadata) -> None:
        self._call(self._producer.send_offsets_to_transaction, _positions(marks), group, _CALL_S)

    def commit(self) -> None:
        self._call(self._producer.commit_transaction, _CALL_S)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction, _CALL_S)

    def is_suspect(self) -> bool:
        self._producer.poll(0)
        return self._links.lost

    def close(self) -> None:
        self._producer.purge()
        try:
            self._producer.close()
        except KafkaException as error:
            # A producer that was shut out says so once more when it is closed.
            _log.debug("producer closed", transactional_id=self.transactional_id, why=str(error))

    def _produce_traced(self, topic: str, value: bytes | None, key: bytes | None, partition: int, /) -> None:
        self._producer.produce(topic, value, key, partition, on_delivery=self._check)

    def _check(self, error: KafkaError | None, _: "Message[bytes, bytes]") -> None:
        # What was purged by the abort says nothing of the record.
        if error is not None and self._failed is None:
            self._failed = error

    def _note(self, error: KafkaError | None, message: "Message[bytes, bytes]") -> None:
        self._check(error, message)
        offset = message.offset()
        if error is None and offset is not None:
            self.noted[str(message.topic()), int(message.partition() or 0)] = offset

    def _call(self, method: Callable[..., object], *arguments: object) -> None:
        try:
            method(*arguments)
        except KafkaException as error:
            raise _fault(error) from error


class _LibraryLog(logging.Handler):
    """Takes over the client library's log lines, which would go to stderr past the process's own log."""

    def emit(self, record: logging.LogRecord) -> None:
        _log.debug("kafka client", line=record.getMessage())


class _LinkLog(_LibraryLog):
    """Listens to the producer's log lines for connections that broke and requests that timed out.

    Only they tell in time: the statistics come too late, and a request that was left behind in the network may end a later
    transaction of the same producer.
    """

    def __init__(self, transactional_id: str) -> None:
        super().__init__(logging.DEBUG)
        self.lost = False
        self.logger = _library_logger(transactional_id, self)

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if any(word in line for word in _LOST_LINK):
            self.lost = True
        super().emit(record)


def _library_logger(name: str, handler: logging.Handler | None = None) -> logging.Logger:
    # Not from the registry of loggers: each client has one of its own, and it goes with the client.
    logger = logging.Logger(f"librdkafka.{name}", logging.DEBUG)  # noqa: LOG001 - see above
    logger.addHandler(handler or _LibraryLog(logging.DEBUG))
    return logger


class _Answer(Pending[R]):
    """A future of the client library, its answer translated."""

    def __init__(self, future: "Future[T]", translate: Callable[[T], R]) -> None:
        self._future = future
        self._translate = cast(Callable[[Any], R], translate)

    def done(self) -> bool:
        return self._future.done()

    def result(self) -> R:
        try:
            return self._translate(self._future.result(0))
        except KafkaException as error:
            raise _fault(error) from error


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
            raise _fault(error) from error


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


def _positions(marks: Mapping[Place, Mark]) -> list[TopicPartition]:
    return [
        TopicPartition(topic, partition, mark.offset, metadata=mark.metadata)
        for (topic, partition), mark in marks.items()
    ]


def _sort_out(messages: "list[Message[bytes, bytes]]") -> ReadResult:
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
        elif error.fatal() or error.code() in _DENIED_CODES:
            raise _consumer_error(error, place)
        else:
            _log.warning("consumer trouble", code=error.name(), detail=error.str())
    return ReadResult(records=cast("list[Received]", records), ends=ends)


def _consumer_error(error: KafkaError, place: Place | None) -> Exception:
    where = "" if place is None else f" at {place[0]}[{place[1]}]"
    if error.code() in _DENIED_CODES:
        return ConfigurationError(
            f"the broker denies access{where}: {error.str()}. Print the rights that each role needs with "
            "`mainspring topics acls`, and check the credentials"
        )
    return FatalKafkaError(f"the consumer cannot go on{where}: {error.name()}: {error.str()}")


def _fault(exception: KafkaException) -> TransactionError:
    error = exception.args[0]
    if not isinstance(error, KafkaError):
        return TransactionError(FaultKind.UNKNOWN, type(exception).__name__, str(exception))
    return TransactionError(kind_of(error), error.name(), error.str())


def kind_of(error: KafkaError) -> FaultKind:
    """What an error of the client asks for."""
    if error.fatal() or error.code() in _FENCED_CODES or error.code() in _DENIED_CODES:
        return FaultKind.FATAL
    if error.txn_requires_abort():
        return FaultKind.RECORD if error.code() in _RECORD_CODES else FaultKind.ABORT
    if error.code() in _RECORD_CODES:
        return FaultKind.RECORD
    return FaultKind.RETRIABLE if error.retriable() else FaultKind.UNKNOWN
