"""A worker on a cluster that lacks its topics: it says so now and then, ends when told to, and ends with a hint."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from mainspring.schemas.codec import Codec
from mainspring.topics import Connection, Topology
from mainspring.topics.errors import TopicMismatchError
from mainspring.workers import Registry, Worker, WorkerConfig, inbox
from mainspring.workers.config import WorkerState
from tests.support import worker_jobs

PATIENCE_S = 30.0


def a_worker(kafka: str, prefix: str) -> Worker:
    config = WorkerConfig(connection=Connection(kafka), topology=Topology(prefix=prefix), codec=Codec.embedded())
    return Worker(config, Registry(worker_jobs.app))


@pytest.mark.broker
def test_a_worker_that_waits_for_its_topics_ends_when_told_to(
    kafka: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    # given
    waits = threading.Event()

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if prefix in record.getMessage():
                waits.set()

    told = Told()
    logging.getLogger(inbox.__name__).addHandler(told)
    worker, stop = a_worker(kafka, prefix), threading.Event()
    thread = threading.Thread(target=worker.run, args=(stop,))
    thread.start()
    try:
        assert waits.wait(PATIENCE_S)

        # when
        stopped_at = time.monotonic()
        worker.drain()
        thread.join(PATIENCE_S)

        # then
        assert not thread.is_alive()
        assert time.monotonic() - stopped_at < inbox.PATIENCE_S / 3
        assert worker.status().state is WorkerState.STOPPED
    finally:
        logging.getLogger(inbox.__name__).removeHandler(told)
        stop.set()
        thread.join(PATIENCE_S)


@pytest.mark.broker
def test_a_worker_whose_topics_never_come_ends_with_what_to_do(
    kafka: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "PATIENCE_S", 0.0)
    with pytest.raises(TopicMismatchError, match="mainspring topics apply") as caught:
        a_worker(kafka, prefix).run(threading.Event())
    assert prefix in str(caught.value)


def test_a_worker_that_waits_says_so_every_five_seconds_and_not_at_each_try(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # given a clock that goes on by the pause between two tries
    ticks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: 1_000.0 + next(ticks) * inbox.RETRY_S, pause=lambda _: None)
    tries: list[int] = []

    def ask() -> None:
        tries.append(1)
        raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))

    # when
    with caplog.at_level(logging.INFO), pytest.raises(TopicMismatchError):
        inbox._patiently(ask, "nope.", lambda: False, clock)

    # then
    assert len(tries) > 100
    assert 5 <= len(caplog.records) <= 7


def test_a_worker_whose_brokers_are_away_waits_for_them_longer_than_for_its_topics() -> None:
    # given brokers that are away for an hour, and topics that never come
    now = 1_000.0
    back_at = now + 3_600

    def pause(seconds: float) -> None:
        nonlocal now
        now += seconds

    def ask() -> None:
        code = KafkaError._TRANSPORT if now < back_at else KafkaError.UNKNOWN_TOPIC_OR_PART
        raise KafkaException(KafkaError(code))

    # when
    with pytest.raises(TopicMismatchError):
        inbox._patiently(ask, "nope.", lambda: False, SimpleNamespace(monotonic=lambda: now, pause=pause))

    # then
    assert now >= back_at + inbox.PATIENCE_S - inbox.RETRY_S
