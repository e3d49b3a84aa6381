"""One reader of `events` per client: it tells each waiter of its job's events as they are committed.

A thread reads the partitions of the jobs that are waited for, and only while someone waits; then it goes. Each
partition is read forwards only, from the offset that the earliest waiter needs (an end asked for before its command was
sent), so its cost does not grow with the number of waiters: a record is looked up by its key, and decoded only if a
handle is alive.
What a handle needs from before that point is read apart, by `scan`, so that no one else waits for it.
"""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, Protocol, cast
from weakref import WeakSet

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from mainspring.client.errors import ClientClosedError, EventsUnavailableError
from mainspring.client.progress import Terminal, Verdict
from mainspring.client.steps import fail, fulfil
from mainspring.client.watch import Resolution, Start, Watch
from mainspring.client.watches import Watches
from mainspring.schemas.records import Event

__all__ = ["Decoder", "EventTail"]

# A partition goes on being read this long after its last waiter: the usual caller waits again.
LINGER_S = 5.0
# Records that a starting partition may read before what was asked for, for handles that will be waited for next.
LOOK_BACK = 20_000
BATCH = 2_000
# The thread wakes at least this often, to notice that nobody waits any more.
WAKE_S = 0.2
CHECK_S = 1.0


class Decoder(Protocol):
    """Reads a record of `events`."""

    def __call__(self, data: bytes) -> Event | None:
        """The event; None for one of a kind that this version does not know."""
        ...


class _Reading:
    """One partition that is being read: [`start`, `position`) has been told to every watch that joined."""

    __slots__ = ("barriers", "idle_since", "position", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.position = start
        self.idle_since: float | None = None
        self.barriers: list[tuple[int, Future[None]]] = []


class EventTail:
    """Tells watches of the events of their jobs. Every method may be called from any thread."""

    def __init__(self, make_consumer: Callable[[], Consumer], topic: str, decode: Decoder) -> None:
        self._make_consumer = make_consumer
        self._topic = topic
        self._decode = decode
        self._lock = threading.Lock()
        self._consumer: Consumer | None = None
        self._thread: threading.Thread | None = None
        self._reading: dict[int, _Reading] = {}
        self._waited: dict[int, WeakSet[Watch]] = {}
        self._watches: dict[int, Watches] = {}
        self._twins: dict[bytes, WeakSet[Watch]] = {}
        self._closed = False

    @property
    def running(self) -> bool:
        """Whether the reading thread lives."""
        with self._lock:
            return self._thread is not None

    def register(self, watch: Watch, *, fresh: bool) -> None:
        """Make a watch known. `fresh`: its command is not sent yet, so nothing before now concerns it."""
        with self._lock:
            known = self._watches.get(watch.partition)
            if known is None:
                known = self._watches[watch.partition] = Watches()
            if not known.add(watch):
                self._twins.setdefault(watch.key, WeakSet()).add(watch)
            reading = self._reading.get(watch.partition)
            if fresh and reading is not None:
                # What it waits for lies beyond its own start and beyond what has been read.
                watch.joined = True

    def wait_verdict(self, watch: Watch) -> Future[Verdict]:
        """The answer to the watch's command, for which the watch must also `join`."""
        with self._lock:
            self._await(watch)
            return watch.wait_verdict()

    def wait_end(self, watch: Watch) -> Future[Terminal | None]:
        """The end of the job (None: its submit was refused), for which the watch must also `join`."""
        with self._lock:
            self._await(watch)
            return watch.wait_end()

    def join(self, watch: Watch) -> bool:
        """Have the watch told of everything from its start on.

        False: it will be. True: something from before must be scanned and given to `absorb` first; meanwhile what comes
        is kept for it. Call it after asking for the future: a partition that is waited for is not let go.
        """
        with self._lock:
            if self._closed:
                raise ClientClosedError
            if watch.joined or watch.ended:
                return False
            reading = self._reading.get(watch.partition)
            offset = watch.start.offset
            if reading is None and offset is not None:
                self._open(watch.partition, offset)
                watch.joined = True
            elif reading is not None and offset is not None and offset >= reading.position:
                watch.joined = True
            elif reading is not None and watch.kept is None:
                watch.kept = []
            return not watch.joined

    def absorb(self, watch: Watch, events: Iterable[tuple[Event, int]], end: int) -> None:
        """Give a watch what a scan up to `end` has found, then what came meanwhile."""
        resolutions: list[Resolution] = []
        with self._lock:
            for event, offset in (*events, *(watch.kept or ())):
                resolutions.extend(watch.see(event, offset))
            if watch.kept is not None:
                watch.joined, watch.kept = True, None
            elif not watch.joined:
                watch.start = Start(offset=max(end, watch.start.offset or 0))
        for resolve in resolutions:
            resolve()

    def adopt(self, watch: Watch, start: Start) -> None:
        """Let a refused watch follow the earlier job of its id instead, from `start` on. Once is enough."""
        with self._lock:
            if watch.command_id is not None:
                watch.follow_another(start)

    def reach(self, watch: Watch, offset: int) -> Future[None] | None:
        """Done when the watch was told of everything committed below `offset`; None: it must `join` again."""
        with self._lock:
            reading = self._reading.get(watch.partition)
            if not watch.ended and (reading is None or not watch.joined):
                return None
            future: Future[None] = Future()
            if reading is None or watch.ended or reading.position >= offset:
                fulfil(future, None)
            else:
                reading.barriers.append((offset, future))
            return future

    def close(self) -> None:
        """Stop reading; whoever still waits is told that the client is closed."""
        with self._lock:
            self._closed = True
            thread = self._thread
            resolutions = self._abandon(tuple(self._reading), ClientClosedError())
        for resolve in resolutions:
            resolve()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    # -- under the lock ----------------------------------------------------------------------------------------------

    def _await(self, watch: Watch) -> None:
        if self._closed:
            raise ClientClosedError
        self._waited.setdefault(watch.partition, WeakSet()).add(watch)
        if (reading := self._reading.get(watch.partition)) is not None:
            reading.idle_since = None

    def _open(self, partition: int, offset: int) -> None:
        known = self._watches[partition]
        others = [watch for watch in known.alive() if not watch.joined and watch.start.offset is not None]
        floor = max(offset - LOOK_BACK, 0)
        start = min((cast(int, watch.start.offset) for watch in others if _needs(watch, floor)), default=offset)
        start = min(start, offset)
        for watch in others:
            watch.joined = _needs(watch, start)
        if self._consumer is None:
            self._consumer = self._make_consumer()
        self._reading[partition] = _Reading(start)
        self._consumer.incremental_assign([TopicPartition(self._topic, partition, start)])
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="mainspring-events", daemon=True)
            self._thread.start()

    def _abandon(self, partitions: Iterable[int], error: BaseException | None) -> list[Resolution]:
        """Stop reading these; watches that joined need what comes after, should they be waited for again."""
        resolutions: list[Resolution] = []
        for partition in partitions:
            reading = self._reading.pop(partition)
            for watch in self._all(partition):
                if watch.joined:
                    watch.joined, watch.start = False, Start(offset=reading.position)
                watch.kept = None
                if error is not None:
                    resolutions.extend(watch.fail(error))
            resolutions.extend(_ended(barrier, error) for _, barrier in reading.barriers)
            self._waited.pop(partition, None)
        return resolutions

    def _all(self, partition: int) -> list[Watch]:
        known = self._watches.get(partition)
        return ([] if known is None else known.alive()) + [
            twin for twins in list(self._twins.values()) for twin in twins if twin.partition == partition
        ]

    # -- the thread --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        consumer = cast(Consumer, self._consumer)
        checked = time.monotonic()
        while True:
            batch: list[Message] = []
            try:
                first = consumer.poll(WAKE_S)
                if first is not None:
                    batch = [first, *consumer.consume(BATCH, 0)]
            except KafkaException as error:
                self._finish(self._lose_all(error))
            if batch:
                self._finish(self._take(batch))
            now = time.monotonic()
            if now - checked >= CHECK_S or not self._reading:
                checked = now
                if self._prune(consumer, now):
                    break
        consumer.close()

    @staticmethod
    def _finish(resolutions: list[Resolution]) -> None:
        for resolve in resolutions:
            resolve()

    def _take(self, batch: list[Message]) -> list[Resolution]:
        resolutions: list[Resolution] = []
        with self._lock:
            for message in batch:
                partition = message.partition()
                reading = self._reading.get(partition) if partition is not None else None
                error = message.error()
                if reading is None or partition is None:
                    continue
                if error is not None:
                    resolutions.extend(self._trouble(partition, message, error))
                    continue
                offset = cast(int, message.offset())
                key = message.key()
                watch = self._watches[partition].get(key) if key else None
                if watch is not None or self._twins:
                    resolutions.extend(self._tell(watch, message, offset))
                reading.position = offset + 1
                if reading.barriers:
                    resolutions.extend(_passed(reading))
        return resolutions

    def _tell(self, watch: Watch | None, message: Message, offset: int) -> list[Resolution]:
        if not self._twins:
            # Nearly always: one handle per job.
            if watch is None or not (watch.joined or watch.kept is not None):
                return []
            event = self._decode(cast(bytes, message.value()))
            return [] if event is None else watch.hear(event, offset)
        twins = self._twins.get(cast(bytes, message.key()), ())
        told = [one for one in (watch, *twins) if one is not None and (one.joined or one.kept is not None)]
        if not told:
            return []
        event = self._decode(cast(bytes, message.value()))
        if event is None:
            return []
        return [resolution for one in told for resolution in one.hear(event, offset)]

    def _trouble(self, partition: int, message: Message, error: KafkaError) -> list[Resolution]:
        reading = self._reading[partition]
        if error.code() == KafkaError._PARTITION_EOF:
            reading.position = max(reading.position, message.offset() or 0)
            return _passed(reading)
        if error.retriable():
            return []
        lost = self._abandon((partition,), EventsUnavailableError(f"{self._topic}[{partition}]", error.str()))
        cast(Consumer, self._consumer).incremental_unassign([TopicPartition(self._topic, partition)])
        return lost

    def _lose_all(self, error: KafkaException) -> list[Resolution]:
        with self._lock:
            partitions = tuple(self._reading)
            lost = self._abandon(partitions, EventsUnavailableError(self._topic, str(error)))
            cast(Consumer, self._consumer).unassign()
            return lost

    def _prune(self, consumer: Consumer, now: float) -> bool:
        """Let go of partitions that nobody has waited for in a while; True when the thread should end."""
        with self._lock:
            idle = [partition for partition in self._reading if self._is_idle(partition, now)]
            if idle:
                consumer.incremental_unassign([TopicPartition(self._topic, partition) for partition in idle])
                self._abandon(idle, None)
            self._twins = {key: twins for key, twins in self._twins.items() if twins}
            if self._reading:
                return False
            self._consumer = self._thread = None
            return True

    def _is_idle(self, partition: int, now: float) -> bool:
        reading = self._reading[partition]
        waited = self._waited.get(partition, WeakSet())
        for watch in list(waited):
            if not watch.waiting():
                waited.discard(watch)
        reading.barriers = [(offset, barrier) for offset, barrier in reading.barriers if not barrier.done()]
        if waited or reading.barriers:
            reading.idle_since = None
            return False
        if reading.idle_since is None:
            reading.idle_since = now
        return now - reading.idle_since >= LINGER_S


def _needs(watch: Watch, floor: int) -> bool:
    return watch.start.offset is not None and watch.start.offset >= floor


def _passed(reading: _Reading) -> list[Resolution]:
    done = [barrier for offset, barrier in reading.barriers if offset <= reading.position]
    reading.barriers = [(offset, barrier) for offset, barrier in reading.barriers if offset > reading.position]
    return [_ended(barrier, None) for barrier in done]


def _ended(future: Future[Any], error: BaseException | None) -> Resolution:
    return lambda: fulfil(future, None) if error is None else fail(future, error)
