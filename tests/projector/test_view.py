"""Lists, pages, counts and what a view tells of a job; on both databases, without Kafka."""

from __future__ import annotations

import pytest

from mainspring.processors.projector.view import JobOrder, JobSummary, View
from mainspring.schemas import CommandRejected, JobStatus, Priority, Txn
from tests.support.every_life import every_life
from tests.support.memory_view import ids, memory, project
from tests.support.scheduler_double import SchedulerDouble


def test_each_filter_finds_what_it_says(double: SchedulerDouble, view_url: str) -> None:
    every_life(double)
    double.submit("urgent_1", priority=Priority.CRITICAL, name="pay%roll", tags=("red",))
    project(memory(double), double.codec, view_url)

    with View(view_url) as view:
        assert ids(view, status=(JobStatus.RUNNING,)) == {"runs", "stopping"}
        assert ids(view, status=(JobStatus.FAILED, JobStatus.TIMED_OUT)) == {"failed", "timed-out"}
        assert ids(view, queue="bulk") == {"runs"}
        assert ids(view, name="slow") == {"runs"}
        assert ids(view, tenant="acme") == {"done"}
        assert ids(view, tag="red", priority=Priority.CRITICAL) == {"urgent_1"}
        assert ids(view, tag="green") == set()
        assert ids(view, text="FAILED") == {"failed", "failed-again"}
        assert ids(view, text="%") == {"urgent_1"}
        assert ids(view, text="_") == {"urgent_1"}
        assert ids(view, text="\x00") == set()
        done = view.get("done")
        assert done is not None
        assert "done" in ids(view, since_ms=done.submitted_at_ms)
        assert "done" not in ids(view, since_ms=done.submitted_at_ms + 1)
        assert ids(view, until_ms=done.submitted_at_ms) == set()
        assert len(ids(view)) == 15


@pytest.mark.parametrize("order", JobOrder)
@pytest.mark.parametrize("limit", [1, 3, 500])
def test_pages_together_are_the_list_in_order_without_a_gap_or_a_repeat(
    double: SchedulerDouble, view_url: str, order: JobOrder, limit: int
) -> None:
    every_life(double)
    project(memory(double), double.codec, view_url)

    with View(view_url) as view:
        found: list[JobSummary] = []
        cursor = None
        while True:
            page = view.list(order=order, limit=limit, cursor=cursor)
            found.extend(page.jobs)
            cursor = page.next_cursor
            if cursor is None:
                break

    keys = {
        JobOrder.NEWEST: lambda job: (-job.submitted_at_ms,),
        JobOrder.OLDEST: lambda job: (job.submitted_at_ms,),
        JobOrder.DUE: lambda job: (job.due_at_ms,),
        JobOrder.FINISHED: lambda job: (-(job.finished_at_ms or 0),),
    }
    expected = 9 if order is JobOrder.FINISHED else 14
    assert len(found) == len({job.job_id for job in found}) == expected
    assert found == sorted(found, key=keys[order])


def test_a_page_does_not_move_when_jobs_are_added_before_it(double: SchedulerDouble, view_url: str) -> None:
    for number in range(10):
        double.submit(f"job-{number}")
    project(memory(double), double.codec, view_url)
    with View(view_url) as view:
        first = view.list(limit=5)
    double.submit("newer")
    project(memory(double), double.codec, view_url)

    with View(view_url) as view:
        second = view.list(limit=5, cursor=first.next_cursor)

    assert [job.job_id for job in first.jobs + second.jobs] == [f"job-{9 - number}" for number in range(10)]


def test_a_page_of_another_order_or_of_no_size_is_refused(double: SchedulerDouble, view_url: str) -> None:
    double.submit("one")
    double.submit("two")
    project(memory(double), double.codec, view_url)

    with View(view_url) as view:
        cursor = view.list(limit=1).next_cursor
        for wrong in (cursor, "nonsense", "", "e30="):
            with pytest.raises(ValueError, match="is no cursor"):
                view.list(order=JobOrder.DUE, cursor=wrong)
        for limit in (0, 501):
            with pytest.raises(ValueError, match="1 to 500"):
                view.list(limit=limit)


def test_a_job_has_all_that_was_submitted_and_all_that_became_of_it(double: SchedulerDouble, view_url: str) -> None:
    double.submit("job", max_retries=3, timeout_ms=60_000, tags=("a", "b", "a"), tenant="acme", max_lost=7)
    double.start("job")
    double.fail("job", retry_in_ms=100)
    double.start("job", "worker-2")
    double.succeed("job", b"x" * 2_000)
    project(memory(double), double.codec, view_url)

    with View(view_url) as view:
        job = view.get("job")
        assert job is not None
        assert (job.status, job.attempt, job.retries, job.lost) == (JobStatus.COMPLETED, 2, 1, 0)
        assert (job.max_retries, job.max_lost, job.timeout_ms) == (3, 7, 60_000)
        assert job.tags == ("a", "b", "a")
        assert (job.payload, job.payload_bytes, job.content_type) == (b'{"x": 1}', 8, "application/json")
        # cut to what this view keeps, with the true size beside it
        assert (job.result, job.result_bytes) == (b"x" * 1_000, 2_000)
        assert (job.error_type, job.error_message) == ("ValueError", "no such thing")
        assert job.spec["retry_base_delay_ms"] == 1_000
        assert (job.submitted_by, job.worker_id) == ("tester", "worker-2")
        assert [(event.revision, event.type) for event in view.events("job")] == [
            (1, "JobSubmitted"),
            (2, "JobStarted"),
            (3, "JobRetryScheduled"),
            (4, "JobStarted"),
            (5, "JobCompleted"),
        ]
        assert view.events("job")[2].data["delay_ms"] == 100
        first, second = view.attempts("job")
        assert (first.outcome, first.error_traceback, first.retry_delay_ms) == ("FAILED", "Traceback …", 100)
        assert (second.outcome, second.error_type) == ("SUCCEEDED", None)
        assert view.get("nobody") is None
        assert view.get("nul\x00") is None
        assert ids(view, tenant="nul\x00") == set()
        assert view.events("nobody") == ()
        assert view.attempts("nobody") == ()


def test_how_an_attempt_ended_is_told_by_its_outcome(double: SchedulerDouble, view_url: str) -> None:
    every_life(double)
    project(memory(double), double.codec, view_url)

    with View(view_url) as view:
        outcomes = {
            job: [one.outcome for one in view.attempts(job)]
            for job in ("done", "failed", "timed-out", "lost", "released", "stopped", "runs", "cancelled", "waits")
        }
        ended = {
            job: found.ended_code for job in ("cancelled", "failed", "timed-out", "done") if (found := view.get(job))
        }
        stopping = view.get("stopping")

    assert outcomes == {
        "done": ["SUCCEEDED"],
        "failed": ["FAILED"],
        "timed-out": ["TIMED_OUT"],
        "lost": ["LOST", "SUCCEEDED"],
        "released": ["RELEASED", "SUCCEEDED"],
        "stopped": ["CANCELLED"],
        "runs": [None],
        "cancelled": [],
        "waits": [],
    }
    assert ended == {"cancelled": "REQUESTED", "failed": "FAILED", "timed-out": "TIMED_OUT", "done": None}
    assert stopping is not None
    assert stopping.is_cancelling
    assert stopping.cancel_reason == "no longer needed"


def test_counts_are_those_of_the_rows(double: SchedulerDouble, view_url: str) -> None:
    every_life(double)
    project(memory(double), double.codec, view_url)

    with View(view_url) as view:
        counts = view.counts()
        assert counts.total == 14
        for status in JobStatus:
            assert counts.by_status.get(status, 0) == len(ids(view, status=(status,)))
        assert counts.by_queue["bulk"] == {JobStatus.RUNNING: 1}


def test_refused_commands_are_told_with_their_code(double: SchedulerDouble, view_url: str) -> None:
    every_life(double)
    project(memory(double), double.codec, view_url)

    with View(view_url) as view:
        assert [(each.job_id, each.code) for each in view.rejections()] == [
            ("done", "ALREADY_TERMINAL"),
            ("never-there", "UNKNOWN_JOB"),
        ]
        assert [each.status for each in view.rejections(job_id="done")] == ["COMPLETED"]
        assert view.events("done")[-1].type == "CommandRejected"


def test_what_no_database_can_hold_does_not_stop_the_view(double: SchedulerDouble, view_url: str) -> None:
    # given refusals of commands with an endless id and with NUL in every text
    for number, odd in enumerate(("x" * 9_000, "nul\x00id")):
        double.emit(
            CommandRejected(
                job_id=odd,
                revision=0,
                decided_at_ms=double.tick(),
                cause=double.timer(odd),
                command_id=f"c\x00{number}",
                command="CancelJob",
                actor="a\x00",
                reject_code="INVALID_FIELD",
                message="job_id \x00 is no id",
                txn=Txn(id=0, index=0, size=0),
            )
        )

    project(memory(double), double.codec, view_url)

    with View(view_url) as view:
        assert {each.job_id for each in view.rejections()} == {"x" * 255, "nul\ufffdid"}
        assert len(view.events("x" * 255)) == 1


def test_an_id_that_is_used_again_shows_its_present_life(double: SchedulerDouble, view_url: str) -> None:
    double.submit("job", tags=("old",), queue="bulk")
    double.start("job")
    double.succeed("job", b"old")
    double.evict("job")
    double.submit("job", tags=("new",))
    double.start("job", "worker-2")
    project(memory(double), double.codec, view_url)

    with View(view_url) as view:
        job = view.get("job")
        assert job is not None
        assert (job.status, job.tags, job.result, job.revision) == (JobStatus.RUNNING, ("new",), None, 2)
        assert [(one.worker_id, one.outcome) for one in view.attempts("job")] == [("worker-2", None)]
        assert ids(view, tag="old") == set()
        assert view.counts().by_queue == {"default": {JobStatus.RUNNING: 1}}
        assert len(view.events("job")) == 5


def test_a_copy_of_an_old_event_does_not_take_back_how_a_job_ended(double: SchedulerDouble, view_url: str) -> None:
    # given a job that has ended, and the event of its submit written to the log once more
    double.submit("job")
    events, partition = double.topology.events, double.partition("job")
    log = memory(double)
    (submitted,) = (raw for raw in log.records[events.name, partition] if raw is not None)
    double.start("job")
    double.succeed("job", b"1")
    log.append(events, partition, submitted.key, submitted.value, submitted.timestamp_ms)

    # when a view is made
    project(log, double.codec, view_url)

    # then the job is what it was, and the copy is told of
    with View(view_url) as view:
        job = view.get("job")
        assert job is not None
        assert (job.status, job.result, job.revision) == (JobStatus.COMPLETED, b"1", 3)
        assert ["was submitted already" in each.detail for each in view.unreadable()] == [True]
