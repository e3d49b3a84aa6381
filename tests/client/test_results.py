"""Verdicts and results come to whoever waits, as values or as typed errors."""

from __future__ import annotations

import threading

import pytest

from mainspring.client import (
    Client,
    ClientClosedError,
    ClientConfig,
    CommandRejectedError,
    DuplicateJobError,
    EventsUnavailableError,
    JobCancelledError,
    JobFailedError,
    JobHandle,
    JobTimedOutError,
    ResultTimeoutError,
    Submission,
    VerdictTimeoutError,
)
from mainspring.schemas import Codec, JobStatus
from mainspring.topics import Connection, Topology
from tests.client.fake_scheduler import FakeScheduler

pytestmark = pytest.mark.broker
LONG_S = 30.0


def test_the_result_of_a_completed_job_is_decoded(client: Client, scheduler: FakeScheduler) -> None:
    # when
    handle = client.submit("ok", {"a": [1, "é", None]})

    # then
    assert handle.result(LONG_S) == {"a": [1, "é", None]}
    assert handle.status() is JobStatus.COMPLETED


def test_an_accepted_submit_tells_when_it_is_due_and_its_place(client: Client, scheduler: FakeScheduler) -> None:
    # when
    acceptance = client.submit("wait").accepted(LONG_S)

    # then
    assert acceptance.seq == 1
    assert acceptance.due_at is not None
    assert acceptance.due_at.utcoffset() is not None
    assert not acceptance.existing


def test_a_failed_job_raises_with_what_the_handler_raised_as_data(client: Client, scheduler: FakeScheduler) -> None:
    # when
    with pytest.raises(JobFailedError) as caught:
        client.submit("fail", job_id="f").result(LONG_S)

    # then
    assert (caught.value.job_id, caught.value.attempts, caught.value.reason) == ("f", 1, "FAILED")
    assert caught.value.error is not None
    assert (caught.value.error.type, caught.value.error.message) == ("ValueError", "no good")


def test_a_job_that_was_lost_too_often_raises_without_an_error_of_its_own(
    client: Client, scheduler: FakeScheduler
) -> None:
    # when
    with pytest.raises(JobFailedError) as caught:
        client.submit("lost").result(LONG_S)

    # then
    assert (caught.value.reason, caught.value.error, caught.value.attempts) == ("LOST", None, 3)


def test_a_timed_out_job_is_told_apart_from_a_wait_that_timed_out(client: Client, scheduler: FakeScheduler) -> None:
    # when
    with pytest.raises(JobTimedOutError) as ended:
        client.submit("timeout").result(LONG_S)
    with pytest.raises(ResultTimeoutError) as waited:
        client.submit("hang").result(0.5)

    # then
    assert ended.value.timeout_ms == 50
    assert not isinstance(ended.value, TimeoutError)
    assert isinstance(waited.value, TimeoutError)
    assert waited.value.timeout_s == 0.5


def test_a_wait_can_be_repeated_after_it_timed_out(client: Client, scheduler: FakeScheduler) -> None:
    # given
    handle = client.submit("hang")
    handle.accepted(LONG_S)
    with pytest.raises(ResultTimeoutError) as caught:
        handle.result(0.05)

    # when
    scheduler.finish(handle.job_id, 42)

    # then
    assert handle.result(LONG_S) == 42
    assert caught.value.status in {JobStatus.RUNNING, JobStatus.PENDING}


def test_a_refused_submit_raises_from_every_question(client: Client, scheduler: FakeScheduler) -> None:
    # given
    handle = client.submit("refuse")

    # then
    for ask in (handle.accepted, handle.result, handle.wait, handle.status):
        with pytest.raises(CommandRejectedError) as caught:
            ask(LONG_S)
        assert caught.value.code == "UNKNOWN_QUEUE"
        assert caught.value.command == "SubmitJob"


def test_an_unanswered_submit_times_out_and_says_to_look_for_a_scheduler(
    client: Client, scheduler: FakeScheduler
) -> None:
    # given
    handle = client.submit("mute")

    # then
    with pytest.raises(VerdictTimeoutError, match="a scheduler"):
        handle.accepted(0.3)
    assert handle.status(LONG_S) is None


def test_a_second_submit_of_an_id_is_refused_and_does_not_show_the_fate_of_the_first(
    client: Client, scheduler: FakeScheduler
) -> None:
    # given
    first = client.submit("hang", job_id="one")
    first.accepted(LONG_S)

    # when
    second = client.submit("ok", job_id="one")
    with pytest.raises(DuplicateJobError) as caught:
        second.result(LONG_S)
    scheduler.finish("one", "first")

    # then
    assert caught.value.status is JobStatus.RUNNING
    assert first.result(LONG_S) == "first"
    with pytest.raises(DuplicateJobError):
        second.result(LONG_S)


def test_a_second_submit_can_return_the_existing_job(client: Client, scheduler: FakeScheduler) -> None:
    # given
    client.submit("ok", {"n": 1}, job_id="done").result(LONG_S)
    client.submit("hang", job_id="running").accepted(LONG_S)

    # when
    done = client.submit("ok", {"n": 2}, job_id="done", if_exists="return")
    running = client.submit("ok", job_id="running", if_exists="return")
    new = client.submit("ok", {"n": 3}, job_id="new", if_exists="return")

    # then
    assert done.accepted(LONG_S).existing
    assert done.result(LONG_S) == {"n": 1}
    assert running.status(LONG_S) is JobStatus.RUNNING
    scheduler.finish("running", "old")
    assert running.result(LONG_S) == "old"
    assert not new.accepted(LONG_S).existing
    assert new.result(LONG_S) == {"n": 3}


def test_the_result_of_a_job_that_finished_before_anyone_waited_is_there(
    client: Client, scheduler: FakeScheduler
) -> None:
    # given: two jobs that end; only one is waited for, so that the events of the other have passed by then
    early = client.submit("ok", {"n": 1})
    for _ in range(20):
        client.submit("ok", {"n": 2}).result(LONG_S)

    # then
    assert early.result(LONG_S) == {"n": 1}


def test_another_client_can_wait_for_a_job_by_its_id_alone(
    client: Client, config: ClientConfig, scheduler: FakeScheduler
) -> None:
    # given
    finished = client.submit("ok", {"n": 1})
    finished.result(LONG_S)
    running = client.submit("hang", job_id="no time in this id")
    running.accepted(LONG_S)

    # when
    with Client(config=config) as other:
        assert other.handle(finished.job_id).result(LONG_S) == {"n": 1}
        later = other.handle(running.job_id)
        assert later.status(LONG_S) is JobStatus.RUNNING
        scheduler.finish(running.job_id, "there")

        # then
        assert later.result(LONG_S) == "there"


@pytest.mark.timeout(300)
def test_ten_thousand_jobs_are_waited_for_at_once(client: Client, scheduler: FakeScheduler) -> None:
    # when
    handles = client.submit_many(Submission("ok", {"n": n}) for n in range(10_000))

    # then
    assert [handle.result(LONG_S * 3) for handle in handles] == [{"n": n} for n in range(10_000)]


def test_threads_wait_for_their_own_jobs_on_one_client(client: Client, scheduler: FakeScheduler) -> None:
    # given
    wrong: list[object] = []

    def work(number: int) -> None:
        for n in range(20):
            result = client.submit("ok", {"n": n, "by": number}).result(LONG_S)
            if result != {"n": n, "by": number}:
                wrong.append(result)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]

    # when
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    # then
    assert wrong == []


def test_closing_the_client_releases_who_waits(config: ClientConfig, scheduler: FakeScheduler) -> None:
    # given
    client = Client(config=config)
    handle = client.submit("hang")
    handle.accepted(LONG_S)
    errors: list[BaseException] = []
    started = threading.Event()

    def wait() -> None:
        started.set()
        try:
            handle.result(LONG_S)
        except ClientClosedError as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    started.wait()

    # when
    client.close()
    thread.join(LONG_S)

    # then
    assert len(errors) == 1
    with pytest.raises(ClientClosedError):
        client.submit("ok")
    with pytest.raises(ClientClosedError):
        handle.status()


def test_a_topic_with_another_partition_count_is_an_error_and_not_a_wait_for_ever(
    kafka: str, topology: Topology
) -> None:
    # given
    wrong = ClientConfig(
        connection=Connection(kafka),
        topology=Topology(prefix=topology.prefix, partitions=7),
        codec=Codec.embedded(),
        actor="a",
    )

    # when
    with Client(config=wrong) as client:
        handle: JobHandle = client.submit("ok")
        with pytest.raises(EventsUnavailableError) as caught:
            handle.status(LONG_S)

    # then
    assert "4 partitions" in str(caught.value)


def test_cancelled_jobs_say_by_whom_and_why(client: Client, scheduler: FakeScheduler) -> None:
    # given
    handle = client.submit("wait")

    # when
    assert client.cancel(handle.job_id, "no longer needed")

    # then
    with pytest.raises(JobCancelledError) as caught:
        handle.result(LONG_S)
    assert (caught.value.by, caught.value.reason, caught.value.code) == ("ada@host", "no longer needed", "REQUESTED")
