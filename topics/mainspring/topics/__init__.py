"""Where records flow: every topic as a value, the partitioner, and how to connect."""

from mainspring.topics.connection import PROTECTED_OPTIONS, Connection
from mainspring.topics.errors import ProtectedOptionError, TopicMismatchError, TopologyError, UnknownQueueError
from mainspring.topics.partitioner import PARTITIONER, partition_for
from mainspring.topics.topic import Role, Topic
from mainspring.topics.topology import CHANGELOG_DELETE_RETENTION_MS, INTERNAL_MAX_BYTES, RESERVED_ROLES, Topology

__all__ = [
    "CHANGELOG_DELETE_RETENTION_MS",
    "INTERNAL_MAX_BYTES",
    "PARTITIONER",
    "PROTECTED_OPTIONS",
    "RESERVED_ROLES",
    "Connection",
    "ProtectedOptionError",
    "Role",
    "Topic",
    "TopicMismatchError",
    "Topology",
    "TopologyError",
    "UnknownQueueError",
    "partition_for",
]
