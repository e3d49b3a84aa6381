"""The class archive: a broker starts in half the time when Java need not parse and link 9,000 classes again.

The runtime that the wheel brings has no archive at all, not even the JDK's own. So once per user (some 10 s) a broker
is started for training, does a little of everything a client asks for, and leaves the archive behind. A broker starts
in 1.0 s with it and in 2.4 s without; a machine that cannot make one just starts slower.
"""

from __future__ import annotations

import logging
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from mainspring.local.errors import BrokerStartError
from mainspring.local.layout import ClusterLayout, NodePorts
from mainspring.local.locks import file_lock
from mainspring.local.node import Node
from mainspring.local.ports import free_ports
from mainspring.local.readiness import wait_until_ready
from mainspring.local.runtime import Notify, Runtime, prepare, silent
from mainspring.local.security import ClientOptions

_logger = logging.getLogger(__name__)

_READY_TIMEOUT_S = 90.0
_DUMP_TIMEOUT_S = 120.0
_STALE_S = 30 * 24 * 3600
_TOPIC = "training"
_PARTITIONS = 4
_TRANSACTIONS = 20
_RECORDS = 50


def prepare_trained(cache: Path | None = None, notify: Notify = silent) -> Runtime:
    """The runtime with its class archive, both made if this user does not have them yet (some 25 s, once).

    Safe to call from several processes at once. Raises what `prepare` raises; an archive that cannot be made is logged
    and done without.
    """
    runtime = prepare(cache, notify)
    if not runtime.archive.exists():
        with file_lock(runtime.archive.with_suffix(".lock")):
            if not runtime.archive.exists():
                notify("preparing Java's class archive, so that brokers start in half the time (10 s, once) …")
                _train(runtime)
    return runtime


def _train(runtime: Runtime) -> None:
    unfinished = runtime.archive.with_suffix(".unfinished")
    with tempfile.TemporaryDirectory(prefix="mainspring-training-") as scratch:
        node = _training_node(runtime, Path(scratch), unfinished)
        try:
            node.write_properties()
            node.launch(outlives_parent=False)
            wait_until_ready(node, time.monotonic() + _READY_TIMEOUT_S)
            _exercise(node)
            node.terminate()
            # Java writes the archive on its way out.
            node.wait(_DUMP_TIMEOUT_S)
            unfinished.rename(runtime.archive)
        except (BrokerStartError, KafkaException, OSError) as error:
            _logger.warning("no class archive for the embedded Kafka, it will start slower: %s", error)
        finally:
            node.kill()
    _forget_stale(runtime)


def _training_node(runtime: Runtime, home: Path, archive: Path) -> Node:
    broker, controller = free_ports(2)
    layout = ClusterLayout(cluster_id="dHJhaW5pbmctdHJhaW5pbg", ports=[NodePorts(broker, controller)])
    return Node(runtime, layout, 1, home, heap="512m", extra_flags=[f"-XX:AOTCacheOutput={archive}"])


def _exercise(node: Node) -> None:
    """Touch what clients touch: topics, transactions with offsets, a group, a read of committed records."""
    admin = AdminClient(_client(node))
    admin.create_topics([NewTopic(_TOPIC, _PARTITIONS, 1)])[_TOPIC].result()
    consumer = Consumer(
        {
            **_client(node),
            "group.id": _TOPIC,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    try:
        consumer.subscribe([_TOPIC])
        _transact(node, consumer)
        consumer.consume(_RECORDS, timeout=10.0)
    finally:
        consumer.close()
    admin.delete_topics([_TOPIC])[_TOPIC].result()


def _client(node: Node) -> ClientOptions:
    # Errors only: what a client notes while a coordinator loads would stand on the user's terminal.
    return {"bootstrap.servers": node.address, "log_level": 3}


def _transact(node: Node, consumer: Consumer) -> None:
    producer = Producer({**_client(node), "transactional.id": _TOPIC, "retry.backoff.ms": 5})
    producer.init_transactions()
    for round_number in range(_TRANSACTIONS):
        producer.begin_transaction()
        for record in range(_RECORDS):
            producer.produce(_TOPIC, key=str(record), value=bytes(200))
        offsets = [TopicPartition(_TOPIC, 0, round_number)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
        producer.commit_transaction()


def _forget_stale(runtime: Runtime) -> None:
    """Remove archives (66 MB each) of Java runtimes that are long gone, and what an interrupted training left."""
    for file in runtime.home.glob("classes-*"):
        stale = file.stat().st_mtime < time.time() - _STALE_S
        if stale and file != runtime.archive:
            file.unlink(missing_ok=True)
