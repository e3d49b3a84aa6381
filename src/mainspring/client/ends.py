"""Where the partitions of `events` end: what a waiter of a command not yet sent can safely start from."""

import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from mainspring.client.errors import ClientError, EventsUnavailableError, TopicsMissingError
from mainspring.client.patience import is_absent, patiently
from mainspring.client.steps import Steps, fail, fulfil, wait
from mainspring.topics import Topology
from mainspring.topics.offsets import answered_offset

__all__ = ["Ends"]

# Ends this old still serve: they only make a later wait read a second's worth of events more.
FRESH_S = 1.0
REQUEST_S = 10.0


@dataclass(frozen=True, slots=True)
class _Known:
    at: float
    offsets: dict[int, int]


class Ends:
    """Asks the broker for the ends of all partitions at once, at most once a second, in the background.

    An end that was asked for before a command is sent lies before every event that the command causes, however old it
    is. No clock takes part in that.
    """

    def __init__(
        self,
        config: dict[str, Any],
        topology: Topology,
        executor: Executor,
        *,
        timeout_s: float = REQUEST_S,
    ) -> None:
        self._make_admin: Callable[[], AdminClient] = lambda: AdminClient(config)
        self._admin: AdminClient | None = None
        self._prefix = topology.prefix
        self._topic = topology.events.name
        self._commands = topology.commands.name
        self._partitions = topology.partitions
        self._executor = executor
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._known: _Known | None = None
        self._asking: Future[dict[int, int]] | None = None

    def recent(self) -> Steps[dict[int, int]]:
        """Ends by partition, at most about a second old. Raises `EventsUnavailableError`, `TopicsMissingError`."""
        with self._lock:
            known = self._known
            if known is not None and time.monotonic() - known.at < FRESH_S:
                return known.offsets
            asking = self._asking
            mine = asking is None
            if asking is None:
                asking = self._asking = self._executor.submit(self._ask, IsolationLevel.READ_UNCOMMITTED, None)
        if mine:
            asking.add_done_callback(self._learn)
        # Several callers share the question: each waits on a future of its own, so that giving up harms no other.
        offsets: dict[int, int] = yield from wait(_copy(asking))
        return offsets

    def committed(self, partition: int) -> Steps[int]:
        """Where the committed events of a partition end now. Raises `EventsUnavailableError`."""
        offsets = yield from wait(self._executor.submit(self._ask, IsolationLevel.READ_COMMITTED, (partition,)))
        return offsets[partition]

    def all_committed(self) -> Steps[dict[int, int]]:
        """Where the committed events end now, by partition. Raises `EventsUnavailableError`."""
        offsets = yield from wait(self._executor.submit(self._ask, IsolationLevel.READ_COMMITTED, None))
        return offsets

    def close(self) -> None:
        """Disconnect."""
        with self._lock:
            self._admin = None

    def _learn(self, asked: Future[dict[int, int]]) -> None:
        with self._lock:
            self._asking = None
            if not asked.cancelled() and asked.exception() is None:
                self._known = _Known(time.monotonic(), asked.result())

    def _ask(self, isolation: IsolationLevel, partitions: tuple[int, ...] | None) -> dict[int, int]:
        try:
            admin = patiently(self._connected, self._timeout_s)
        except KafkaException as error:
            raise self._unavailable(error) from error
        latest = OffsetSpec.latest()
        wanted = {
            TopicPartition(self._topic, partition): latest
            for partition in (partitions if partitions is not None else range(self._partitions))
        }

        def ask() -> dict[int, int]:
            try:
                answers = admin.list_offsets(wanted, isolation_level=isolation, request_timeout=self._timeout_s)
                return {asked.partition: answered_offset(answer.result()) for asked, answer in answers.items()}
            except KafkaException:
                # By itself the client library would ask with the leaders of before for minutes.
                self._look_for_leaders(admin)
                raise

        try:
            return patiently(ask, self._timeout_s)
        except KafkaException as error:
            raise self._unavailable(error) from error

    def _look_for_leaders(self, admin: AdminClient) -> None:
        with contextlib.suppress(KafkaException):  # the answer to the question says more
            admin.list_topics(self._topic, timeout=self._timeout_s)

    def _unavailable(self, error: KafkaException) -> ClientError:
        refusal = error.args[0]
        if is_absent(refusal):
            return TopicsMissingError(self._prefix)
        return EventsUnavailableError(self._topic, refusal.str())

    def _connected(self) -> AdminClient:
        with self._lock:
            if self._admin is not None:
                return self._admin
        admin = self._make_admin()
        for topic in (self._commands, self._topic):
            self._check(admin, topic)
        with self._lock:
            self._admin = admin
        return admin

    def _check(self, admin: AdminClient, topic: str) -> None:
        found = admin.list_topics(topic, timeout=self._timeout_s).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)
        if len(found.partitions) != self._partitions:
            raise EventsUnavailableError(
                topic, f"it has {len(found.partitions)} partitions, the settings say {self._partitions}"
            )


def _copy(shared: Future[dict[int, int]]) -> Future[dict[int, int]]:
    mine: Future[dict[int, int]] = Future()

    def done(answered: Future[dict[int, int]]) -> None:
        error = answered.exception()
        if error is not None:
            fail(mine, error)
        else:
            fulfil(mine, answered.result())

    shared.add_done_callback(done)
    return mine
