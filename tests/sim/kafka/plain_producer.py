"""The client library's producer as a worker uses it, without transactions, on the simulated cluster."""

from collections import deque
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError

from mainspring.processors.engine.ports import Place
from tests.sim.kafka.broker import Link, SimBroker
from tests.sim.kafka.errors import BrokerError
from tests.sim.process import Process
from tests.sim.world import FOR_EVER, SECOND, Future

__all__ = ["SimProducer"]

_Told = Callable[[Any, Any], None]


class _Delivered:
    """What the callback of a record is told of it."""

    def __init__(self, topic: str, key: bytes, value: bytes, latency: int) -> None:
        self._topic = topic
        self._key = key
        self._value = value
        self._latency = latency

    def topic(self) -> str:
        return self._topic

    def key(self) -> bytes:
        return self._key

    def value(self) -> bytes:
        return self._value

    def latency(self) -> float:
        return self._latency / SECOND


class SimProducer:
    """Writes records, and calls back from `poll`.

    `in_order`: as an idempotent producer does in each partition; `expiry`: what has not arrived by then is given up;
    `twice`: the chance that a record is written a second time.
    """

    def __init__(
        self,
        process: Process,
        broker: SimBroker,
        *,
        in_order: bool = True,
        expiry: int = FOR_EVER,
        twice: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._process = process
        self._world = process.world
        self._broker = broker
        self._in_order = in_order
        self._expiry = expiry
        self._twice = twice
        self._links: dict[Place, Link] = {}
        self._on_their_way = 0
        self._landed: Future[None] = Future()
        self._told: deque[tuple[_Told, KafkaError | None, _Delivered]] = deque()

    def produce(
        self, topic: str, value: bytes, key: bytes, *, on_delivery: _Told, partition: int | None = None
    ) -> None:
        """Queues a record."""
        place = (topic, self._broker.home(topic, key) if partition is None else partition)
        log, world, sent = self._broker.log(place), self._world, self._world.now
        is_twice = world.rng.random() < self._twice()

        def append() -> int:
            if world.now > sent + self._expiry:
                raise BrokerError("_MSG_TIMED_OUT")
            if is_twice:
                world.saw("heartbeat written twice")
            return log.append([(key, value)] * (1 + is_twice))

        def answered(done: Future[int]) -> None:
            self._on_their_way -= 1
            error = None
            try:
                done.result()
            except BrokerError:
                error = KafkaError(KafkaError._MSG_TIMED_OUT)
            self._told.append((on_delivery, error, _Delivered(topic, key, value, world.now - sent)))
            if not self._on_their_way and not self._landed.is_done:
                self._landed.set(None)

        self._on_their_way += 1
        self._link(place).call(append).then(answered)

    def poll(self, _timeout_s: float) -> int:
        """Serves callbacks."""
        served = 0
        while self._told:
            told, error, record = self._told.popleft()
            told(error, record)
            served += 1
        return served

    def flush(self, timeout_s: float) -> int:
        """Waits for what is queued."""
        if self._on_their_way:
            self._landed = Future()
            self._process.wait(self._landed, round(timeout_s * SECOND))
        self.poll(0)
        return len(self)

    def purge(self) -> None:
        """Nothing of it is left in a queue: it is on its way at once."""

    def __len__(self) -> int:
        return self._on_their_way

    def _link(self, place: Place) -> Link:
        if not self._in_order:
            return Link(self._process, self._broker)
        link = self._links.get(place)
        if link is None:
            link = self._links[place] = Link(self._process, self._broker)
        return link
