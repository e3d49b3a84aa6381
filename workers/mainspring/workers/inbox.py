"""What a worker reads: offers, as a member of the group; signals, from a partition of its own."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from mainspring.schemas.common import Priority
from mainspring.schemas.errors import MainspringError
from mainspring.topics import Connection, Topic, Topology, partition_for
from mainspring.topics.contact import Contact
from mainspring.topics.errors import TopicMismatchError
from mainspring.workers.ports import REAL_PORTS, Clock, WorkerPorts

__all__ = ["DuplicateWorkerError", "OfferInbox", "SignalInbox", "StoppedWaitingError"]

R = TypeVar("R")
log = logging.getLogger(__name__)

READ_MAX = 500
"""Records taken at once: enough for large batches, few enough that a turn of the loop stays in milliseconds."""
ATTEMPT_S = 1.5
"""How long one question may take: a worker that is told to stop meanwhile hears of it no later."""
PATIENCE_S = 30.0
"""How long a worker waits at its start for a cluster to have its topics, once there is a broker to ask."""
RETRY_S = 0.2
SAY_AGAIN_S = 5.0
HINT = "`mainspring topics apply` makes the topics; or is the prefix (topics.prefix) another one?"
_ABSENT = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})
_AWAY = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._RESOLVE})
_NO_USE = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.SASL_AUTHENTICATION_FAILED})


class DuplicateWorkerError(MainspringError):
    """Another worker has taken the identity of this one."""

    def __init__(self, instance_id: str) -> None:
        super().__init__(
            f"another worker runs as {instance_id!r}: with worker.static_member each needs a worker.id of its own, "
            "and a worker must be gone before another takes its name"
        )


class StoppedWaitingError(Exception):
    """The worker was told to stop while it still waited for the cluster."""


def _read(consumer: Consumer, wait_s: float) -> list[Any]:
    """The records at hand, waiting for the first. `consume(n, t)` alone would always wait for all n or the whole t."""
    first = consumer.poll(wait_s)
    if first is None:
        return []
    records = []
    for message in [first, *consumer.consume(READ_MAX, 0)]:
        error = message.error()
        if error is None:
            records.append(message)
        elif error.fatal() or error.code() == KafkaError._FATAL:
            raise KafkaException(error)
        else:
            hint = f" {HINT}" if error.code() in _ABSENT else ""
            log.warning("reading met an error and goes on: %s.%s", error.str(), hint)
    return records


class OfferInbox:
    """The work topics of some queues, shared with the other workers of the group.

    Offers are read uncommitted: an aborted one costs a refused claim, while an open transaction of a dead scheduler
    would hide what others offer behind it. An offset is committed once what was sent before it has been acknowledged;
    what a crash forgets in between is offered again by the scheduler.

    `instance_id`: an identity that stays over restarts. A group deals out anew whenever a member comes or goes, and
    nobody takes offers until the session of one that was killed is over; one with an identity comes back in its place.
    """

    def __init__(
        self,
        connection: Connection,
        topology: Topology,
        queues: Sequence[str],
        ports: WorkerPorts = REAL_PORTS,
        instance_id: str | None = None,
    ) -> None:
        identity = {} if instance_id is None else {"group.instance.id": instance_id}
        self._instance_id = instance_id
        self._contact = Contact()
        self._consumer = ports.consumer(
            connection.consumer_config(
                **{
                    "group.id": topology.group("worker"),
                    "isolation.level": "read_uncommitted",
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": True,
                    "auto.commit.interval.ms": 500,
                    # Deals out the partitions of each topic in turn. The sticky ones balance the sum alone: of five
                    # workers two got every partition of a lane, and ran all of its jobs.
                    "partition.assignment.strategy": "roundrobin",
                    # While a group deals out anew it waits for the dead, too, and nobody takes offers: not for long.
                    "session.timeout.ms": ports.session_ms(connection),
                    "heartbeat.interval.ms": 1_000,
                    "queued.min.messages": 2_000,
                    "fetch.queue.backoff.ms": 10,
                    **identity,
                    **self._contact.options,
                }
            )
        )
        self._assigned: set[tuple[str, int]] = set()
        self._unsettled: deque[tuple[int, dict[tuple[str, int], int]]] = deque()
        topics = [topology.work(queue, lane).name for queue in queues for lane in Priority]
        self._consumer.subscribe(topics, on_assign=self._gained, on_revoke=self._gone, on_lost=self._gone)

    @property
    def assigned(self) -> frozenset[tuple[str, int]]:
        """What this worker reads: topics and partitions."""
        return frozenset(self._assigned)

    @property
    def partitions(self) -> int:
        """How many partitions this worker reads."""
        return len(self._assigned)

    @property
    def has_unsettled(self) -> bool:
        """Whether offsets wait for what was sent before them."""
        return bool(self._unsettled)

    @property
    def lost_s(self) -> float:
        """For how many seconds no broker has been connected; 0 while one is."""
        return self._contact.lost_s

    def read(self, wait_s: float) -> list[Any]:
        """Offers at hand; waits for the first. Raises `DuplicateWorkerError`."""
        try:
            return _read(self._consumer, wait_s)
        except KafkaException as error:
            if self._instance_id is None:
                raise
            # That another member has its identity is the only thing that ends a member of a group for good.
            raise DuplicateWorkerError(self._instance_id) from error

    def answered(self, messages: Sequence[Any], sent: int) -> None:
        """All these have been dealt with; their offsets count once `sent` records are acknowledged."""
        if messages:
            self._unsettled.append((sent, {(m.topic(), m.partition()): m.offset() + 1 for m in messages}))

    def settle(self, acknowledged: int) -> None:
        """So many records of the worker have been acknowledged."""
        while self._unsettled and self._unsettled[0][0] <= acknowledged:
            _, offsets = self._unsettled.popleft()
            kept = [TopicPartition(*place, offset) for place, offset in offsets.items() if place in self._assigned]
            if kept:
                self._consumer.store_offsets(offsets=kept)

    def leave(self) -> None:
        """Leaves the group, so that others take the partitions at once. What was settled is committed."""
        self._consumer.unsubscribe()

    def close(self) -> None:
        """Leaves the group and the cluster."""
        self._consumer.close()

    def _gained(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._assigned |= {(p.topic, p.partition) for p in partitions}

    def _gone(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._assigned -= {(p.topic, p.partition) for p in partitions}


class SignalInbox:
    """The partition of `signals` that belongs to the worker's id, committed records only, from the end seen now.

    Waits for brokers that are away, and for topics that are being made, unless `is_stopped` says so: then it raises
    `StoppedWaitingError`. Raises `TopicMismatchError` if the topics never come.
    """

    def __init__(
        self,
        connection: Connection,
        topology: Topology,
        worker_id: str,
        *,
        is_stopped: Callable[[], bool] = lambda: False,
        ports: WorkerPorts = REAL_PORTS,
    ) -> None:
        self.key = worker_id.encode()
        self._consumer = ports.consumer(
            connection.consumer_config(
                **{
                    "group.id": topology.group("worker-signals"),
                    "auto.offset.reset": "latest",
                    "fetch.queue.backoff.ms": 10,
                }
            )
        )
        try:
            end = _patiently(lambda: self._end(topology.signals), topology.prefix, is_stopped, ports.clock)
            self._consumer.assign([end])
        except BaseException:
            self._consumer.close()
            raise

    def read(self, wait_s: float) -> list[Any]:
        """Signals to this worker; waits for the first record of the partition, whomever it is for."""
        return [message for message in _read(self._consumer, wait_s) if message.key() == self.key]

    def close(self) -> None:
        """Leaves the cluster."""
        self._consumer.close()

    def _end(self, topic: Topic) -> TopicPartition:
        """The end of the worker's partition; how many there are, the broker knows best."""
        found = self._consumer.list_topics(topic.name, timeout=ATTEMPT_S).topics[topic.name]
        if found.error is not None:
            raise KafkaException(found.error)
        place = TopicPartition(topic.name, partition_for(self.key, len(found.partitions)))
        _, place.offset = self._consumer.get_watermark_offsets(place, timeout=ATTEMPT_S)
        return place


def _patiently(ask: Callable[[], R], prefix: str, is_stopped: Callable[[], bool], clock: Clock) -> R:
    """Asks again while a leader is elected or a topic is being made, and as long as there is no broker to ask."""
    ends_at = clock.monotonic() + PATIENCE_S
    say_at = 0.0
    while not is_stopped():
        try:
            return ask()
        except KafkaException as error:
            refusal = error.args[0]
            now = clock.monotonic()
            absent, away = refusal.code() in _ABSENT, refusal.code() in _AWAY
            what = f"there are no topics with prefix {prefix!r} in this cluster. {HINT}" if absent else refusal.str()
            if away:
                ends_at = now + PATIENCE_S
            if refusal.fatal() or refusal.code() in _NO_USE or now >= ends_at:
                if absent:
                    raise TopicMismatchError(what) from error
                raise
            if now >= say_at:
                say_at = now + SAY_AGAIN_S
                until = "as long as it takes" if away else f"{ends_at - now:.0f} s more at most"
                log.warning("waiting for the cluster, %s: %s", until, what)
            clock.pause(RETRY_S)
    raise StoppedWaitingError
