"""A simulated Kafka behind the engine's ports.

What it has: partitions whose control records take offsets, the last stable offset, transactions in two phases with
epochs, fencing and time-outs, offsets inside transactions with the check of KIP-447, groups with generations, sessions
and cooperative rebalances, compaction, retention. What it has not: replicas, static members, quotas, security.
"""

from tests.sim.kafka.broker import Link, SimBroker
from tests.sim.kafka.log import ABORTED, COMMITTED, MARKER, OPEN, PartitionLog, Record
from tests.sim.kafka.ports import ClientSettings, SimKafka
from tests.sim.kafka.settings import BrokerSettings

__all__ = [
    "ABORTED",
    "COMMITTED",
    "MARKER",
    "OPEN",
    "BrokerSettings",
    "ClientSettings",
    "Link",
    "PartitionLog",
    "Record",
    "SimBroker",
    "SimKafka",
]
