"""What a view keeps of finished jobs; on both databases, without Kafka."""

from __future__ import annotations

import pytest

from mainspring.processors.projector import Retention
from mainspring.processors.projector.view import JobOrder, View
from mainspring.schemas import JobStatus
from tests.support.every_life import every_life
from tests.support.memory_view import ids, keep, memory, project
from tests.support.scheduler_double import SchedulerDouble
from tests.support.view_rows import dump


def test_only_finished_jobs_beyond_the_count_leave_the_view_the_oldest_first(
    double: SchedulerDouble, view_url: str
) -> None:
    every_life(double)
    project(memory(double), double.codec, view_url)
    with View(view_url) as view:
        newest = [job.job_id for job in view.list(order=JobOrder.FINISHED).jobs]

    assert keep(view_url, Retention(max_count=3), double.now_ms) == 6

    with View(view_url) as view:
        assert [job.job_id for job in view.list(order=JobOrder.FINISHED).jobs] == newest[:3]
        assert ids(view, status=(JobStatus.PENDING, JobStatus.RUNNING)) == {
            "waits",
            "moved",
            "runs",
            "stopping",
            "failed-again",
        }
        assert view.counts().total == 8
        assert view.events(newest[-1]) == ()
    rows = dump(view_url)
    assert {row[0] for row in rows["job_specs"]} == {row[0] for row in rows["jobs"]}


def test_finished_jobs_and_refusals_that_are_too_old_leave_the_view(double: SchedulerDouble, view_url: str) -> None:
    every_life(double)
    project(memory(double), double.codec, view_url)

    assert keep(view_url, Retention(max_age_ms=3_600_000), double.now_ms) == 0
    assert keep(view_url, Retention(max_age_ms=3_600_000), double.now_ms + 3_600_001) == 9

    with View(view_url) as view:
        assert view.rejections() == ()
        assert view.events("never-there") == ()
        assert view.counts().total == 5


def test_a_retention_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="max_count is -1"):
        Retention(max_count=-1)
