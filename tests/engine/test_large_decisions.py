"""Commands of a few bytes that bring about large records: many of them are many transactions, none too large."""

import time
from collections import Counter
from typing import Any

import pytest

from mainspring.schemas import (
    CreateSchedule,
    IntervalRule,
    JobCompleted,
    JobSpec,
    JobSubmitted,
    OccurrenceFired,
    RetryJob,
    ScheduleCreated,
    ScheduleSpec,
    ScheduleTiming,
    TriggerSchedule,
)
from tests.engine.fake_worker import FakeWorker
from tests.engine.support import Installation, installation, txns_are_whole

pytestmark = pytest.mark.broker

PAYLOAD = b"x" * 100_000
BUDGET = 450_000
"""Five of them spend it."""
A_DAY_MS = 86_400_000


def create(here: Installation, schedule_id: str) -> None:
    spec = ScheduleSpec(
        schedule_id=schedule_id,
        timing=ScheduleTiming(rules=(IntervalRule(every_ms=A_DAY_MS),)),
        job=JobSpec(job_id="", name="noop", payload=PAYLOAD),
    )
    asked: dict[str, Any] = {"command_id": "create", "actor": "test", "requested_at_ms": int(time.time() * 1_000)}
    here.produce(here.topology.commands, schedule_id.encode(), CreateSchedule(spec=spec, **asked))
    here.flush()


def trigger(here: Installation, schedule_id: str, count: int) -> None:
    for number in range(count):
        command = TriggerSchedule(
            schedule_id=schedule_id, command_id=f"trigger-{number}", actor="test", requested_at_ms=0
        )
        here.produce(here.topology.commands, schedule_id.encode(), command)
    here.flush()


def test_a_herd_of_triggers_of_a_large_schedule_is_many_small_transactions_through_a_restart_too(
    kafka: str, prefix: str
) -> None:
    with installation(kafka, prefix) as here:
        # Given a schedule with a large payload, and more triggers than one transaction may carry out, read together
        first = here.engine(max_decided_bytes=BUDGET)
        create(here, "large")
        here.until(lambda: here.events(ScheduleCreated))
        here.drop(first)
        trigger(here, "large", 60)

        # When the scheduler is replaced in the middle of them
        second = here.engine("b", max_decided_bytes=BUDGET)
        here.until(lambda: len(here.events(OccurrenceFired)) >= 10, "the first of them")
        here.drop(second)
        done_by_second = len([each for each in here.all_events() if isinstance(each, OccurrenceFired)])
        here.engine("b", max_decided_bytes=BUDGET)
        here.helpers.append(FakeWorker(here.connection, here.topology))
        here.until(lambda: len(here.events(JobCompleted)) == 60, "every instance")

        # Then each has been carried out once, in their order, and no transaction was large
        fired = [each for each in here.all_events() if isinstance(each, OccurrenceFired)]
        assert done_by_second < 60
        assert [each.cause.offset for each in fired] == sorted({each.cause.offset for each in fired})
        assert len({each.job_id for each in here.events(JobSubmitted)}) == len(here.events(JobSubmitted)) == 60
        per_txn = Counter(each.txn.id for each in fired)
        assert 2 <= max(per_txn.values()) <= 6
        assert txns_are_whole(here.all_events())


def test_many_retries_of_a_large_job_are_several_transactions(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        here.engine(max_decided_bytes=BUDGET)
        here.helpers.append(FakeWorker(here.connection, here.topology))
        here.submit(["large"], payload=PAYLOAD)
        here.until(lambda: here.events(JobCompleted))

        for number in range(25):
            again = RetryJob(
                job_id="large", new_job_id=f"again-{number}", command_id=f"c-{number}", actor="test", requested_at_ms=0
            )
            here.produce(here.topology.commands, b"large", again)
        here.flush()
        here.until(lambda: len(here.events(JobCompleted)) == 26)

        retried = [each.job_id for each in here.events(JobSubmitted) if each.spec.retry_of == "large"]
        assert retried == [f"again-{number}" for number in range(25)]
