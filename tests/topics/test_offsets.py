"""An answer of the brokers is told from none."""

import pytest
from confluent_kafka import OFFSET_END, OFFSET_INVALID, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ListOffsetsResultInfo

from mainspring.topics.offsets import answered_offset, offset_at_time


@pytest.mark.parametrize("offset", [0, 7, OFFSET_END])
def test_what_the_leader_answered_is_the_offset_also_that_no_record_is_so_young(offset: int) -> None:
    assert answered_offset(ListOffsetsResultInfo(offset, -1, 0)) == offset


def test_the_offset_that_stands_for_no_answer_is_an_error_that_passes() -> None:
    with pytest.raises(KafkaException) as raised:
        answered_offset(ListOffsetsResultInfo(OFFSET_INVALID, -1, -1))

    assert raised.value.args[0].code() == KafkaError.LEADER_NOT_AVAILABLE


@pytest.mark.parametrize(("answer", "offset"), [(0, 0), (7, 7), (OFFSET_END, OFFSET_END)])
def test_the_offset_of_a_time_is_the_first_record_that_is_as_late_or_the_end(answer: int, offset: int) -> None:
    assert offset_at_time(TopicPartition("events", 0, answer)) == offset


def test_no_answer_to_a_time_is_not_taken_for_the_end() -> None:
    with pytest.raises(KafkaException) as raised:
        offset_at_time(TopicPartition("events", 0, OFFSET_INVALID))

    assert raised.value.args[0].code() == KafkaError.LEADER_NOT_AVAILABLE
