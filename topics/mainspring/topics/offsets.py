"""Where partitions begin and end, as the client library tells it."""

from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException
from confluent_kafka.admin import ListOffsetsResultInfo

__all__ = ["answered_offset"]


def answered_offset(found: ListOffsetsResultInfo) -> int:
    """The offset that the leader of a partition has answered with, from what `AdminClient.list_offsets` gives for it.

    Raises `KafkaException` (LEADER_NOT_AVAILABLE) where there is no answer: when a leader cannot be reached or stays
    silent the client library reports no error, and an offset that no record has.
    """
    offset = int(found.offset)
    if offset == OFFSET_INVALID:
        raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, "the leader of the partition did not answer"))
    return offset
