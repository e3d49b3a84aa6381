"""A cluster without the topics of the installation: said at once, and not blamed on the network."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from mainspring.client import Client, ClientConfig, TopicsMissingError, patience
from mainspring.client.patience import ABSENT_S, patiently
from mainspring.schemas import Codec
from mainspring.topics import Connection, Topology


@pytest.mark.broker
def test_a_submit_to_a_prefix_without_topics_soon_says_so_and_what_to_do_next(kafka: str, prefix: str) -> None:
    # given
    config = ClientConfig(
        connection=Connection(kafka), topology=Topology(prefix=prefix), codec=Codec.embedded(), actor="ada@host"
    )
    with Client(config=config) as client:
        began_at = time.monotonic()

        # when
        with pytest.raises(TopicsMissingError) as caught:
            client.submit("greet")

        # then
        assert time.monotonic() - began_at < 4 * ABSENT_S
        assert caught.value.prefix == prefix
        for part in (prefix, "Nothing was sent", "mainspring topics apply", "topics.prefix"):
            assert part in str(caught.value)

        # and of many, none is sent
        with pytest.raises(TopicsMissingError):
            client.submit_many(["greet", "greet"])


def test_a_topic_that_was_just_made_is_waited_for() -> None:
    # given
    answers = iter([KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE])

    def ask() -> str:
        code = next(answers, None)
        if code is not None:
            raise KafkaException(KafkaError(code))
        return "the end"

    # when, then
    assert patiently(ask, 10.0) == "the end"


def test_an_absent_topic_is_given_up_long_before_a_leader_is(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a clock that goes on by a second at each look
    seconds = iter(range(1_000))
    clock = SimpleNamespace(monotonic=lambda: float(next(seconds)), sleep=lambda _: None)
    monkeypatch.setattr(patience, "time", clock)
    asked: list[int] = []

    def refusing(code: int) -> None:
        asked.append(code)
        raise KafkaException(KafkaError(code))

    # when
    for code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE):
        with pytest.raises(KafkaException):
            patiently(lambda: refusing(code), 30.0)  # noqa: B023 - called in this turn of the loop

    # then
    assert asked.count(KafkaError.UNKNOWN_TOPIC_OR_PART) < 5
    assert asked.count(KafkaError.LEADER_NOT_AVAILABLE) > 25
