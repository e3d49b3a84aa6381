"""What the tests of the engine share: topics of one's own, engines that are stepped, and logs that are read back."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from mainspring.processors.core import LAYOUT, Rules
from mainspring.processors.engine.loop import Engine
from mainspring.processors.engine.ports import Clock, Kafka
from mainspring.processors.scheduler import Scheduler, SchedulerConfig
from mainspring.schemas import Codec, JobSpec, Record, SubmitJob
from mainspring.topics import Connection, Topic, Topology
from tests.support import topics
from tests.support.waiting import eventually

CODEC = Codec.embedded()
PATIENCE_S = 90.0


class SettableClock:
    """The machine's clocks, and a wall clock that can be set."""

    def __init__(self, ahead_ms: int = 0) -> None:
        self.ahead_ms = ahead_ms

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead_ms

    def mono_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def pause(self, delay_ms: int) -> None:
        time.sleep(delay_ms / 1_000)


@dataclass(slots=True)
class Installation:
    """One set of topics on the shared broker, and what runs on it in this process."""

    connection: Connection
    topology: Topology
    engines: list[Engine] = field(default_factory=list)
    helpers: list[Any] = field(default_factory=list)
    _admin: AdminClient | None = None
    _producer: Producer | None = None
    _tail: Consumer | None = None
    _tailed: list[Any] = field(default_factory=list)

    def config(self, **changes: Any) -> SchedulerConfig:
        """A scheduler's configuration with short times."""
        given: dict[str, Any] = {
            "connection": self.connection,
            "topology": self.topology,
            "codec": CODEC,
            "rules": Rules(partitions=self.topology.partitions),
            "session_timeout_ms": 2_000,
            "linger_ms": 5,
        }
        return SchedulerConfig(**(given | changes))

    def engine(
        self,
        slot: str = "a",
        *,
        kafka: Callable[[str], Kafka] | None = None,
        clock: Clock | None = None,
        **changes: Any,
    ) -> Engine:
        """A scheduler's engine, to be stepped by the test."""
        engine = Scheduler(self.config(**changes), kafka=kafka, clock=clock).build(slot)
        self.engines.append(engine)
        return engine

    def drop(self, engine: Engine) -> None:
        """Stops an engine in good order."""
        self.engines.remove(engine)
        engine.close()

    def abandon(self, engine: Engine) -> None:
        """Never steps an engine again, and does not say goodbye for it."""
        self.engines.remove(engine)

    def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Steps everything round and round until the condition holds."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline_s:
                raise AssertionError(f"{what or condition} did not come about within {PATIENCE_S} s: {self.describe()}")
            for engine in list(self.engines):
                engine.step(5)
            for helper in self.helpers:
                helper.step(0.002)

    def ready(self, count: int | None = None) -> None:
        """Steps until every partition decides, spread over all engines."""
        wanted = self.topology.partitions if count is None else count

        def all_ready() -> bool:
            each = [engine.status() for engine in self.engines]
            return (
                sum(len(status.ready) for status in each) == wanted
                and not any(status.restoring for status in each)
                and all(status.ready for status in each)
            )

        self.until(all_ready, "readiness")

    def describe(self) -> str:
        return "; ".join(str(engine.status()) for engine in self.engines)

    def submit(self, job_ids: Iterable[str], **fields: Any) -> None:
        """Submits jobs and returns when the commands are in the log."""
        for job_id in job_ids:
            self.produce(self.topology.commands, job_id.encode(), submit(job_id, **fields))
        self.flush()

    def produce(self, topic: Topic, key: bytes | None, record: Record | bytes | None, partition: int = -1) -> None:
        """Produces one record, encoded unless it is bytes already."""
        if self._producer is None:
            self._producer = Producer(self.connection.producer_config(**{"linger.ms": 1}))
        value = record if isinstance(record, bytes) or record is None else CODEC.encode(record)
        self._producer.produce(topic.name, value, key, partition)

    def flush(self) -> None:
        if self._producer is not None:
            self._producer.flush()

    def messages(self, topic: Topic, *, committed: bool = True) -> list[Any]:
        """Everything on a topic, each partition in its order."""
        return read_all(self.connection, topic, committed=committed)

    def records(self, topic: Topic) -> list[Any]:
        """Everything on a topic, decoded."""
        return [CODEC.decode(message.value()) for message in self.messages(topic)]

    def events(self, kind: type | None = None) -> list[Any]:
        """What has been decided and has come in so far, of one kind if given. Quick: for conditions to wait on."""
        if self._tail is None:
            own = {"group.id": "tail", "fetch.wait.max.ms": 10}
            self._tail = Consumer(self.connection.consumer_config(**own))
            topic = self.topology.events
            self._tail.assign([TopicPartition(topic.name, number, 0) for number in range(topic.partitions)])
        for message in self._tail.consume(10_000, 0.001):
            assert message.error() is None, message.error()
            self._tailed.append(CODEC.decode(message.value() or b""))
        return [event for event in self._tailed if kind is None or isinstance(event, kind)]

    def all_events(self) -> list[Any]:
        """Everything that has been decided, each partition in its order."""
        return self.records(self.topology.events)

    def life(self, job_id: str) -> list[str]:
        """The names of a job's events, in their order."""
        return [type(event).__name__ for event in self.all_events() if event.job_id == job_id]

    def rows(self) -> dict[tuple[int, bytes], bytes]:
        """The changelog, compacted: the newest row under each key."""
        rows: dict[tuple[int, bytes], bytes] = {}
        for message in self.messages(self.topology.scheduler_changelog):
            place = (message.partition(), message.key())
            if message.value() is None:
                rows.pop(place, None)
            else:
                rows[place] = message.value()
        return rows

    @property
    def admin(self) -> AdminClient:
        """Kept: the answers of a client that is gone never come."""
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.connection.bootstrap})
        return self._admin

    def make_again(self, name: str) -> None:
        """Deletes a topic and makes it again, with one partition. Nobody is stepped meanwhile."""
        self.admin.delete_topics([name])[name].result(10)

        def is_made() -> bool:
            # The name is free some time after it has been deleted.
            try:
                self.admin.create_topics([NewTopic(name, 1, 1)])[name].result(10)
            except KafkaException:
                return False
            return True

        eventually(is_made)

    def table_origin(self) -> str:
        """What the local tables are told apart by: the identity of the changelog topic, and the form of the index."""
        name = self.topology.scheduler_changelog.name
        return f"{self.admin.describe_topics(TopicCollection([name]))[name].result(10).topic_id}/{LAYOUT}"

    def close(self) -> None:
        for helper in self.helpers:
            helper.close()
        for engine in self.engines:
            engine.close()
        if self._tail is not None:
            self._tail.close()


@contextmanager
def installation(kafka: str, prefix: str, partitions: int = 2, **fields: Any) -> Iterator[Installation]:
    """Topics under a prefix, made for one test."""
    topology = Topology(prefix=prefix, partitions=partitions, work_partitions=2, **fields)
    make_topics(kafka, topology)
    made = Installation(Connection(kafka), topology)
    try:
        yield made
    finally:
        made.close()


def make_topics(kafka: str, topology: Topology) -> None:
    """All topics of an installation."""
    topics.make_topics(Connection(kafka), topology.all())


def submit(job_id: str, **fields: Any) -> SubmitJob:
    """A command to run a job."""
    spec = JobSpec(**({"job_id": job_id, "name": "noop"} | fields))
    return SubmitJob(command_id=f"command-{job_id}", actor="test", requested_at_ms=0, spec=spec)


def read_all(connection: Connection, topic: Topic, *, committed: bool = True) -> list[Any]:
    """Everything that is on a topic now."""
    isolation = "read_committed" if committed else "read_uncommitted"
    config = connection.consumer_config(
        **{"group.id": "reader", "enable.partition.eof": True, "isolation.level": isolation, "fetch.wait.max.ms": 10}
    )
    consumer = Consumer(config)
    consumer.assign([TopicPartition(topic.name, number, 0) for number in range(topic.partitions)])
    read: dict[int, list[Any]] = {number: [] for number in range(topic.partitions)}
    missing = set(read)
    deadline_s = time.monotonic() + PATIENCE_S
    while missing:
        assert time.monotonic() < deadline_s, f"{topic.name} could not be read to its end"
        for message in consumer.consume(1_000, 0.1):
            error = message.error()
            if error is None:
                read[message.partition() or 0].append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                missing.discard(message.partition() or 0)
    consumer.close()
    return [message for number in sorted(read) for message in read[number]]


def txns_are_whole(events: Sequence[Any]) -> bool:
    """Whether every transaction that shows at all shows all of its events."""
    seen: dict[int, set[int]] = {}
    sizes: dict[int, int] = {}
    for event in events:
        seen.setdefault(event.txn.id, set()).add(event.txn.index)
        sizes[event.txn.id] = event.txn.size
    return all(seen[txn] == set(range(size)) for txn, size in sizes.items())
