"""The Kafka side of the projector: `events`, read committed, every partition by hand, from where the view stands."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from mainspring.processors.projector.errors import TopicAbsentError, ViewMismatchError, ViewPositionError
from mainspring.processors.projector.store import Position
from mainspring.topics import Connection, Topology

__all__ = ["Arrived", "Feed", "event_id"]

_REBUILD = "run `mainspring projector --rebuild` to fold it anew"

_GONE = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """One record of `events`, still encoded."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def event_id(value: bytes | None) -> str:
    """What identifies an event by its bytes, so that another record at the same offset is noticed."""
    return hashlib.blake2b(value or b"", digest_size=16).hexdigest()


class Feed:
    """Reads `events` from the positions of a view and refuses to go on where the log does not continue there."""

    def __init__(
        self,
        connection: Connection,
        topology: Topology,
        *,
        admin_timeout_s: float = 15.0,
        make_consumer: Callable[[dict[str, Any]], Consumer] = Consumer,
        make_admin: Callable[[dict[str, Any]], AdminClient] = AdminClient,
    ) -> None:
        self._timeout_s = admin_timeout_s
        self._topology = topology
        self._topic = topology.events.name
        self._admin = make_admin(connection.admin_config())
        self._consumer = make_consumer(
            connection.consumer_config(
                **{
                    "group.id": topology.group("projector"),
                    "enable.auto.commit": False,
                    "enable.auto.offset.store": False,
                    "auto.offset.reset": "error",
                    "isolation.level": "read_committed",
                    "enable.partition.eof": True,
                    "check.crcs": True,
                    # The default of a second would make the reader wait each time that its queue had been full.
                    "fetch.queue.backoff.ms": 10,
                    "fetch.wait.max.ms": 100,
                    "queued.max.messages.kbytes": 65_536,
                }
            )
        )
        self._unproven: dict[int, Position] = {}
        self._passed: dict[int, int] = {}
        self._at_end: set[int] = set()
        self._topic_id = ""

    @property
    def topic_id(self) -> str:
        """Kafka's id of the topic that is being read; a topic made anew under the same name has another."""
        return self._topic_id

    def close(self) -> None:
        """Leaves the brokers."""
        self._consumer.close()

    def begin(self, positions: Mapping[int, Position]) -> dict[int, Position]:
        """Assigns every partition and returns where each will go on. Raises ViewMismatchError and ViewPositionError."""
        self._topic_id = self._describe()
        self._require_same(positions, self._topic_id)
        starts: dict[int, Position] = {}
        assignment = []
        for partition in range(self._topology.events.partitions):
            position = positions.get(partition)
            if position is None:
                position = Position(partition=partition, topic=self._topic, topic_id=self._topic_id, next_offset=0)
            assignment.append(TopicPartition(self._topic, partition, self._start(position)))
            starts[partition] = position
            self._passed[partition] = position.next_offset
        self._consumer.assign(assignment)
        return starts

    def check_topic(self, positions: Mapping[int, Position]) -> None:
        """Raises ViewMismatchError when the topic is another one than the view was folded from."""
        self._require_same(positions, self._describe())

    def _require_same(self, positions: Mapping[int, Position], topic_id: str) -> None:
        for position in positions.values():
            if position.topic != self._topic:
                raise ViewMismatchError(
                    f"the view was folded from {position.topic} and the settings name {self._topic}: "
                    f"check MAINSPRING_TOPICS__PREFIX, give this installation a view of its own, or {_REBUILD}"
                )
            if position.topic_id != topic_id:
                raise ViewMismatchError(
                    f"topic {self._topic} was deleted and made anew since the view was folded "
                    f"(its id was {position.topic_id}, it is {topic_id}): {_REBUILD}"
                )

    def _describe(self) -> str:
        future = self._admin.describe_topics(TopicCollection([self._topic]), request_timeout=self._timeout_s)[
            self._topic
        ]
        try:
            description = future.result(timeout=2 * self._timeout_s)
        except KafkaException as error:
            if error.args[0].code() in _GONE:
                raise TopicAbsentError(
                    f"topic {self._topic} does not exist: make it with `mainspring topics apply`, or check the prefix"
                ) from error
            raise
        found, wanted = len(description.partitions), self._topology.events.partitions
        if found != wanted:
            raise ViewMismatchError(
                f"topic {self._topic} has {found} partitions and the settings say {wanted}: "
                "the count is fixed at creation; set MAINSPRING_TOPICS__PARTITIONS to what the topic has"
            )
        return str(description.topic_id)

    def _start(self, position: Position) -> int:
        partition = TopicPartition(self._topic, position.partition)
        low, high = self._consumer.get_watermark_offsets(partition, timeout=self._timeout_s)
        where = f"{self._topic} partition {position.partition}"
        if low > position.next_offset:
            raise ViewPositionError(
                f"{where} begins at offset {low} and the view stands at {position.next_offset}: "
                "the events between were removed (retention, or DeleteRecords), so this log can no longer be folded; "
                "keep the view as it is, or restore the topic"
            )
        if high < position.next_offset:
            raise ViewPositionError(
                f"{where} ends at offset {high} and the view stands at {position.next_offset}: "
                f"the log lost events that the view has (unclean election, or a restored backup); {_REBUILD}"
            )
        if position.last_event_offset < low:
            return position.next_offset
        # Read the last folded event once more: if it is not the same, the log is not the same.
        self._unproven[position.partition] = position
        return position.last_event_offset

    def read(self, limit: int, timeout_s: float) -> Iterator[Arrived]:
        """What has arrived, at most `limit`; waits up to `timeout_s` for the first.

        Raises KafkaException, and ViewPositionError where the log does not continue.
        """
        first = self._consumer.poll(timeout_s)
        if first is None:
            return
        # poll then consume(…, 0): consume with a time-out would wait for the batch to fill.
        for message in (first, *self._consumer.consume(limit - 1, 0)):
            error = message.error()
            if error is None:
                arrived = _arrived(message)
                self._at_end.discard(arrived.partition)
                if self._is_new(arrived):
                    self._passed[arrived.partition] = arrived.offset + 1
                    yield arrived
            elif error.code() == KafkaError._PARTITION_EOF:
                self._reached_end(int(message.partition() or 0), int(message.offset() or 0))
            else:
                self._fail(error, message)

    def _is_new(self, arrived: Arrived) -> bool:
        if not self._unproven:
            return True
        position = self._unproven.pop(arrived.partition, None)
        if position is None:
            return True
        if arrived.offset == position.last_event_offset and event_id(arrived.value) == position.last_event_id:
            return False
        raise self._not_the_same(position, arrived.offset)

    def _reached_end(self, partition: int, offset: int) -> None:
        position = self._unproven.get(partition)
        if position is not None and offset <= position.last_event_offset:
            return  # The last stable offset may still lie before it right after a broker's start; it moves on.
        if position is not None:
            raise self._not_the_same(position, offset)
        self._passed[partition] = max(self._passed[partition], offset)
        self._at_end.add(partition)

    def _not_the_same(self, position: Position, offset: int) -> ViewPositionError:
        return ViewPositionError(
            f"{self._topic} partition {position.partition}: the view's last event was at offset "
            f"{position.last_event_offset} and offset {offset} of the log now follows or holds another record: "
            f"this is not the log that the view was folded from; {_REBUILD}"
        )

    def _fail(self, error: KafkaError, message: Message) -> None:
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise ViewPositionError(
                f"{self._topic} partition {message.partition()}: the offset to read next is no longer in the log "
                f"({error.str()}): events were removed, or the topic was made anew; {_REBUILD}"
            )
        raise KafkaException(error)

    def passed(self) -> dict[int, int]:
        """By partition, the offset up to which everything has been read, control records included."""
        return dict(self._passed)

    def at_end(self) -> frozenset[int]:
        """The partitions of which everything that is committed has been read."""
        return frozenset(self._at_end)

    def ends(self) -> dict[int, int]:
        """By partition, the end as the last fetch told it. For the reading thread: a consumer makes others wait."""
        return {partition: self._end(partition) for partition in self._passed}

    def _end(self, partition: int) -> int:
        try:
            _, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
        except KafkaException:
            return self._passed[partition]
        return max(high, self._passed[partition])


def _arrived(message: Message) -> Arrived:
    return Arrived(
        partition=_int(message.partition()),
        offset=_int(message.offset()),
        timestamp_ms=message.timestamp()[1],
        key=_bytes(message.key()),
        value=_bytes(message.value()),
    )


def _int(value: int | None) -> int:
    assert value is not None
    return value


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
