"""Which partition a key belongs to."""

from confluent_kafka import murmur2

__all__ = ["PARTITIONER", "partition_for"]

PARTITIONER = "murmur2_random"
"""librdkafka's name for the partitioner of Java's clients. Its own default is CRC32, under which a job's commands would
arrive on another partition than the one that knows the job."""


def partition_for(key: bytes, partitions: int) -> int:
    """The partition of a record with this key, as Java's clients have it: murmur2, no sign, modulo `partitions`."""
    partition: int = murmur2(key, partitions)
    return partition
