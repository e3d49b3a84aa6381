"""The log of a live cluster, read partition by partition: no group, no commits, nothing that others would notice."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from mainspring.log.errors import LogRangeError, LogStalledError, LogTopicError
from mainspring.log.source import Raw, Span
from mainspring.topics import Connection, Topic, Topology
from mainspring.topics.offsets import answered_offset

__all__ = ["KafkaLog"]

BATCH = 5_000
POLL_S = 0.5
STALL_S = 60.0
ADMIN_TIMEOUT_S = 30.0

ELECTION_S, ELECTION_PAUSE_S = 15.0, 0.1

_GONE = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})
_ELECTING = _GONE | {
    KafkaError._NOENT,  # noqa: SLF001  # a public code of librdkafka: "no leaders found"
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
}


class KafkaLog:
    """Reads the topics of one installation. Not thread-safe. Close it, or use it as a context manager.

    `committed` reads what transactions committed, up to the last stable offset; else everything up to the high
    watermark, aborted records included. `headers` asks for the records' headers, too.
    """

    is_live = True

    def __init__(
        self, connection: Connection, topology: Topology, *, committed: bool = True, headers: bool = False
    ) -> None:
        self._topology = topology
        self._headers = headers
        self._isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        self._admin = AdminClient(connection.admin_config())
        self._consumer = Consumer(
            connection.consumer_config(
                **{
                    "group.id": topology.group("log"),
                    "isolation.level": "read_committed" if committed else "read_uncommitted",
                    "enable.partition.eof": True,
                    # The default of a second would make the reader wait each time that its queue had been full.
                    "fetch.queue.backoff.ms": 10,
                    # Short: a fetch that waits at the end of one partition holds up the next one.
                    "fetch.wait.max.ms": 10,
                    "queued.max.messages.kbytes": 65_536,
                }
            )
        )

    @property
    def topology(self) -> Topology:
        """The topics of the installation."""
        return self._topology

    def close(self) -> None:
        """Leaves the brokers."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self.close()

    def spans(self, topics: Sequence[Topic]) -> dict[tuple[str, int], Span]:
        """What is there now. Raises LogTopicError for a topic that is absent or lacks partitions."""
        wanted = [TopicPartition(topic.name, p) for topic in topics for p in range(topic.partitions)]
        ends = self._offsets(wanted, OffsetSpec.latest())
        starts = self._offsets(wanted, OffsetSpec.earliest())
        return {at: Span(start=start, end=max(start, ends[at])) for at, start in starts.items()}

    def _offsets(self, wanted: Sequence[TopicPartition], spec: OffsetSpec) -> dict[tuple[str, int], int]:
        """One offset of each partition. A partition whose leader is being elected is asked again for a while."""
        deadline = time.monotonic() + ELECTION_S
        while True:
            try:
                return self._ask(wanted, spec)
            except KafkaException as error:
                if error.args[0].code() not in _ELECTING:
                    raise
                self._require(wanted)
                if time.monotonic() > deadline:
                    raise
            time.sleep(ELECTION_PAUSE_S)

    def _ask(self, wanted: Sequence[TopicPartition], spec: OffsetSpec) -> dict[tuple[str, int], int]:
        futures = self._admin.list_offsets(
            dict.fromkeys(wanted, spec), isolation_level=self._isolation, request_timeout=ADMIN_TIMEOUT_S
        )
        return {
            (at.topic, at.partition): answered_offset(future.result(timeout=2 * ADMIN_TIMEOUT_S))
            for at, future in futures.items()
        }

    def _require(self, wanted: Sequence[TopicPartition]) -> None:
        """Raises LogTopicError when one of them does not exist at all."""
        there = self._admin.list_topics(timeout=ADMIN_TIMEOUT_S).topics
        for at in wanted:
            topic = there.get(at.topic)
            if topic is None or at.partition >= len(topic.partitions):
                raise LogTopicError(
                    f"{at.topic} partition {at.partition} does not exist: check MAINSPRING_TOPICS__PREFIX and "
                    "…__PARTITIONS, and `mainspring topics plan`"
                )

    def at_time(self, topic: Topic, time_ms: int) -> dict[int, int | None]:
        """By partition, the first offset whose record is not older than the time; None when there is none."""
        wanted = [TopicPartition(topic.name, partition) for partition in range(topic.partitions)]
        found = self._offsets(wanted, OffsetSpec.for_timestamp(time_ms))
        return {partition: offset if offset >= 0 else None for (_, partition), offset in found.items()}

    def read(self, topic: Topic, partition: int, span: Span) -> Iterator[Sequence[Raw]]:
        """The records of the span, in batches. Raises LogRangeError, LogStalledError and LogTopicError."""
        if span.offsets == 0:
            return
        consumer, end = self._consumer, span.end
        consumer.assign([TopicPartition(topic.name, partition, span.start)])
        progress_at = time.monotonic()
        try:
            done = False
            while not done:
                # poll, then what is there: consume with a time-out would wait for a full batch at each end.
                first = consumer.poll(POLL_S)
                batch: list[Raw] = []
                for message in (first, *consumer.consume(BATCH, 0)) if first is not None else ():
                    error = message.error()
                    if error is not None:
                        done = done or self._ends(error, message, topic, partition, end)
                    elif message.topic() == topic.name and message.partition() == partition:
                        raw = self._raw(message)
                        if raw.offset >= end:
                            done = True
                            break
                        batch.append(raw)
                        done = raw.offset == end - 1
                if batch:
                    progress_at = time.monotonic()
                    yield batch
                    progress_at = time.monotonic()
                elif time.monotonic() - progress_at > STALL_S:
                    raise LogStalledError(
                        f"{topic.name} partition {partition}: nothing came for {STALL_S:.0f} s "
                        f"although offset {end - 1} is there; "
                        "see whether its leader is up and whether a transaction hangs"
                    )
        finally:
            consumer.unassign()

    def follow(
        self, starts: Mapping[tuple[str, int], int], stopped: Callable[[], bool]
    ) -> Iterator[tuple[str, int, Raw]]:
        """Records from these offsets on, as they come, with their topic and partition, until `stopped()`."""
        consumer = self._consumer
        consumer.assign([TopicPartition(topic, partition, offset) for (topic, partition), offset in starts.items()])
        try:
            while not stopped():
                message = consumer.poll(POLL_S / 5)
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    yield str(message.topic()), int(message.partition() or 0), self._raw(message)
                elif error.code() != KafkaError._PARTITION_EOF and (error.fatal() or error.code() not in _PASSING):
                    raise KafkaException(error)
        finally:
            consumer.unassign()

    def _ends(self, error: KafkaError, message: Message, topic: Topic, partition: int, end: int) -> bool:
        """Whether this is the end of the span; raises what is no end."""
        code = error.code()
        where = (message.topic(), message.partition())
        if code == KafkaError._PARTITION_EOF:
            return where == (topic.name, partition) and int(message.offset() or 0) >= end
        if code == KafkaError._AUTO_OFFSET_RESET:
            raise LogRangeError(
                f"{topic.name} partition {partition}: records left the log while it was read ({error.str()}); "
                "start again"
            )
        if code in _GONE:
            raise LogTopicError(f"{topic.name} partition {partition} is gone: {error.str()}")
        if error.fatal() or (not error.retriable() and code not in _PASSING):
            raise KafkaException(error)
        return False

    def _raw(self, message: Message) -> Raw:
        # The client's stubs allow None where a record that carries no error has none.
        any_message: Any = message
        return Raw(
            any_message.offset(),
            any_message.timestamp()[1],
            any_message.key(),
            any_message.value(),
            tuple(any_message.headers() or ()) if self._headers else (),
        )


_PASSING = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._RESOLVE})
