"""The client library's consumer as a worker uses it, on the simulated cluster: in a group, or of one partition."""

from collections import deque
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from mainspring.processors.engine.ports import Mark, Place, Received
from tests.sim.kafka.broker import Link, SimBroker
from tests.sim.kafka.fetcher import Fetcher
from tests.sim.kafka.membership import Membership
from tests.sim.process import Process
from tests.sim.rest import Rest
from tests.sim.world import SECOND, Future

__all__ = ["SimGroupConsumer"]

T = TypeVar("T")
_Told = Callable[[Any, list[TopicPartition]], None]

_REBALANCE_MS = 300_000


class SimGroupConsumer:
    """Made from options of librdkafka; only those are minded that a worker sets."""

    def __init__(self, process: Process, broker: SimBroker, options: dict[str, Any], rest: Rest) -> None:
        self._process = process
        self._world = process.world
        self._broker = broker
        self._options = options
        self._rest = rest
        self._committed = options["isolation.level"] == "read_committed"
        self._fetcher = Fetcher(process, broker, on_ring=rest.ring)
        self._link = Link(process, broker)
        self._read: deque[Received] = deque()
        self._stored: dict[Place, int] = {}
        self._will_commit = False
        self._membership: Membership | None = None

    # In a group.

    def subscribe(self, topics: Sequence[str], *, on_assign: _Told, on_revoke: _Told, on_lost: _Told) -> None:
        self._on_assign, self._on_revoke, self._on_lost = on_assign, on_revoke, on_lost
        self._membership = Membership(
            self._process,
            self._broker,
            self._options["group.id"],
            tuple(topics),
            session_ms=self._options["session.timeout.ms"],
            heartbeat_ms=self._options["heartbeat.interval.ms"],
            rebalance_ms=_REBALANCE_MS,
            ask=self._fetcher.ask,
            application=self,
        )

    def unsubscribe(self) -> None:
        """Commits what was stored and leaves; the application hears of it inside its next read, as always."""
        membership, self._membership = self._membership, None
        if membership is None:
            return
        owned = sorted(self._fetcher.owned)
        self._commit(membership)
        membership.leave()
        for place in owned:
            self._fetcher.remove(place)
        self._fetcher.ask(lambda: self._on_revoke(self, [TopicPartition(*place) for place in owned]))

    def store_offsets(self, *, offsets: Sequence[TopicPartition]) -> None:
        """Kept, and committed by the client library's own thread before long."""
        for each in offsets:
            place = (each.topic, each.partition)
            assert place in self._fetcher.owned, "the client library refuses offsets of what is not assigned"
            self._stored[place] = each.offset
        if not self._will_commit:
            self._will_commit = True
            delay = self._options["auto.commit.interval.ms"] * 1000
            self._world.after(delay, lambda: self._process.background(self._commit_now))

    def gained(self, places: frozenset[Place]) -> None:
        for place in sorted(places):
            self._fetcher.add(place, 0, active=False, committed=self._committed)
        wanted = sorted(places)
        group = self._broker.groups.get(self._options["group.id"])
        self._link.call(lambda: group.fetch(wanted, stable=False)).then(self._positioned)
        self._on_assign(self, [TopicPartition(*place) for place in wanted])

    def gone(self, places: frozenset[Place], *, lost: bool) -> None:
        if not lost and self._membership is not None:
            self._commit(self._membership)
        for place in sorted(places):
            self._stored.pop(place, None)
            self._fetcher.remove(place)
        (self._on_lost if lost else self._on_revoke)(self, [TopicPartition(*place) for place in sorted(places)])

    def _positioned(self, done: "Future[dict[Place, Mark | None]]") -> None:
        for place, mark in done.result().items():
            if place in self._fetcher.owned:
                self._fetcher.seek(place, 0 if mark is None else mark.offset)

    def _commit_now(self) -> None:
        self._will_commit = False
        if self._membership is not None:
            self._commit(self._membership)

    def _commit(self, membership: Membership) -> None:
        marks = {place: Mark(offset=offset) for place, offset in self._stored.items()}
        self._stored = {}
        if marks:
            token = membership.token()
            group = self._broker.groups.get(token.group)
            self._link.call(lambda: group.commit(marks, token.member_id, token.generation))

    # One partition.

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        for each in partitions:
            self._fetcher.add((each.topic, each.partition), each.offset, active=True, committed=self._committed)

    def list_topics(self, name: str, *, timeout: float) -> SimpleNamespace:
        count = self._answer(lambda: len(self._broker.logs(name)), timeout)
        return SimpleNamespace(topics={name: SimpleNamespace(error=None, partitions=range(count))})

    def get_watermark_offsets(self, partition: TopicPartition, *, timeout: float) -> tuple[int, int]:
        log = self._broker.log((partition.topic, partition.partition))
        return self._answer(lambda: (log.start, log.end), timeout)

    def _answer(self, ask: Callable[[], T], timeout_s: float) -> T:
        answer = self._link.call(ask)
        if not self._process.wait(answer, round(timeout_s * SECOND)):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return answer.result()

    # Reading.

    def poll(self, wait_s: float) -> Received | None:
        """The next record, and callbacks; where there is none, and the program would wait, it rests."""
        found = self._take(1)
        if not found and wait_s > 0:
            self._rest.take(wait_s)
            found = self._take(1)
        return found[0] if found else None

    def consume(self, count: int, _wait_s: float) -> list[Received]:
        return self._take(count)

    def close(self) -> None:
        self.unsubscribe()

    def _take(self, count: int) -> list[Received]:
        return list(self._fetcher.read(count, 0).records) if self._fetcher.has_news else []
