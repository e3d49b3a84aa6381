"""Every job at any moment has one typed reason why it is not running."""

import pytest

from mainspring.processors.core import QueueRules, Rules
from mainspring.processors.core.explain import (
    Finished,
    NoSuchJob,
    Offered,
    Parked,
    QueueNotDeclared,
    Ready,
    Running,
    ScheduledUntil,
    WhyNot,
    explain,
)
from mainspring.schemas.codes import DeclineReason
from mainspring.schemas.common import JobStatus, Priority
from tests.core.spec import NOON, Partition


@pytest.mark.parametrize(
    ("partition", "why"),
    [
        (Partition(), NoSuchJob(job_id="job")),
        (Partition().submit(delay_ms=5), ScheduledUntil(due_at_ms=NOON + 5, after_attempt=0)),
        (
            Partition().submit(max_retries=1, retry_base_delay_ms=9, retry_jitter=False).start().fail(),
            ScheduledUntil(due_at_ms=NOON + 9, after_attempt=1),
        ),
        (Partition().submit(), Ready(queue="default", ahead=0, in_flight=0, window=8)),
        (Partition().submit().dispatch(), Offered(attempt=1, offer=1, since_ms=NOON)),
        (
            Partition().submit().dispatch().decline(reason=DeclineReason.UNKNOWN_NAME),
            Parked(since_ms=NOON, until_ms=NOON + 1000),
        ),
        (Partition().submit().start(), Running(attempt=1, worker_id="w1", since_ms=NOON, cancel_requested=False)),
        (
            Partition().submit().start().cancel(),
            Running(attempt=1, worker_id="w1", since_ms=NOON, cancel_requested=True),
        ),
        (Partition().submit().cancel(), Finished(status=JobStatus.CANCELLED, finished_at_ms=NOON)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_reason_is_typed_and_said_in_words(partition: Partition, why: WhyNot) -> None:
    assert partition.why_not() == why
    assert len(str(why)) > 5


def test_a_ready_job_knows_how_many_are_ahead_and_whether_workers_are_full() -> None:
    partition = Partition(Rules(window_start=2))
    for number in range(5):
        partition.submit(f"high-{number}", priority=Priority.HIGH)
    why = partition.submit().dispatch().why_not()
    assert why == Ready(queue="default", ahead=3, in_flight=2, window=2)
    assert isinstance(why, Ready)
    assert why.window_is_full
    assert "behind 3 others" in str(why)
    assert "workers are full" in str(why)


def test_a_queue_that_is_no_longer_declared_is_the_reason() -> None:
    both = Rules(queues={"default": QueueRules(), "old": QueueRules()})
    rows = Partition(both).submit(queue="old").rows
    assert Partition(rows=rows).why_not() == QueueNotDeclared(queue="old")


def test_a_row_alone_explains_all_but_the_place_in_the_queue() -> None:
    state = Partition().submit().state()
    why = explain(state, NOON)
    assert why == Ready(queue="default")
    assert "waits for its turn" in str(why)
    later = Partition().submit(run_at_ms=NOON + 1).state()
    assert isinstance(explain(later, NOON), ScheduledUntil)
    assert explain(later, NOON + 1) == Ready(queue="default")
    assert explain(state, NOON - 1) == Ready(queue="default"), "it waits for no instant: the clock was set back"
