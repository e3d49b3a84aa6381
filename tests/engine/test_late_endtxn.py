"""A commit that is delayed in the network must not end a later transaction."""

import pytest

from mainspring.schemas import JobSubmitted
from mainspring.telemetry import metrics
from mainspring.topics import Connection
from tests.engine.support import Installation, installation, txns_are_whole
from tests.support.proxy import END_TXN, Mode, kafka_proxy

pytestmark = pytest.mark.broker


def rotations() -> float:
    return float(metrics.PRODUCER_ROTATIONS.labels(reason="late")._value.get())


@pytest.mark.parametrize("mode", ["silent", "drop"])
def test_after_a_commit_that_was_left_behind_in_the_network_the_producer_is_replaced(
    kafka: str, prefix: str, mode: Mode
) -> None:
    jobs = [f"job-{number}" for number in range(12)]
    with kafka_proxy(kafka) as proxy, installation(kafka, prefix, partitions=1) as here:
        through = Connection(proxy.bootstrap, {"socket.timeout.ms": 1_000})
        beside = Installation(through, here.topology)
        here.engines.append(beside.engine(transaction_timeout_ms=10_000))
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
