"""What a case of the conformance suite asks of a cluster, whether it is simulated or real."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from mainspring.processors.engine.errors import TransactionError
from mainspring.processors.engine.kafka import ClientOptions, ConfluentKafka
from mainspring.processors.engine.ports import Admin, ChangelogReader, Inputs, Kafka, Output, Pending, Place
from mainspring.topics import Connection
from tests.engine.leave import evict
from tests.sim.kafka import ClientSettings, SimBroker, SimKafka
from tests.sim.process import Process
from tests.sim.world import SECOND, Future, World
from tests.support.topics import await_leaders

__all__ = ["PARTITIONS", "Case", "Cluster", "Member", "RealCluster", "Rows", "SimCluster", "Topics"]

PARTITIONS = 2
PATIENCE_S = 90.0
_NOT_IN_TIME = ("_TIMED_OUT", "REQUEST_TIMED_OUT")

T = TypeVar("T")


class Topics:
    """The topics of a case."""

    def __init__(self, prefix: str) -> None:
        self.commands = f"{prefix}commands"
        self.followups = f"{prefix}followups"
        self.attempts = f"{prefix}attempts"
        self.changelog = f"{prefix}changelog"
        self.group = f"{prefix}group"
        self.id = f"{prefix}txn."

    @property
    def inputs(self) -> tuple[str, str, str]:
        """In the order in which they are decided."""
        return (self.followups, self.attempts, self.commands)

    @property
    def all(self) -> tuple[str, ...]:
        """Every topic."""
        return (*self.inputs, self.changelog)


class Cluster(Protocol):
    """A cluster with the topics of one case, and a way to let time pass."""

    topics: Topics

    def kafka(self, *, transaction_timeout_ms: int = 60_000, session_timeout_ms: int = 3_000) -> Kafka: ...
    def write(self, place: Place, values: Sequence[bytes]) -> None:
        """Writes records outside of any transaction."""
        ...

    def delete_before(self, place: Place, offset: int) -> None: ...
    def evict_all(self) -> None:
        """Drops all members of the group without telling them."""
        ...

    def until(self, condition: Callable[[], Any], what: str = "") -> None:
        """Lets time pass until a condition holds."""
        ...

    def wait(self, seconds: float) -> None:
        """Lets time pass, where something must not happen."""
        ...


class RealCluster:
    """The real broker that the tests share."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.topics = Topics(prefix)
        self._bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        for made in self._admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in self.topics.all]).values():
            made.result()
        await_leaders(self._admin, self.topics.all)

    def kafka(self, *, transaction_timeout_ms: int = 60_000, session_timeout_ms: int = 3_000) -> Kafka:
        options = ClientOptions(
            group=self.topics.group,
            changelog=self.topics.changelog,
            client_id="conformance",
            session_timeout_ms=session_timeout_ms,
            transaction_timeout_ms=transaction_timeout_ms,
        )
        return ConfluentKafka(Connection(self._bootstrap), options)

    def write(self, place: Place, values: Sequence[bytes]) -> None:
        for value in values:
            self._producer.produce(place[0], value, b"key", place[1])
        assert self._producer.flush(PATIENCE_S) == 0

    def delete_before(self, place: Place, offset: int) -> None:
        for done in self._admin.delete_records([TopicPartition(*place, offset)]).values():
            done.result(PATIENCE_S)

    def evict_all(self) -> None:
        evict(self._bootstrap, self.topics.group)

    def until(self, condition: Callable[[], Any], what: str = "") -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline_s, f"{what or condition} did not come about"
            time.sleep(0.002)

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


class _Driver(Process):
    """The process of a case: where its body would give way, it lets the world go on itself."""

    def sleep(self, delay: int) -> None:
        self.world.run(self.world.now + delay)

    def wait(self, future: "Future[Any]", timeout: int) -> bool:
        self.world.run_while(lambda: not future.is_done, self.world.now + timeout)
        return future.is_done


class SimCluster:
    """The simulated cluster."""

    def __init__(self, seed: int) -> None:
        self.topics = Topics("sim.")
        self.world = World(seed)
        self.broker = SimBroker(self.world)
        self._process = _Driver(self.world, "case")
        for name in self.topics.all:
            self.broker.create_topic(name, PARTITIONS)

    def kafka(self, *, transaction_timeout_ms: int = 60_000, session_timeout_ms: int = 3_000) -> Kafka:
        settings = ClientSettings(
            group=self.topics.group,
            changelog=self.topics.changelog,
            session_timeout_ms=session_timeout_ms,
            transaction_timeout_ms=transaction_timeout_ms,
        )
        return SimKafka(self._process, self.broker, settings)

    def write(self, place: Place, values: Sequence[bytes]) -> None:
        self.broker.log(place).append([(b"key", value) for value in values])

    def delete_before(self, place: Place, offset: int) -> None:
        self.broker.log(place).delete_before(offset)

    def evict_all(self) -> None:
        self.broker.groups.get(self.topics.group).evict()

    def until(self, condition: Callable[[], Any], what: str = "") -> None:
        deadline = self.world.now + round(PATIENCE_S * SECOND)
        while not condition():
            assert self.world.now < deadline, f"{what or condition} did not come about\n{self.world.tail()}"
            self._process.sleep(2_000)

    def wait(self, seconds: float) -> None:
        self._process.sleep(round(seconds * SECOND))


class Member:
    """A consumer in the group, with what it was told and what it has read."""

    def __init__(self, cluster: Cluster, kafka: Kafka) -> None:
        self.owned: set[int] = set()
        self.told: list[tuple[str, list[int]]] = []
        self.values: list[tuple[str, int, int, bytes]] = []
        """Topic, partition, offset and value of each record."""
        self.ends: list[tuple[Place, int]] = []
        self.topics = cluster.topics
        self.inputs: Inputs = kafka.inputs()
        self.is_closed = False
        self.inputs.subscribe(cluster.topics.commands, self)

    def on_assigned(self, partitions: Sequence[int]) -> None:
        self._tell("assigned", partitions)
        self.inputs.add(self._places(partitions))
        self.owned |= set(partitions)

    def on_revoked(self, partitions: Sequence[int]) -> None:
        self._tell("revoked", partitions)
        self._give_up(partitions)

    def on_lost(self, partitions: Sequence[int]) -> None:
        self._tell("lost", partitions)
        self._give_up(partitions)

    def read(self, max_records: int = 100, wait_ms: int = 20) -> "Member":
        """Serves callbacks and reads."""
        result = self.inputs.read(max_records, wait_ms)
        for record in result.records:
            self.values.append((record.topic(), record.partition(), record.offset(), record.value() or b""))
        self.ends += result.ends
        return self

    def close(self) -> None:
        """Leaves."""
        if not self.is_closed:
            self.is_closed = True
            self.inputs.close()

    def _tell(self, what: str, partitions: Sequence[int]) -> None:
        if partitions:
            self.told.append((what, sorted(partitions)))

    def _give_up(self, partitions: Sequence[int]) -> None:
        self.inputs.remove(self._places(partitions))
        self.owned -= set(partitions)

    def _places(self, partitions: Sequence[int]) -> list[Place]:
        return [(topic, number) for number in partitions for topic in self.topics.inputs]


class Case:
    """What a case works with; everything is closed at its end."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.topics = cluster.topics
        self.changelog: Place = (cluster.topics.changelog, 0)
        self.commands: Place = (cluster.topics.commands, 0)
        self._members: list[Member] = []
        self._outputs: list[Output] = []
        self._readers: list[ChangelogReader] = []
        self._ask: Admin | None = None

    def share(self, *members: Member) -> None:
        """Reads with all members until every one has a partition, and no two the same."""

        def shared() -> bool:
            owned = [number for member in members for number in member.read().owned]
            return all(member.owned for member in members) and sorted(owned) == list(range(PARTITIONS))

        self.cluster.until(shared, "each having a partition")

    def member(self, **options: int) -> Member:
        """A new member of the group."""
        member = Member(self.cluster, self.cluster.kafka(**options))
        self._members.append(member)
        return member

    def owner(self) -> Member:
        """The only member of the group, with everything assigned."""
        member = self.member()
        self.cluster.until(lambda: len(member.read().owned) == PARTITIONS, "the assignment")
        return member

    def output(self, name: str = "a", **options: int) -> Output:
        """A producer, ready to begin."""
        output = self.cluster.kafka(**options).output(self.topics.id + name)
        self._outputs.append(output)
        return output

    def reader(self, offset: int = 0, partition: int = 0) -> "Rows":
        """A reader of committed rows."""
        reader = self.cluster.kafka().changelog()
        reader.add(partition, offset)
        self._readers.append(reader)
        return Rows(reader)

    @property
    def admin(self) -> Admin:
        """Questions to the cluster."""
        if self._ask is None:
            self._ask = self.cluster.kafka().admin()
        return self._ask

    def answer(self, ask: Callable[[], Pending[T]]) -> T:
        """An answer, waited for; asked for again where a busy broker had no time for it, as a takeover does."""
        ends_s = time.monotonic() + PATIENCE_S
        while True:
            pending = ask()
            self.cluster.until(pending.done, "an answer")
            try:
                return pending.result()
            except TransactionError as error:
                if error.code not in _NOT_IN_TIME or time.monotonic() > ends_s:
                    raise

    def end(self, place: Place) -> int:
        """The end of a place, records of open transactions included."""
        return int(self.answer(lambda: self.admin.ends([place]))[place])

    def put(self, output: Output, *values: bytes, place: Place | None = None) -> None:
        """Writes rows in the open transaction and has them acknowledged."""
        topic, partition = place or self.changelog
        for value in values:
            output.produce(topic, value, b"key", partition)
        output.flush()

    def transact(self, output: Output, *values: bytes, place: Place | None = None) -> None:
        """A whole transaction."""
        output.begin()
        self.transact_rest(output, *values, place=place)

    def transact_rest(self, output: Output, *values: bytes, place: Place | None = None) -> None:
        """The rest of a transaction that has begun."""
        self.put(output, *values, place=place)
        output.commit()

    def close(self) -> None:
        """Lets everything go."""
        for member in self._members:
            member.close()
        for reader in self._readers:
            reader.close()
        for output in self._outputs:
            output.close()


class Rows:
    """A reader of the changelog, and what it has read."""

    def __init__(self, reader: ChangelogReader) -> None:
        self.reader = reader
        self.values: list[bytes] = []
        self.offsets: list[int] = []
        self.ends: list[int] = []

    def read(self) -> "Rows":
        """Reads what is there."""
        result = self.reader.read(100, 20)
        self.values += [record.value() or b"" for record in result.records]
        self.offsets += [record.offset() for record in result.records]
        self.ends += [offset for _, offset in result.ends]
        return self
