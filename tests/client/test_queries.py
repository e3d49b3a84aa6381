"""`get`, `list` and `history`: by the view with the caller's own writes in it, or by the log alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer

from mainspring.client import (
    Client,
    ClientConfig,
    Filters,
    JobNotFoundError,
    Submission,
    ViewBehindError,
    ViewUnavailableError,
)
from mainspring.jobs.models import JobPriority
from mainspring.jobs.policy import RetryPolicy
from mainspring.schemas import JobStatus
from mainspring.topics import partition_for
from tests.client.cluster import projecting
from tests.client.fake_scheduler import FakeScheduler

pytestmark = pytest.mark.broker
LONG_S = 30.0


@pytest.fixture
def with_view(config: ClientConfig, tmp_path: Path) -> ClientConfig:
    return replace(config, view_url=f"sqlite:///{tmp_path / 'view.db'}")


def test_without_a_view_a_job_is_folded_from_the_log(client: Client, scheduler: FakeScheduler) -> None:
    # given
    retry = RetryPolicy(max_retries=2, base_delay=0.5, max_delay=8.0, jitter=False)
    deadline = datetime(2100, 1, 1, tzinfo=UTC)
    handle = client.submit(
        "ok", {"n": 1}, priority=JobPriority.HIGH, tenant="t", tags=("a",), timeout=2.5, retry=retry, deadline=deadline
    )
    handle.result(LONG_S)

    # when
    job = client.get(handle.job_id)

    # then
    assert (job.status, job.attempts, job.result, job.revision) == (JobStatus.COMPLETED, 1, {"n": 1}, 3)
    assert (job.priority, job.tenant, job.tags, job.timeout) == (JobPriority.HIGH, "t", ("a",), 2.5)
    assert (job.retry, job.deadline, job.seq) == (retry, deadline, 1)
    assert job.finished_at is not None


def test_without_a_view_get_waits_for_the_callers_own_submit(client: Client, scheduler: FakeScheduler) -> None:
    # given
    for n in range(10):
        handle = client.submit("wait", {"n": n})

        # then
        assert client.get(handle.job_id).status is JobStatus.PENDING


def test_without_a_view_an_unknown_job_is_not_found_and_a_list_says_what_it_needs(client: Client) -> None:
    with pytest.raises(JobNotFoundError) as caught:
        client.get("nobody")
    assert isinstance(caught.value, LookupError)
    with pytest.raises(ViewUnavailableError, match="view"):
        client.list()


def test_the_history_of_a_job_is_every_event_in_order(client: Client, scheduler: FakeScheduler) -> None:
    # given
    handle = client.submit("ok", job_id="told")
    handle.result(LONG_S)
    client.cancel("told")

    # when
    history = client.history("told")

    # then
    assert [type(entry.event).__name__ for entry in history] == [
        "JobSubmitted",
        "JobStarted",
        "JobCompleted",
        "CommandRejected",
    ]
    assert [entry.offset for entry in history] == sorted({entry.offset for entry in history})


@contextmanager
def never_resting(config: ClientConfig, job_id: str) -> Iterator[None]:
    """Others write to the job's partition of `events` more often than a fetch waits."""
    topic, partition = config.topology.events.name, partition_for(job_id.encode(), config.topology.partitions)
    producer = Producer(config.connection.producer_config(**{"linger.ms": 0}))
    stop, began = threading.Event(), threading.Event()

    def write() -> None:
        while not stop.wait(0.002):
            producer.produce(topic, b"not read", b"another key", partition=partition)
            producer.poll(0)
            began.set()
        producer.flush()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert began.wait(LONG_S)
        yield
    finally:
        stop.set()
        thread.join()


def test_the_history_of_a_job_ends_although_its_partition_never_rests(
    client: Client, config: ClientConfig, scheduler: FakeScheduler
) -> None:
    # given
    client.submit("ok", job_id="busy").result(LONG_S)

    # when
    with never_resting(config, "busy"):
        history = client.history("busy", timeout=LONG_S)
        info = client.get("busy", timeout=LONG_S)

    # then
    assert [type(entry.event).__name__ for entry in history] == ["JobSubmitted", "JobStarted", "JobCompleted"]
    assert info.status is JobStatus.COMPLETED


def test_the_view_answers_with_the_callers_own_commands_in_it(
    with_view: ClientConfig, scheduler: FakeScheduler
) -> None:
    with projecting(with_view), Client(config=with_view) as client:
        # given: the view exists from the first event on
        first = client.submit("ok", {"n": 0})
        first.result(LONG_S)

        for n in range(10):
            # when
            handle = client.submit("wait", {"n": n}, tags=("mine",))
            info = client.get(handle.job_id, timeout=LONG_S)
            cancelled = handle.cancel("enough")
            after = client.get(handle.job_id, timeout=LONG_S)

            # then
            assert info.status is JobStatus.PENDING
            assert cancelled
            assert (after.status, after.ended_code, after.ended_by) == (JobStatus.CANCELLED, "REQUESTED", "ada@host")
        page = client.list(Filters(status=[JobStatus.CANCELLED], tag="mine"), limit=7, timeout=LONG_S)
        rest = client.list(Filters(tag="mine"), limit=7, cursor=page.next_cursor, timeout=LONG_S)
        assert (len(page.jobs), len(rest.jobs), rest.next_cursor) == (7, 3, None)


def test_the_view_and_the_log_tell_the_same_of_a_job(with_view: ClientConfig, scheduler: FakeScheduler) -> None:
    with (
        projecting(with_view),
        Client(config=with_view) as by_view,
        Client(config=replace(with_view, view_url=None)) as by_log,
    ):
        # given
        retry = RetryPolicy(max_retries=2, base_delay=0.5, max_delay=8.0, jitter=False)
        done = by_view.submit("ok", {"n": 1}, retry=retry, timeout=3, tags=("a", "b"))
        failed = by_view.submit("fail", start_deadline=datetime.now(UTC) + timedelta(hours=1))
        timed_out = by_view.submit("timeout")
        cancelled, waiting = by_view.submit("wait"), by_view.submit("wait")
        cancelled.cancel("enough")
        timed_out.wait(LONG_S)
        done.wait(LONG_S)
        failed.wait(LONG_S)
        by_view.list(timeout=LONG_S)  # the view is there, and has seen all of it
        view = by_view._queries._view
        assert view is not None
        for handle in (done, failed, timed_out):
            last = by_view.history(handle.job_id)[-1]
            assert view.wait_for(last.partition, last.offset, LONG_S)

        # then
        for handle in (done, failed, timed_out, cancelled, waiting):
            viewed, folded = by_view.get(handle.job_id), by_log.get(handle.job_id)
            for field in type(viewed).__dataclass_fields__:
                assert getattr(viewed, field) == getattr(folded, field), field


def test_a_view_that_does_not_move_is_named_and_can_be_read_as_it_is(
    with_view: ClientConfig, scheduler: FakeScheduler
) -> None:
    with Client(config=with_view) as client:
        # given: a projector that has gone
        known = client.submit("wait")
        known.accepted(LONG_S)
        with projecting(with_view):
            view_sees(client, known.job_id)
        for handle in client.submit_many(Submission("wait") for _ in range(40)):
            handle.accepted(LONG_S)

        # when
        with pytest.raises(ViewBehindError):
            client.list(timeout=2.0)

        # then
        assert [job.job_id for job in client.list(fresh=False).jobs] == [known.job_id]
        assert client.get(known.job_id, fresh=False).status is JobStatus.PENDING


def view_sees(client: Client, job_id: str) -> None:
    """Until the view exists and knows the job."""
    seen = threading.Event()
    for _ in range(1000):
        try:
            client.list(Filters(text=job_id), timeout=LONG_S)
            return
        except ViewUnavailableError:
            seen.wait(0.02)
    raise AssertionError("no view")


def test_a_filter_with_a_naive_time_is_refused(with_view: ClientConfig, scheduler: FakeScheduler) -> None:
    with Client(config=with_view) as client:
        handle = client.submit("wait")
        handle.accepted(LONG_S)
        with projecting(with_view):
            view_sees(client, handle.job_id)
            with pytest.raises(ValueError, match="time zone"):
                client.list(Filters(since=datetime(2026, 1, 1)))  # noqa: DTZ001 - naive on purpose
        with pytest.raises(ValueError, match="time zone"):
            client.handle(handle.job_id, since=datetime(2026, 1, 1))  # noqa: DTZ001 - naive on purpose
