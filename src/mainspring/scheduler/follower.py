"""Follows all of `events` for one facade."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TypeAlias, cast

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from mainspring.client.steps import fulfil
from mainspring.client.tail import Decoder
from mainspring.schemas import Event

__all__ = ["EventFollower", "Followed"]

Followed: TypeAlias = tuple[Event, int]
"""An event and its partition."""

POLL_S = 0.2
BATCH = 2_000

_log = structlog.get_logger(__name__)


class EventFollower:
    """Reads every partition from given offsets on, in a thread, and hands the events over in batches.

    `deliver` is called in that thread and may block: the next batch is read when it returns.
    """

    def __init__(
        self,
        make_consumer: Callable[[], Consumer],
        topic: str,
        decode: Decoder,
        deliver: Callable[[list[Followed]], None],
    ) -> None:
        self._make_consumer = make_consumer
        self._topic = topic
        self._decode = decode
        self._deliver = deliver
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._position: dict[int, int] = {}
        self._barriers: list[tuple[int, int, Future[None]]] = []
        self._thread = threading.Thread(target=self._run, name="mainspring-follower", daemon=True)

    def start(self, offsets: Mapping[int, int]) -> None:
        """Begin at these offsets, one for each partition."""
        self._position = dict(offsets)
        self._thread.start()

    def reach(self, partition: int, offset: int) -> Future[None]:
        """Done when everything committed below `offset` has been delivered."""
        future: Future[None] = Future()
        with self._lock:
            self._barriers.append((partition, offset, future))
        self._release()
        return future

    def stop(self) -> None:
        """End the thread; what waits to be reached is cancelled."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._lock:
            barriers, self._barriers = self._barriers, []
        for *_, future in barriers:
            future.cancel()

    def _run(self) -> None:
        consumer = self._make_consumer()
        try:
            consumer.assign([TopicPartition(self._topic, partition, at) for partition, at in self._position.items()])
            while not self._stop.is_set():
                self._turn(consumer)
        finally:
            consumer.close()

    def _turn(self, consumer: Consumer) -> None:
        try:
            first = consumer.poll(POLL_S)
            messages = [] if first is None else [first, *consumer.consume(BATCH, 0)]
        except KafkaException as error:
            _log.warning("events could not be read, trying again", why=str(error))
            self._stop.wait(POLL_S)
            return
        batch: list[Followed] = []
        reached: dict[int, int] = {}
        for message in messages:
            partition, trouble = cast(int, message.partition()), message.error()
            if trouble is None:
                reached[partition] = cast(int, message.offset()) + 1
                event = self._decode(cast(bytes, message.value()))
                if event is not None:
                    batch.append((event, partition))
            elif trouble.code() == KafkaError._PARTITION_EOF:
                reached[partition] = cast(int, message.offset())
            elif not trouble.retriable():
                _log.warning("events could not be read", why=trouble.str(), partition=partition)
        if batch:
            self._deliver(batch)
        with self._lock:
            for partition, offset in reached.items():
                self._position[partition] = max(offset, self._position.get(partition, 0))
        self._release()

    def _release(self) -> None:
        with self._lock:
            done = [barrier for barrier in self._barriers if self._position.get(barrier[0], 0) >= barrier[1]]
            self._barriers = [barrier for barrier in self._barriers if barrier not in done]
        for *_, future in done:
            fulfil(future, None)
