"""The ports on confluent-kafka. What librdkafka does differently from what one would expect is dealt with here."""

from dataclasses import dataclass
from typing import Any

from mainspring.processors.engine.kafka.admin import KafkaAdmin
from mainspring.processors.engine.kafka.consumers import KafkaChangelog, KafkaInputs
from mainspring.processors.engine.kafka.offsets import GroupOffsets
from mainspring.processors.engine.kafka.output import KafkaOutput
from mainspring.processors.engine.kafka.system import SystemClock, SystemRandomness
from mainspring.topics import Connection
from mainspring.topics.session import shortest_session_ms

__all__ = ["ClientOptions", "ConfluentKafka", "SystemClock", "SystemRandomness"]

_QUEUE_MESSAGES = 1_000_000
_QUEUE_KBYTES = 1_048_576

_FOLLOW_BYTES = 65_536
_FOLLOW_RECORDS = 2_000
_FOLLOW_KBYTES = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """How the clients are tuned. All times in milliseconds."""

    group: str
    changelog: str
    client_id: str
    session_timeout_ms: int | None = None
    """None: as short as the brokers allow, and at least 3 s."""
    heartbeat_ms: int = 500
    transaction_timeout_ms: int = 3_000
    max_poll_interval_ms: int = 120_000
    group_instance_id: str | None = None
    prefetch_records: int = 20_000
    prefetch_kbytes: int = 65_536


class ConfluentKafka:
    """Makes clients for one processor on one cluster."""

    def __init__(self, connection: Connection, options: ClientOptions) -> None:
        self._connection = connection
        self._options = options

    def inputs(self) -> "KafkaInputs":
        options = self._options
        session_ms = options.session_timeout_ms or shortest_session_ms(self._admin_config())
        own: dict[str, Any] = {
            "client.id": options.client_id,
            "group.id": options.group,
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": session_ms,
            "heartbeat.interval.ms": min(options.heartbeat_ms, session_ms // 3),
            "max.poll.interval.ms": max(options.max_poll_interval_ms, session_ms),
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 10,
            "queued.min.messages": options.prefetch_records,
            "queued.max.messages.kbytes": options.prefetch_kbytes,
        }
        if options.group_instance_id is not None:
            own["group.instance.id"] = options.group_instance_id
        return KafkaInputs(self._connection.consumer_config(**own))

    def changelog(self) -> "KafkaChangelog":
        return self._changelog("restore", {"fetch.wait.max.ms": 100})

    def follower(self) -> "KafkaChangelog":
        own = {
            # A request each half second, and not one for each transaction of the owners.
            "fetch.wait.max.ms": 500,
            "fetch.min.bytes": _FOLLOW_BYTES,
            "queued.min.messages": _FOLLOW_RECORDS,
            "queued.max.messages.kbytes": _FOLLOW_KBYTES,
        }
        return self._changelog("standby", own)

    def _changelog(self, purpose: str, more: dict[str, Any]) -> "KafkaChangelog":
        own = {
            "client.id": f"{self._options.client_id}-{purpose}",
            # Never joined: librdkafka asks for a name even where partitions are assigned by hand.
            "group.id": self._options.group,
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 10,
        }
        return KafkaChangelog(self._connection.consumer_config(**own | more), self._options.changelog)

    def admin(self) -> "KafkaAdmin":
        return KafkaAdmin(self._admin_config(), GroupOffsets(self._asking("committed"), self._asking("uncommitted")))

    def _asking(self, isolation: str) -> dict[str, Any]:
        """For a consumer that asks about the group and never joins it. Nobody polls it, so it must not log."""
        own = {
            "client.id": f"{self._options.client_id}-offsets-{isolation}",
            "group.id": self._options.group,
            "isolation.level": f"read_{isolation}",
            "log_level": 0,
        }
        return self._connection.consumer_config(**own)

    def output(self, transactional_id: str) -> "KafkaOutput":
        return KafkaOutput(self._producer_config(transactional_id), transactional_id)

    def fence(self, transactional_id: str) -> None:
        self.output(transactional_id).close()

    def _admin_config(self) -> dict[str, Any]:
        own = {"client.id": f"{self._options.client_id}-admin"}
        return self._connection.admin_config(**own)

    def _producer_config(self, transactional_id: str) -> dict[str, Any]:
        own = {
            "client.id": transactional_id,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": self._options.transaction_timeout_ms,
            "linger.ms": 5,
            "retry.backoff.ms": 2,
            "retry.backoff.max.ms": 50,
            "queue.buffering.max.messages": _QUEUE_MESSAGES,
            "queue.buffering.max.kbytes": _QUEUE_KBYTES,
            "log.connection.close": True,
            "log_level": 6,
        }
        return self._connection.producer_config(**own)
