"""What goes wrong around a transaction, injected at the ports of a real broker."""

import threading
from typing import Any

import pytest
from confluent_kafka import Producer

from mainspring.processors.engine.errors import FatalKafkaError, FaultKind
from mainspring.processors.engine.kafka import output
from mainspring.schemas import JobCompleted, JobSubmitted
from tests.engine.fake_worker import FakeWorker
from tests.engine.faults import Faults, failing, faulty
from tests.engine.leave import evict
from tests.engine.support import Installation, installation, txns_are_whole

pytestmark = pytest.mark.broker

JOBS = [f"job-{number}" for number in range(30)]
LIFE = ["JobSubmitted", "JobStarted", "JobCompleted"]


def assert_each_lived_once(here: Installation) -> None:
    events = here.all_events()
    assert txns_are_whole(events)
    for job in JOBS:
        assert [type(event).__name__ for event in events if event.job_id == job] == LIFE
        assert [event.revision for event in events if event.job_id == job] == [1, 2, 3]


@pytest.mark.parametrize("committed", [True, False], ids=["it had been committed", "it had not been committed"])
def test_a_commit_of_unknown_outcome_is_read_back_and_nothing_is_lost_or_doubled(
    kafka: str, prefix: str, committed: bool
) -> None:
    with installation(kafka, prefix) as here:
        faults = Faults()
        engine = here.engine(kafka=faulty(here.connection, here.topology, faults))
        here.helpers.append(FakeWorker(here.connection, here.topology))
        here.ready()

        when = "after" if committed else "before"
        faults.once(when, "commit", failing(FaultKind.UNKNOWN))
        here.submit(JOBS)
        here.until(lambda: here.events(JobSubmitted))
        faults.once(when, "commit", failing(FaultKind.UNKNOWN))
        here.until(lambda: len(here.events(JobCompleted)) == len(JOBS))

        assert_each_lived_once(here)
        assert "commit" not in faults.before
        assert "commit" not in faults.after
        assert len(engine.status().ready) == here.topology.partitions


@pytest.mark.parametrize("call", ["flush", "send_offsets", "commit"])
def test_an_aborted_transaction_is_decided_again_from_the_committed_state(kafka: str, prefix: str, call: str) -> None:
    with installation(kafka, prefix) as here:
        faults = Faults()
        here.engine(kafka=faulty(here.connection, here.topology, faults))
        here.helpers.append(FakeWorker(here.connection, here.topology))
        here.ready()
        tries = 0

        def fail_often(output: object) -> None:
            nonlocal tries
            tries += 1
            if tries % 3 != 0:
                failing(FaultKind.ABORT)(output)  # type: ignore[arg-type]  # it takes any output

        faults.before[call] = fail_often
        for job in JOBS:
            here.submit([job])
            here.until(lambda: len(here.events(JobSubmitted)) >= 1)
        here.until(lambda: len(here.events(JobCompleted)) == len(JOBS))

        assert tries > 6
        assert faults.calls.count("abort") >= tries // 2
        assert_each_lived_once(here)


def test_an_abort_that_breaks_the_producer_costs_a_producer_and_nothing_else(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix) as here:
        faults = Faults()
        here.engine(kafka=faulty(here.connection, here.topology, faults))
        here.helpers.append(FakeWorker(here.connection, here.topology))
        here.ready()
        faults.once("before", "flush", failing(FaultKind.ABORT))
        faults.once("before", "abort", failing(FaultKind.FATAL, "INVALID_TXN_STATE"))

        here.submit(JOBS)
        here.until(lambda: len(here.events(JobCompleted)) == len(JOBS))

        assert faults.calls.count("abort") == 1
        assert_each_lived_once(here)


def test_a_call_that_the_client_library_never_comes_back_from_costs_a_producer_and_nothing_else(
    kafka: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = threading.Event()
    hung: list[str] = []

    class Hanging(Producer):
        def send_offsets_to_transaction(self, *arguments: Any) -> None:
            if not hung:
                hung.append("here")
                never.wait()
            super().send_offsets_to_transaction(*arguments)

    monkeypatch.setattr(output, "Producer", Hanging)
    monkeypatch.setattr(output, "_STUCK_S", -4.5)
    with installation(kafka, prefix) as here:
        faults = Faults()
        here.engine(kafka=faulty(here.connection, here.topology, faults))
        here.helpers.append(FakeWorker(here.connection, here.topology))
        here.ready()

        here.submit(JOBS)
        here.until(lambda: len(here.events(JobCompleted)) == len(JOBS))
        never.set()

        assert hung
        assert faults.calls.count("abort") == 1
        assert_each_lived_once(here)


def test_a_call_that_may_be_repeated_is_repeated(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix) as here:
        faults = Faults()
        here.engine(kafka=faulty(here.connection, here.topology, faults))
        here.ready()
        for call in ("send_offsets", "commit"):
            faults.once("before", call, failing(FaultKind.RETRIABLE))

        here.submit(JOBS)
        here.until(lambda: len(here.events(JobSubmitted)) == len(JOBS))

        assert faults.calls.count("commit") > 1
        assert "abort" not in faults.calls
        assert len(here.all_events()) == len(JOBS)


def test_a_rebalance_in_the_middle_of_a_batch_loses_and_doubles_nothing(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix, partitions=4) as here:
        faults = Faults()
        first = here.engine("a", kafka=faulty(here.connection, here.topology, faults))
        here.helpers.append(FakeWorker(here.connection, here.topology))
        here.ready()

        def let_another_join(_: object) -> None:
            second = here.engine("b")
            for _ in range(40):
                second.step(10)

        faults.once("before", "flush", let_another_join)
        here.submit(JOBS)
        here.until(lambda: len(here.events(JobCompleted)) == len(JOBS))
        here.ready()

        assert "flush" not in faults.before
        assert len(first.status().ready) == 2
        assert_each_lived_once(here)


def test_an_evicted_owner_that_comes_back_in_mid_transaction_is_shut_out(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix) as here:
        faults = Faults()
        options = {"transaction_timeout_ms": 60_000}
        zombie = here.engine("a", kafka=faulty(here.connection, here.topology, faults, **options))
        here.ready()
        worker = FakeWorker(here.connection, here.topology)
        here.helpers.append(worker)

        def be_away(_: object) -> None:
            # The broker drops the member, which does not hear of it: it is in the middle of a transaction.
            here.abandon(zombie)
            evict(kafka, here.topology.group("scheduler"))
            here.engine("b")
            here.submit(JOBS[15:])
            here.until(lambda: len(here.events(JobCompleted)) == len(JOBS), "the heir doing all the work")

        faults.once("before", "flush", be_away)
        here.submit(JOBS[:15])
        with pytest.raises(FatalKafkaError, match="slot"):
            here.until(lambda: False)

        assert_each_lived_once(here)
        zombie.close()


def test_an_evicted_owner_that_comes_back_before_it_has_written_anything_is_refused_and_joins_again(
    kafka: str, prefix: str
) -> None:
    with installation(kafka, prefix) as here:
        faults = Faults()
        here.engine("a", kafka=faulty(here.connection, here.topology, faults, transaction_timeout_ms=60_000))
        here.ready()
        here.helpers.append(FakeWorker(here.connection, here.topology))

        def be_evicted(_: object) -> None:
            evict(kafka, here.topology.group("scheduler"))

        faults.once("before", "send_offsets", be_evicted)
        here.submit(JOBS)
        here.until(lambda: len(here.events(JobCompleted)) == len(JOBS))

        # Once for each partition at most: what is read before it hears of its eviction is refused, too.
        assert 1 <= faults.calls.count("abort") <= 2
        assert faults.calls[:3] == ["begin", "send_offsets", "abort"]
        assert_each_lived_once(here)
