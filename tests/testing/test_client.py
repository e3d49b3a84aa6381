"""The kit as a client: the same calls, values and errors as the real one."""

import pytest

from mainspring.client import (
    CommandRejectedError,
    DuplicateJobError,
    InvalidJobError,
    JobNotFoundError,
    Submission,
)
from mainspring.client.client import Client
from mainspring.client.handle import JobHandle
from mainspring.jobs import App, AsyncJob, JobOptions, JobPriority, JobStatus, PayloadMismatchError
from mainspring.schemas.codes import RejectCode
from mainspring.schemas.events import JobStarted
from mainspring.testing import Mainspring, VirtualJobHandle
from mainspring.testing.async_client import AsyncVirtualClient, AsyncVirtualJobHandle

app = App("client")


@app.job(tags=("greeting",))
async def greet(name: str) -> str:
    return f"Hello, {name}!"


@app.register
class Add(AsyncJob):
    a: int
    b: int

    async def run(self) -> int:
        return self.a + self.b


def test_jobs_of_every_form_run_to_their_result(mainspring: Mainspring) -> None:
    handles = [
        mainspring.submit(greet.job("Ada")),
        mainspring.submit(greet, ["Grace"]),
        mainspring.submit("greet", {"name": "Mary"}),
        mainspring.submit(Add(1, 2, queue="default")),
    ]

    assert [handle.result() for handle in handles] == ["Hello, Ada!", "Hello, Grace!", "Hello, Mary!", 3]
    assert [handle.job_id for handle in handles] == ["greet-1", "greet-2", "greet-3", "Add-1"]


def test_a_job_has_the_terms_it_was_submitted_with(mainspring: Mainspring) -> None:
    job = mainspring.submit(greet.job("Ada"), job_id="mine", priority=JobPriority.HIGH, tenant="acme", timeout=3)

    info = job.get()

    assert (info.job_id, info.priority, info.tenant, info.timeout) == ("mine", JobPriority.HIGH, "acme", 3)
    assert (info.tags, info.status, info.run_at) == (("greeting",), JobStatus.PENDING, mainspring.now)


def test_many_jobs_are_checked_before_the_first_is_submitted(mainspring: Mainspring) -> None:
    bad = Submission(greet.job("x"), options=JobOptions(timeout=-1))

    with pytest.raises(InvalidJobError):
        mainspring.submit_many([greet.job("Ada"), bad])
    assert mainspring.jobs() == ()

    handles = mainspring.submit_many([greet.job("Ada"), Submission(greet, ["Grace"])], tenant="acme")
    assert mainspring.join()
    assert [handle.get().tenant for handle in handles] == ["acme", "acme"]


def test_arguments_that_do_not_fit_are_refused_before_anything_is_sent(mainspring: Mainspring) -> None:
    with pytest.raises(PayloadMismatchError):
        mainspring.submit(greet, {"nam": "Ada"})
    assert mainspring.events() == ()


def test_a_known_id_is_refused_or_followed_as_asked(mainspring: Mainspring) -> None:
    first = mainspring.submit(greet.job("Ada"), job_id="one")
    again = mainspring.submit(greet.job("Grace"), job_id="one")
    followed = mainspring.submit(greet.job("Mary"), job_id="one", if_exists="return")

    with pytest.raises(DuplicateJobError):
        again.accepted()
    with pytest.raises(DuplicateJobError):
        again.result()
    assert followed.accepted().existing
    assert first.result() == followed.result() == "Hello, Ada!"


def test_a_queue_that_is_not_declared_is_refused(mainspring: Mainspring) -> None:
    job = mainspring.submit(greet.job("Ada"), queue="elsewhere")

    with pytest.raises(CommandRejectedError) as caught:
        job.result()
    assert caught.value.code == RejectCode.UNKNOWN_QUEUE


@pytest.mark.mainspring(queues=("default", "slow"), workers=0)
def test_a_worker_serves_its_queues_only(mainspring: Mainspring) -> None:
    slow = mainspring.start_worker(queues=("slow",))
    quick, lazy = mainspring.submit(greet.job("Ada")), mainspring.submit(greet.job("Grace"), queue="slow")

    mainspring.advance("1m")
    quick.assert_status(JobStatus.PENDING)
    lazy.assert_completed()

    other = mainspring.start_worker(queues=("default",))
    mainspring.advance("1s")
    quick.assert_completed()
    started = {
        event.job_id: event.worker_id for event in mainspring.events(JobStarted) if isinstance(event, JobStarted)
    }
    assert started == {quick.job_id: other.worker_id, lazy.job_id: slow.worker_id}


def test_a_waiting_job_is_cancelled_at_once_and_never_starts(mainspring: Mainspring) -> None:
    job = mainspring.submit(greet.job("Ada"), delay=60)

    outcome = mainspring.cancel(job.job_id, "not needed")

    assert outcome.took_effect
    mainspring.advance("1h")
    job.assert_cancelled("REQUESTED")
    job.assert_events("JobSubmitted", "JobCancelled")
    assert mainspring.cancel(job.job_id).code == RejectCode.ALREADY_TERMINAL
    assert mainspring.cancel("nobody").code == RejectCode.UNKNOWN_JOB


def test_a_finished_job_runs_again_as_a_new_one(mainspring: Mainspring) -> None:
    job = mainspring.submit(greet.job("Ada"))
    with pytest.raises(CommandRejectedError, match="NOT_TERMINAL"):
        job.retry()
    job.wait()

    again = job.retry("once more")

    assert again.job_id == "greet-2"
    assert again.result() == "Hello, Ada!"
    assert again.get().retry_of == job.job_id


def test_an_unknown_job_is_not_found(mainspring: Mainspring) -> None:
    with pytest.raises(JobNotFoundError):
        mainspring.get("nobody")


def test_history_gives_the_events_with_their_place(mainspring: Mainspring) -> None:
    first, second = mainspring.submit(greet.job("Ada")), mainspring.submit(greet.job("Grace"))
    mainspring.join()

    entries = [*first.history(), *mainspring.history(second.job_id)]

    assert sorted(entry.offset for entry in entries) == list(range(6))
    assert [entry.event for entry in first.history()] == list(first.events)


@pytest.mark.parametrize(
    ("mine", "real"),
    [
        (Mainspring, Client),
        (VirtualJobHandle, JobHandle),
        (AsyncVirtualClient, Client),
        (AsyncVirtualJobHandle, JobHandle),
    ],
)
def test_what_the_real_client_can_the_kit_can_too(mine: type, real: type) -> None:
    # `list` pages through the view, of which a test has none: `jobs()` has them all.
    wanted = {name for name in vars(real) if not name.startswith("_")} - {"list"}

    assert wanted - set(dir(mine)) == set()


async def test_the_async_client_awaits_what_the_kit_does(mainspring: Mainspring) -> None:
    client = mainspring.async_client

    async with client:
        one = await client.submit(greet.job("Ada"), delay=60)
        two, three = await client.submit_many([greet.job("Grace"), greet.job("Mary")], delay=60)
        assert (await one.accepted()).due_at == await one.reschedule(delay=60)
        assert await client.cancel(two.job_id)
        assert await three.wait() is JobStatus.COMPLETED
        assert await one.result() == "Hello, Ada!"
        assert await (await client.retry(one.job_id)).result() == "Hello, Ada!"
        assert (await client.get(two.job_id)).status is JobStatus.CANCELLED
        assert len(await client.history(three.job_id)) == len(await three.history())
        assert await client.handle(one.job_id).status() is JobStatus.COMPLETED
