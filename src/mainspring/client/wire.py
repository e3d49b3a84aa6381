"""What a client holds open: the producers, the tail of `events`, and the threads behind them."""

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar, cast

from confluent_kafka import Consumer

from mainspring.client.config import ClientConfig
from mainspring.client.ends import Ends
from mainspring.client.errors import ClientClosedError, EventsUnavailableError, ForkedClientError
from mainspring.client.outbox import BulkOutbox, Envelope, Outbox, OutboxFullError
from mainspring.client.scan import scan
from mainspring.client.steps import Steps, wait
from mainspring.client.tail import EventTail
from mainspring.client.watch import ScheduleWatch, Start, Watch
from mainspring.jobs.ids import time_of_id
from mainspring.schemas import Event, UnreadableRecordError
from mainspring.topics import partition_for

__all__ = ["Deadline", "Wire"]

T = TypeVar("T")

# How far the clocks of the one who made an id and of the brokers may be apart.
CLOCK_SLACK_MS = 600_000
SCANS = 4
ASK_S = 10.0


class Deadline:
    """A caller's patience, shared by all steps of one operation."""

    __slots__ = ("_until", "timeout_s")

    def __init__(self, timeout_s: float | None) -> None:
        self.timeout_s = timeout_s
        self._until = None if timeout_s is None else time.monotonic() + timeout_s

    def left(self) -> float | None:
        """Seconds left, never below 0; None: for ever."""
        return None if self._until is None else max(0.0, self._until - time.monotonic())


class Wire:
    """The connections of one client. Safe to share between threads, useless in a forked child."""

    def __init__(self, config: ClientConfig) -> None:
        self.partitions = range(config.topology.partitions)
        self._config = config
        self._pid = os.getpid()
        self._closed = False
        self._events = config.topology.events.name
        self._commands = config.topology.commands.name
        self._executor = ThreadPoolExecutor(max_workers=SCANS, thread_name_prefix="mainspring-client")
        self._outbox = Outbox(self._producer_config(linger_ms=1), self._commands)
        self._bulk: BulkOutbox | None = None
        self.tail = EventTail(self.make_consumer, self._events, self.decode)
        self.ends = Ends(
            config.connection.admin_config(),
            config.topology,
            self._executor,
            timeout_s=min(config.delivery_s, ASK_S),
        )
        # The last command on each partition: when it is decided, those before it are.
        self.last: dict[int, Watch] = {}

    def partition_of(self, job_id: str) -> int:
        """Where the job lives."""
        return partition_for(job_id.encode("utf-8", "surrogatepass"), len(self.partitions))

    def hint(self, job_id: str) -> Start:
        """From where the events of a job can be: the time its id was made at, if the id tells, else the beginning."""
        made_at_ms = time_of_id(job_id)
        return Start(time_ms=None if made_at_ms is None else max(0, made_at_ms - CLOCK_SLACK_MS))

    def starts(self) -> Steps[dict[int, Start]]:
        """For each partition, where to read from to see all that a command sent from now on will cause."""
        try:
            ends = yield from self.ends.recent()
        except EventsUnavailableError:
            # Sending needs no `events`. Who waits later looks from this moment on, and is told of the trouble.
            since = time.time_ns() // 1_000_000 - CLOCK_SLACK_MS
            return {partition: Start(time_ms=since) for partition in self.partitions}
        return {partition: Start(offset=offset) for partition, offset in ends.items()}

    def watch(self, job_id: str, command_id: str, starts: dict[int, Start], *, adopt: bool = False) -> Watch:
        """A watch for a command that is about to be sent."""
        partition = self.partition_of(job_id)
        watch = Watch(job_id, partition, starts[partition], command_id, adopt=adopt)
        self.tail.register(watch, fresh=True)
        return watch

    def watch_schedule(self, schedule_id: str, command_id: str, starts: dict[int, Start]) -> ScheduleWatch:
        """A watch for a command about a schedule that is about to be sent."""
        partition = self.partition_of(schedule_id)
        watch = ScheduleWatch(schedule_id, partition, starts[partition], command_id)
        self.tail.register(watch, fresh=True)
        return watch

    def send(self, envelope: Envelope) -> Steps[None]:
        """Returns when the command is in the log. Raises `NotDeliveredError`."""
        while True:
            try:
                sent = self._outbox.send(envelope)
            except OutboxFullError as full:
                yield from wait(full.room)
            else:
                yield from wait(sent)
                return

    def bulk(self) -> BulkOutbox:
        """The producer for many commands at once; made when first needed."""
        if self._bulk is None:
            config = self._producer_config(linger_ms=50, **{"batch.size": 1_000_000, "batch.num.messages": 100_000})
            self._bulk = BulkOutbox(config, self._commands)
        return self._bulk

    def join(self, watch: Watch, deadline: Deadline) -> Steps[None]:
        """Returns when the watch is told of everything from its start on."""
        while self.tail.join(watch):
            events, end = yield from self.scan(watch.partition, watch.key, watch.start, deadline)
            self.tail.absorb(watch, events, end)

    def scan(
        self, partition: int, key: bytes, start: Start, deadline: Deadline
    ) -> Steps[tuple[list[tuple[Event, int]], int]]:
        """The committed events of one key from `start` on, and where they end now."""
        until = yield from self.ends.committed(partition)
        job = self.in_background(scan, self.make_consumer, self._events, partition, key, start, until, self.decode)
        found: tuple[list[tuple[Event, int]], int] = yield from wait(job, deadline.left())
        return found

    def in_background(self, call: Callable[..., T], *args: Any) -> Future[T]:
        """Run something that blocks apart from the caller."""
        self.check_usable()
        return self._executor.submit(call, *args)

    def check_usable(self) -> None:
        """Raises `ForkedClientError` in a child process and `ClientClosedError` after close."""
        if os.getpid() != self._pid:
            raise ForkedClientError(self._pid, os.getpid())
        if self._closed:
            raise ClientClosedError

    def close(self) -> None:
        """Wait for commands on their way, tell those who wait, end all threads. In a forked child: nothing."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        self._outbox.close()
        if self._bulk is not None:
            self._bulk.close()
        self.tail.close()
        self._executor.shutdown(wait=True, cancel_futures=True)
        self.ends.close()

    def _producer_config(self, *, linger_ms: int, **own: Any) -> dict[str, Any]:
        mine = {"client.id": "mainspring-client", "linger.ms": linger_ms, "queue.buffering.max.messages": 500_000}
        delivery = {"message.timeout.ms": int(self._config.delivery_s * 1000)}
        return self._config.connection.producer_config(**mine, **delivery, **own)

    def make_consumer(self) -> Consumer:
        """A consumer of `events` for partitions assigned by hand: committed records, and a word at each end."""
        own = {
            "client.id": "mainspring-client",
            "enable.partition.eof": True,
            # The default of a second is how long a partition may stay unread after a full queue or a new assignment.
            "fetch.queue.backoff.ms": 10,
            # A new partition is asked for when the fetch of the others returns: this long at most, while someone waits.
            "fetch.wait.max.ms": 100,
            # The group is never joined and nothing is committed; librdkafka wants a name, and the ACLs one they know.
            "group.id": self._config.topology.group("client"),
            "queued.min.messages": 20_000,
        }
        return Consumer(self._config.connection.consumer_config(**own))

    def decode(self, data: bytes) -> Event | None:
        """The event; None for one of a kind that this version does not know."""
        try:
            return cast(Event, self._config.codec.decode(data))
        except UnreadableRecordError:
            return None  # what this version knows of the key stays true without it
