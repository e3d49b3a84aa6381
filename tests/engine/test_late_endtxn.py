"""A commit that is delayed in the network must not end a later transaction."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import KafkaError

from mainspring.log import Check, KafkaLog, VerifyReport, verify
from mainspring.processors.engine.errors import FatalKafkaError
from mainspring.processors.engine.ports import Output
from mainspring.schemas import JobSubmitted
from mainspring.telemetry import metrics
from mainspring.topics import Connection
from tests.engine.faults import Faults, FaultyKafka, FaultyOutput, client_options
from tests.engine.support import CODEC, Installation, installation, txns_are_whole
from tests.support.proxy import END_TXN, KafkaProxy, Mode, kafka_proxy
from tests.support.waiting import eventually

pytestmark = pytest.mark.broker

OPEN_MS = 10_000
"""Longer than the client's patience with a request, so that the broker does not end the transaction first."""
JOBS = 24


def rotations() -> float:
    return float(metrics.PRODUCER_ROTATIONS.labels(reason="late")._value.get())


@contextmanager
def beside(kafka: str, prefix: str) -> Iterator[tuple[KafkaProxy, Installation, Installation]]:
    """A proxy, an installation, and the same one as it is seen through the proxy."""
    with kafka_proxy(kafka) as proxy, installation(kafka, prefix, partitions=1) as here:
        through = Connection(proxy.bootstrap, {"socket.timeout.ms": 1_000})
        yield proxy, here, Installation(through, here.topology)


@pytest.mark.parametrize("mode", ["silent", "drop"])
def test_after_a_commit_that_was_left_behind_in_the_network_the_producer_is_replaced(
    kafka: str, prefix: str, mode: Mode
) -> None:
    jobs = [f"job-{number}" for number in range(12)]
    with beside(kafka, prefix) as (proxy, here, through):
        here.engines.append(through.engine(transaction_timeout_ms=OPEN_MS))
        here.submit(jobs[:4])
        here.until(lambda: len(here.events(JobSubmitted)) == 4)
        before = rotations()

        proxy.hold_next(END_TXN, mode)
        here.submit(jobs[4:8])
        here.until(lambda: len(here.events(JobSubmitted)) == 8)
        assert proxy.has_held.is_set()
        here.submit(jobs[8:])
        here.until(lambda: len(here.events(JobSubmitted)) == 12)
        proxy.release()
        here.submit(["last"])
        here.until(lambda: len(here.events(JobSubmitted)) == 13)

        assert rotations() == before + 1
        events = here.all_events()
        assert [event.job_id for event in events] == [*jobs, "last"]
        assert txns_are_whole(events)


@dataclass(slots=True)
class Late:
    """Delivers the commit that the proxy holds while a later transaction is half written."""

    proxy: KafkaProxy
    events: str
    replaces: bool
    """Whether the scheduler may replace a producer that it suspects, as it does."""
    visible: Callable[[], int]
    """How many events readers of committed records see by now."""
    answer: int | None = None
    """What the broker said to it."""

    def output(self, inner: Output) -> "LateOutput":
        return LateOutput(inner, self)

    def wrote(self, topic: str, value: bytes | None, flush: Callable[[], None]) -> None:
        """Called after each record of a transaction."""
        if topic != self.events or self.answer is not None or not self.proxy.has_held.is_set():
            return
        event = CODEC.decode(value or b"")
        assert isinstance(event, JobSubmitted)
        if event.txn.index == 0 and event.txn.size > 1:
            flush()
            before = self.visible()
            self.answer = self.proxy.release()
            if self.answer == 0:
                # The broker answers before it has written the marker: what is written in between is not torn off.
                eventually(lambda: self.visible() > before)


class LateOutput(FaultyOutput):
    """A producer whose transaction is met by the late commit."""

    def __init__(self, inner: Output, late: Late) -> None:
        super().__init__(inner, Faults())
        self._late = late

    def produce(self, topic: str, value: bytes | None, key: bytes | None, partition: int, /) -> None:
        super().produce(topic, value, key, partition)
        self._late.wrote(topic, value, self.inner.flush)

    def is_suspect(self) -> bool:
        return self._late.replaces and super().is_suspect()


class LateKafka(FaultyKafka):
    """The real Kafka, its producers met by the late commit."""

    def __init__(self, through: Installation, late: Late) -> None:
        options = client_options(through.topology, "a", transaction_timeout_ms=OPEN_MS)
        super().__init__(through.connection, options, Faults())
        self._late = late

    def output(self, transactional_id: str) -> Any:
        return LateOutput(super().output(transactional_id).inner, self._late)


def meet_in_mid_transaction(kafka: str, prefix: str, mode: Mode, *, replaces: bool) -> tuple[Late, VerifyReport]:
    """Lets a commit come late, in the middle of a later transaction; the meeting, and what the auditor says then."""
    with beside(kafka, prefix) as (proxy, here, through):
        late = Late(
            proxy=proxy,
            events=here.topology.events.name,
            replaces=replaces,
            visible=lambda: len(here.events(JobSubmitted)),
        )
        here.engines.append(through.engine(kafka=lambda _: LateKafka(through, late), transaction_timeout_ms=OPEN_MS))
        here.submit(["first"])
        here.until(lambda: here.events(JobSubmitted))

        # given a commit that the network keeps, and which the client has sent again on another connection
        proxy.hold_next(END_TXN, mode)
        here.submit(["second"])
        here.until(lambda: len(here.events(JobSubmitted)) == 2)
        assert proxy.has_held.is_set()

        # when it comes while a transaction of several events has written the first of them
        here.submit(f"job-{number}" for number in range(JOBS))
        with suppress(FatalKafkaError):
            here.until(lambda: late.answer is not None and len(here.events(JobSubmitted)) >= 2 + JOBS)

        with KafkaLog(here.connection, here.topology) as log:
            return late, verify(log, CODEC)


@pytest.mark.parametrize("mode", ["silent", "drop"])
def test_a_late_commit_in_mid_transaction_is_refused_by_the_broker_and_the_audit_finds_nothing(
    kafka: str, prefix: str, mode: Mode
) -> None:
    late, report = meet_in_mid_transaction(kafka, prefix, mode, replaces=True)

    assert late.answer in {KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED}
    assert report.ok, [str(finding) for finding in report.findings]
    assert report.jobs == 2 + JOBS


@pytest.mark.parametrize("mode", ["silent", "drop"])
def test_where_a_suspicious_producer_is_kept_the_audit_finds_the_transaction_that_a_late_commit_has_torn(
    kafka: str, prefix: str, mode: Mode
) -> None:
    late, report = meet_in_mid_transaction(kafka, prefix, mode, replaces=False)

    assert late.answer == 0, "void: the broker has not taken the late commit for that of the later transaction"
    found = {finding.check: finding.detail for finding in report.findings}
    assert "events are visible; missing" in found[Check.TORN_TRANSACTION]
