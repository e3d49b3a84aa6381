"""What a handle believes: the fold of its job's events, whatever is told twice or late."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.client.progress import Progress
from mainspring.client.watch import Start, Watch
from mainspring.jobs.ids import new_job_id, time_of_id
from mainspring.schemas import (
    Cause,
    CauseSource,
    CommandRejected,
    JobCancelRequested,
    JobCompleted,
    JobRetryScheduled,
    JobSpec,
    JobStarted,
    JobStatus,
    JobSubmitted,
    Txn,
)

CAUSE = Cause(source=CauseSource.COMMANDS, partition=0, offset=0)
COMMON: dict[str, Any] = {"job_id": "j", "decided_at_ms": 5, "cause": CAUSE, "txn": Txn(id=1, index=0, size=1)}
ASKED: dict[str, Any] = {"actor": "a", "reason": ""}


def submitted(command_id: str = "mine", revision: int = 1) -> JobSubmitted:
    spec = JobSpec(job_id="j", name="n")
    return JobSubmitted(
        **COMMON, **ASKED, revision=revision, command_id=command_id, requested_at_ms=1, seq=0, due_at_ms=1, spec=spec
    )


def life() -> list[Any]:
    start: dict[str, Any] = {"worker_id": "w", "incarnation": "i", "due_at_ms": 1}
    return [
        submitted(),
        JobStarted(**COMMON, revision=2, attempt=1, **start),
        JobRetryScheduled(**COMMON, revision=3, attempt=1, reason="FAILED", delay_ms=5, due_at_ms=9, retries=1, lost=0),
        JobStarted(**COMMON, revision=4, attempt=2, **start),
        JobCancelRequested(**COMMON, **ASKED, revision=5, command_id="c", attempt=2),
        JobCompleted(
            **COMMON,
            revision=6,
            attempt=2,
            worker_id="w",
            started_at_ms=1,
            finished_at_ms=2,
            result=b"1",
            content_type="application/json",
        ),
    ]


def rejection(command_id: str = "mine", code: str = "DUPLICATE_JOB") -> CommandRejected:
    return CommandRejected(
        **COMMON,
        revision=3,
        command_id=command_id,
        command="SubmitJob",
        actor="a",
        reject_code=code,
        message="m",
        status="RUNNING",
    )


@given(repeats=st.lists(st.integers(0, 5), max_size=20))
def test_telling_again_what_was_told_changes_nothing(repeats: list[int]) -> None:
    # given
    once, often = Progress(), Progress()
    for event in life():
        once.apply(event)

    # when
    for number, event in enumerate(life()):
        often.apply(event)
        for repeat in repeats:
            if repeat <= number:
                assert not often.apply(life()[repeat])

    # then
    for field in set(Progress.__slots__) - {"terminal"}:
        assert getattr(often, field) == getattr(once, field), field
    assert often.status is JobStatus.COMPLETED
    assert often.attempts == 2


@pytest.mark.parametrize("foreign", [submitted("other"), life()[1], life()[5], rejection("other")])
def test_before_its_own_verdict_a_handle_believes_nothing(foreign: Any) -> None:
    # given
    watch = Watch("j", 0, Start(offset=0), "mine")
    future = watch.wait_end()

    # when
    for resolve in watch.see(foreign, 7):
        resolve()

    # then
    assert watch.status is None
    assert not future.done()


def test_a_refused_handle_keeps_its_refusal_whatever_becomes_of_the_other_job() -> None:
    # given
    watch = Watch("j", 0, Start(offset=0), "mine")
    future = watch.wait_end()

    # when
    for event in (rejection(), life()[5]):
        for resolve in watch.see(event, 7):
            resolve()

    # then
    assert future.result(0) is None
    assert watch.status is None
    assert watch.ended


def test_a_handle_made_from_an_id_follows_its_latest_life() -> None:
    # given
    progress = Progress()
    for event in life():
        progress.apply(event)

    # when
    assert progress.apply(replace(submitted("other"), seq=1))

    # then
    assert (progress.status, progress.attempts, progress.terminal) == (JobStatus.PENDING, 0, None)


def test_an_id_that_is_submitted_anew_by_another_does_not_wake_the_old_handle() -> None:
    # given: the scheduler forgot the id after its history limit
    watch = Watch("j", 0, Start(offset=0), "mine")
    for event in life():
        watch.see(event, 7)

    # when
    watch.see(submitted("other"), 8)

    # then
    assert watch.status is JobStatus.COMPLETED


def test_drawn_ids_differ_sort_by_time_and_tell_it() -> None:
    # when
    ids = [new_job_id() for _ in range(10_000)]

    # then
    assert len(set(ids)) == len(ids)
    times = [time_of_id(one) or 0 for one in ids]
    assert times == sorted(times)
    assert times[0] > 1_700_000_000_000


@pytest.mark.parametrize(
    "other", ["", "job-1", "f47ac10b-58cc-4372-a567-0e02b2c3d479", "01A22D62-2485-7441-B49E-3D3C125F394A"]
)
def test_an_id_of_another_kind_tells_no_time(other: str) -> None:
    assert time_of_id(other) is None
