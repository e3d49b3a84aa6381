"""An answer of the brokers is told from none."""

import pytest
from confluent_kafka import OFFSET_END, OFFSET_INVALID, KafkaError, KafkaException
from confluent_kafka.admin import ListOffsetsResultInfo

from mainspring.topics.offsets import answered_offset


@pytest.mark.parametrize("offset", [0, 7, OFFSET_END])
def test_what_the_leader_answered_is_the_offset_also_that_no_record_is_so_young(offset: int) -> None:
    assert answered_offset(ListOffsetsResultInfo(offset, -1, 0)) == offset


def test_the_offset_that_stands_for_no_answer_is_an_error_that_passes() -> None:
    with pytest.raises(KafkaException) as raised:
        answered_offset(ListOffsetsResultInfo(OFFSET_INVALID, -1, -1))

    assert raised.value.args[0].code() == KafkaError.LEADER_NOT_AVAILABLE
