"""A scheduler whose topics are not there waits for them, and says what would make them."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError
from structlog.testing import capture_logs

from mainspring.processors.engine.kafka import consumers
from mainspring.processors.engine.kafka.consumers import sort_out
from mainspring.topics.lines import Seldom


@pytest.mark.parametrize(
    ("code", "is_hinted"), [(KafkaError.UNKNOWN_TOPIC_OR_PART, True), (KafkaError._TRANSPORT, False)]
)
def test_trouble_with_a_topic_that_is_not_there_comes_with_a_hint_and_once_in_a_while(
    code: int, is_hinted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "_SELDOM", Seldom())
    message: Any = SimpleNamespace(error=lambda: KafkaError(code), topic=lambda: "nope.commands", partition=lambda: 0)
    with capture_logs() as lines:
        read = sort_out([message])
        sort_out([message])
    assert list(read.records) == []
    (line,) = lines
    assert ("mainspring topics apply" in line.get("hint", "")) is is_hinted
