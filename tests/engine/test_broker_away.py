"""A broker that was away: what was asked before it left must not keep a scheduler from asking again."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mainspring.local import EmbeddedKafka
from mainspring.processors.engine.errors import TransactionError
from mainspring.processors.engine.kafka import ConfluentKafka
from mainspring.processors.engine.ports import Admin, Pending
from mainspring.topics import Connection, Topology
from tests.engine.faults import client_options
from tests.engine.support import make_topics

pytestmark = pytest.mark.broker

PATIENCE_S = 60.0
TOPOLOGY = Topology(prefix="away.", partitions=1, work_partitions=1)
PLACES = [(TOPOLOGY.attempts.name, 0)]


def answer(ask: Callable[[], Pending[Any]]) -> Any:
    """The answer, or what went wrong."""
    pending = ask()
    deadline_s = time.monotonic() + PATIENCE_S
    while not pending.done():
        assert time.monotonic() < deadline_s, "no answer at all"
        time.sleep(0.01)
    try:
        return pending.result()
    except TransactionError as error:
        return error


def until(ask: Callable[[], Pending[Any]], *, fails: bool) -> Any:
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        found = answer(ask)
        if isinstance(found, TransactionError) == fails:
            return found
        assert time.monotonic() < deadline_s, f"still after {PATIENCE_S} s: {found!r}"


@contextmanager
def an_admin(broker: EmbeddedKafka) -> Iterator[Admin]:
    make_topics(broker.bootstrap, TOPOLOGY)
    admin = ConfluentKafka(Connection(broker.bootstrap), client_options(TOPOLOGY, "a")).admin()
    yield admin
    admin.close()


def test_the_questions_of_a_takeover_are_answered_after_the_broker_was_away_for_longer_than_a_question(
    broker: EmbeddedKafka,
) -> None:
    with an_admin(broker) as admin:
        questions: list[Callable[[], Pending[Any]]] = [
            lambda: admin.committed(PLACES, stable=True),
            lambda: admin.ends(PLACES),
            lambda: admin.beginnings(PLACES),
            lambda: admin.topic_id(TOPOLOGY.attempts.name),
        ]
        before = [until(ask, fails=False) for ask in questions]

        broker.kill()
        for ask in questions:
            until(ask, fails=True)
        broker.restart()

        assert [until(ask, fails=False) for ask in questions] == before


def test_a_leader_that_stays_silent_is_not_taken_for_one_that_has_nothing(broker: EmbeddedKafka) -> None:
    with an_admin(broker) as admin:
        questions: list[Callable[[], Pending[Any]]] = [lambda: admin.ends(PLACES), lambda: admin.beginnings(PLACES)]
        # given that the client knows the leader already, so that it asks nobody else first
        before = [until(ask, fails=False) for ask in questions]

        broker.pause()
        silent = [answer(ask) for ask in questions]
        broker.resume()

        assert [type(each) for each in silent] == [TransactionError, TransactionError]
        assert [until(ask, fails=False) for ask in questions] == before
