"""How long a group waits for a silent member."""

import pytest

from mainspring.local import EmbeddedKafka
from mainspring.topics import Connection
from mainspring.topics.session import shortest_session_ms


def test_three_seconds_where_the_broker_allows_them(kafka: str) -> None:
    assert shortest_session_ms(Connection(kafka).admin_config()) == 3_000


def test_the_brokers_minimum_where_that_is_longer() -> None:
    with EmbeddedKafka(settings={"group.min.session.timeout.ms": "4500"}) as kafka:
        assert shortest_session_ms(Connection(kafka.bootstrap).admin_config()) == 4_500


def test_what_every_stock_broker_allows_where_none_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.topics.session._PATIENCE_S", 0.2)

    assert shortest_session_ms(Connection("127.0.0.1:9").admin_config()) == 6_000
