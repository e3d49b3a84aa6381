"""How to reach a cluster, and the client configurations that the guarantees ask for."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from mainspring.topics.errors import ProtectedOptionError
from mainspring.topics.lines import LIBRARY_LOG
from mainspring.topics.partitioner import PARTITIONER
from mainspring.topics.topology import INTERNAL_MAX_BYTES

__all__ = ["PROTECTED_OPTIONS", "Connection"]

_OFFSETS = "offsets are committed by Mainspring, in its transactions"
_GROUPS = "membership of groups decides who owns which partition"
_DURABLE = "an accepted record must be on every in-sync replica, once and in order"
_TRANSACTIONS = "transactions are numbered, timed and fenced by Mainspring"
_LATE_ANSWERS = "a broken connection during a commit must show, or a late answer could end another transaction"
_POSITION = "each part begins where its guarantees say"
_ADDRESS = "the brokers are given as `bootstrap`"

PROTECTED_OPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "bootstrap.servers": _ADDRESS,
        "metadata.broker.list": _ADDRESS,
        "acks": _DURABLE,
        "request.required.acks": _DURABLE,
        "enable.idempotence": _DURABLE,
        "enable.gapless.guarantee": _DURABLE,
        "max.in.flight": _DURABLE,
        "max.in.flight.requests.per.connection": _DURABLE,
        "message.max.bytes": "sizes are checked against the topics' own limits before anything is produced",
        "message.timeout.ms": "how long a record may take follows from the transaction's time-out",
        "delivery.timeout.ms": "how long a record may take follows from the transaction's time-out",
        "partitioner": "every client must find the same partition for a key (murmur2_random)",
        "transactional.id": _TRANSACTIONS,
        "transaction.timeout.ms": f"{_TRANSACTIONS}; set scheduler.transaction_timeout_ms",
        "auto.commit.enable": _OFFSETS,
        "auto.commit.interval.ms": _OFFSETS,
        "enable.auto.commit": _OFFSETS,
        "enable.auto.offset.store": _OFFSETS,
        "auto.offset.reset": _POSITION,
        "enable.partition.eof": _POSITION,
        "isolation.level": "what was aborted must not be read as if it had happened",
        "check.crcs": "a record that was damaged on its way must not be applied",
        "allow.auto.create.topics": "topics are made by `topics apply`, with the right partitions",
        "group.id": _GROUPS,
        "group.instance.id": _GROUPS,
        "group.protocol": _GROUPS,
        "group.remote.assignor": _GROUPS,
        "partition.assignment.strategy": _GROUPS,
        "log.connection.close": _LATE_ANSWERS,
        "log_level": _LATE_ANSWERS,
    }
)
"""Options that users may not set, each with the reason."""

_CONSUMER_ONLY = frozenset(
    {
        "coordinator.query.interval.ms",
        "fetch.error.backoff.ms",
        "fetch.max.bytes",
        "fetch.message.max.bytes",
        "fetch.min.bytes",
        "fetch.queue.backoff.ms",
        "fetch.wait.max.ms",
        "group.protocol.type",
        "heartbeat.interval.ms",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "queued.max.messages.kbytes",
        "queued.min.messages",
        "session.timeout.ms",
    }
)
_PRODUCER_ONLY = frozenset(
    {
        "batch.num.messages",
        "batch.size",
        "compression.codec",
        "compression.level",
        "compression.type",
        "linger.ms",
        "message.send.max.retries",
        "msg_order_cmp",
        "queue.buffering.backpressure.threshold",
        "queue.buffering.max.kbytes",
        "queue.buffering.max.messages",
        "queue.buffering.max.ms",
        "queuing.strategy",
        "request.timeout.ms",
        "retries",
        "sticky.partitioning.linger.ms",
    }
)


@dataclass(frozen=True, slots=True)
class Connection:
    """The way to a cluster: bootstrap servers and librdkafka options of the user, such as those for TLS and SASL.

    `logger` takes librdkafka's own lines. Raises `ProtectedOptionError` for an option that the guarantees rest on. The
    options do not show in `repr`.
    """

    bootstrap: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    logger: logging.Logger = field(default=LIBRARY_LOG, repr=False, compare=False)

    def __post_init__(self) -> None:
        for option in self.options:
            reason = PROTECTED_OPTIONS.get(option)
            if reason is not None:
                raise ProtectedOptionError(option, reason)

    def producer_config(self, **own: Any) -> dict[str, Any]:
        """Configuration of a producer: idempotent, acknowledged by all in-sync replicas, partitioned by murmur2.

        `own` are the options that a part of Mainspring sets for itself (spell the dots: `**{"linger.ms": 5}`). They win
        over the defaults, and the user's options over both.
        """
        defaults = {
            "acks": "all",
            "enable.idempotence": True,
            "message.max.bytes": INTERNAL_MAX_BYTES,
            "partitioner": PARTITIONER,
        }
        return self._merge(defaults, own, _CONSUMER_ONLY)

    def consumer_config(self, **own: Any) -> dict[str, Any]:
        """Configuration of a consumer: committed records only, no commit by itself, no silent jump to another offset.

        `own` as for `producer_config`; `group.id` belongs there.
        """
        defaults = {
            "allow.auto.create.topics": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "isolation.level": "read_committed",
            # Room for a record of the largest size, else each would cost a fetch that grows.
            "max.partition.fetch.bytes": INTERNAL_MAX_BYTES,
        }
        return self._merge(defaults, own, _PRODUCER_ONLY)

    def admin_config(self, **own: Any) -> dict[str, Any]:
        """Configuration of an admin client; `own` as for `producer_config`."""
        return self._merge({}, own, _CONSUMER_ONLY | _PRODUCER_ONLY)

    def _merge(self, defaults: dict[str, Any], own: dict[str, Any], foreign: frozenset[str]) -> dict[str, Any]:
        """Joins the layers; librdkafka warns of options that are for another kind of client, so those stay out."""
        given = {name: value for name, value in self.options.items() if name not in foreign}
        return {"bootstrap.servers": self.bootstrap, "logger": self.logger, **defaults, **own, **given}
