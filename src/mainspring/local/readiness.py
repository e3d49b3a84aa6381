"""Whether a node serves clients: it is asked as a client would ask, through the address that it advertises."""

from __future__ import annotations

import logging
import time

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from mainspring.local.errors import BrokerStartError
from mainspring.local.node import Node
from mainspring.local.security import ClientOptions

_ASK_S = 1.0
# Refused connections are what waiting looks like: librdkafka would print each on stderr.
_quiet = logging.getLogger("mainspring.local.readiness")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False


def admin_client(bootstrap: str, options: ClientOptions) -> AdminClient:
    """An admin client that reconnects fast and keeps its log lines to itself."""
    fast: ClientOptions = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100}
    return AdminClient({"bootstrap.servers": bootstrap, **fast, **options}, logger=_quiet)


def wait_until_ready(node: Node, deadline: float) -> None:
    """Return once the node answers a metadata request and has joined the cluster.

    `deadline` is a reading of the monotonic clock. Raises BrokerStartError, with the tail of the node's log, where the
    process ends or the deadline passes.
    """
    sasl = node.layout.sasl
    options: ClientOptions = sasl.client_options(mechanism="PLAIN") if sasl else {}
    admin = admin_client(node.address, options)
    while True:
        if not node.running:
            raise BrokerStartError(node.explain("it ended before it was ready"))
        if time.monotonic() >= deadline:
            raise BrokerStartError(node.explain("it did not become ready in time"))
        try:
            if node.node_id in admin.list_topics(timeout=_ASK_S).brokers:
                return
        except KafkaException:
            continue
