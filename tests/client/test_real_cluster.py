"""The client with the real scheduler and a real worker: promises, and races with what runs."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mainspring.client import AsyncClient, Client, ClientConfig, CommandRejectedError, DuplicateJobError
from mainspring.client.handle import AsyncJobHandle
from mainspring.jobs.policy import RetryPolicy
from mainspring.schemas import JobStatus
from mainspring.schemas.events import JobCancelled, JobCompleted, JobFailed, JobStarted, JobTimedOut
from tests.client.cluster import block, executed, nap, running_cluster, stumble

pytestmark = pytest.mark.broker
LONG_S = 60.0
ROUNDS = 200
NOT_STARTED = {None, JobStatus.PENDING}
TERMINAL = (JobCompleted, JobFailed, JobTimedOut, JobCancelled)


@pytest.fixture(scope="module")
def config(kafka: str) -> Iterator[ClientConfig]:
    with running_cluster(kafka) as found:
        yield found


def name() -> str:
    return secrets.token_hex(8)


@contextmanager
def reported(rng_seed: int) -> Iterator[random.Random]:
    """Randomness whose seed a failure tells."""
    try:
        yield random.Random(rng_seed)
    except BaseException as error:
        error.add_note(f"seed {rng_seed}")
        raise


async def assert_one_life(handle: AsyncJobHandle) -> list[object]:
    """Revisions without a gap, one end, and nothing after it; the events."""
    events = [entry.event for entry in await handle.history(LONG_S)]
    moves = [event for event in events if type(event).__name__.startswith("Job")]
    assert [event.revision for event in moves] == list(range(1, len(moves) + 1))
    assert [isinstance(event, TERMINAL) for event in moves] == [False] * (len(moves) - 1) + [True]
    return list(events)


def test_a_result_comes_back_through_the_whole_system(config: ClientConfig) -> None:
    with Client(config=config) as client:
        # when
        handle = client.submit(nap.job("whole", 0.0))

        # then
        assert handle.accepted(LONG_S).seq is not None
        assert handle.result(LONG_S) == "whole"
        info = handle.get(LONG_S)
        assert (info.status, info.attempts, info.result, info.name) == (JobStatus.COMPLETED, 1, "whole", "nap")


def test_verdicts_are_those_of_the_real_scheduler(config: ClientConfig) -> None:
    with Client(config=config) as client:
        # given
        handle = client.submit(nap.job("twice", 0.0), job_id=name())
        handle.result(LONG_S)

        # then
        with pytest.raises(DuplicateJobError) as duplicate:
            client.submit(nap.job("twice", 0.0), job_id=handle.job_id).accepted(LONG_S)
        assert duplicate.value.status is JobStatus.COMPLETED
        assert client.submit(nap.job("x", 0.0), job_id=handle.job_id, if_exists="return").result(LONG_S) == "twice"
        with pytest.raises(CommandRejectedError) as queue:
            client.submit(nap.job("x", 0.0), queue="nowhere").accepted(LONG_S)
        assert queue.value.code == "UNKNOWN_QUEUE"
        with pytest.raises(CommandRejectedError) as terminal:
            client.reschedule(handle.job_id, delay=1)
        assert terminal.value.code == "ALREADY_TERMINAL"
        assert client.retry(handle.job_id).result(LONG_S) == "twice"
        assert not client.cancel(handle.job_id)
        assert client.cancel("nobody").code == "UNKNOWN_JOB"


def test_a_rescheduled_job_runs_at_its_new_time(config: ClientConfig) -> None:
    with Client(config=config) as client:
        # given
        handle = client.submit(nap.job("moved", 0.0), delay=3600)

        # when
        handle.reschedule(delay=0)

        # then
        assert handle.result(LONG_S) == "moved"


def test_a_new_client_finds_what_an_earlier_one_submitted(config: ClientConfig) -> None:
    # given
    with Client(config=config) as earlier:
        job_id = earlier.submit(nap.job("kept", 0.2)).job_id

    # then
    with Client(config=config) as later:
        assert later.handle(job_id).result(LONG_S) == "kept"


def test_a_cancelled_job_that_waits_for_its_retry_does_not_run_again(config: ClientConfig) -> None:
    with Client(config=config) as client:
        # given
        mine = name()
        retry = RetryPolicy(max_retries=5, base_delay=3600, max_delay=3600, jitter=False)
        handle = client.submit(stumble.job(mine, 0.0), retry=retry)
        while handle.status(LONG_S) is not JobStatus.RETRY_WAIT:
            handle.accepted(LONG_S)

        # when
        outcome = client.cancel(handle.job_id)

        # then
        assert outcome.took_effect
        assert handle.wait(LONG_S) is JobStatus.CANCELLED
        assert executed[mine] == 1


async def test_a_cancel_that_races_the_start_is_never_followed_by_one(config: ClientConfig) -> None:
    with reported(random.SystemRandom().randrange(1 << 32)) as rng:
        async with AsyncClient(config=config) as client:

            async def one_round() -> bool:
                mine = name()
                handle = await client.submit(nap.job(mine, 0.02))
                await asyncio.sleep(rng.uniform(0, 0.08))
                outcome = await handle.cancel("race", timeout=LONG_S)
                end = await handle.wait(LONG_S)
                events = await assert_one_life(handle)

                assert outcome.took_effect == (end is JobStatus.CANCELLED)
                assert end in {JobStatus.CANCELLED, JobStatus.COMPLETED}
                started = sum(isinstance(event, JobStarted) for event in events)
                assert executed.get(mine, 0) <= started <= 1
                return started == 0

            # when
            never_ran = [await one for one in asyncio.as_completed([one_round() for _ in range(ROUNDS)])]

    # then
    assert len(never_ran) == ROUNDS


async def test_a_cancel_within_milliseconds_of_the_return_leaves_exactly_one_outcome(config: ClientConfig) -> None:
    with reported(random.SystemRandom().randrange(1 << 32)) as rng:
        async with AsyncClient(config=config) as client:

            async def one_round() -> JobStatus:
                mine = name()
                handle = await client.submit(nap.job(mine, 0.1))
                while await handle.status(LONG_S) in NOT_STARTED:
                    await handle.accepted(LONG_S)
                await asyncio.sleep(rng.uniform(0.05, 0.15))
                outcome = await handle.cancel("race", timeout=LONG_S)
                end = await handle.wait(LONG_S)
                await assert_one_life(handle)

                assert outcome.took_effect == (end is JobStatus.CANCELLED)
                assert executed[mine] == 1
                return end

            # when
            ends = []
            for _ in range(ROUNDS // 40):
                ends += await asyncio.gather(*(one_round() for _ in range(40)))

    # then: both sides have won at times, or there was no race
    assert set(ends) == {JobStatus.CANCELLED, JobStatus.COMPLETED}


async def test_a_cancel_within_milliseconds_of_a_failure_stops_the_retry(config: ClientConfig) -> None:
    with reported(random.SystemRandom().randrange(1 << 32)) as rng:
        async with AsyncClient(config=config) as client:

            async def one_round() -> None:
                mine = name()
                retry = RetryPolicy(max_retries=3, base_delay=3600, max_delay=3600, jitter=False)
                handle = await client.submit(stumble.job(mine, 0.05), retry=retry)
                await asyncio.sleep(rng.uniform(0.0, 0.15))
                outcome = await handle.cancel("race", timeout=LONG_S)
                await assert_one_life(handle)

                assert outcome.took_effect
                assert await handle.wait(LONG_S) is JobStatus.CANCELLED
                assert executed.get(mine, 0) <= 1

            # when, then
            for _ in range(ROUNDS // 40):
                await asyncio.gather(*(one_round() for _ in range(40)))


def test_a_cancelled_thread_is_recorded_at_once_although_its_call_goes_on(config: ClientConfig) -> None:
    with Client(config=config) as client:
        # given
        handle = client.submit(block.job(name(), 2.0))
        while handle.status(LONG_S) in NOT_STARTED:
            handle.accepted(LONG_S)

        # when
        outcome = handle.cancel("stop", timeout=LONG_S)

        # then
        assert outcome.took_effect
        assert handle.status(LONG_S) is JobStatus.CANCELLED
