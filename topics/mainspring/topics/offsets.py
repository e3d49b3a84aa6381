"""Where partitions begin and end, as the client library tells it."""

from confluent_kafka import OFFSET_END, OFFSET_INVALID, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ListOffsetsResultInfo

__all__ = ["answered_offset", "offset_at_time"]


def answered_offset(found: ListOffsetsResultInfo) -> int:
    """The offset that the leader of a partition has answered with, from what `AdminClient.list_offsets` gives for it.

    Raises `KafkaException` (LEADER_NOT_AVAILABLE) where there is no answer: when a leader cannot be reached or stays
    silent the client library reports no error, and an offset that no record has.
    """
    return _answered(int(found.offset))


def offset_at_time(found: TopicPartition) -> int:
    """The first offset of a time, from what `Consumer.offsets_for_times` gives; `OFFSET_END` where nothing is so late.

    Raises `KafkaException` where there is no answer, which is not that nothing is so late.
    """
    if found.error is not None:
        raise KafkaException(found.error)
    offset = _answered(found.offset)
    return offset if offset >= 0 else OFFSET_END


def _answered(offset: int) -> int:
    if offset == OFFSET_INVALID:
        raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, "the leader of the partition did not answer"))
    return offset
