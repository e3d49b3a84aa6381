"""The projector on a real broker: events into a view, exactly, in both databases."""

from __future__ import annotations

import pytest

from mainspring.processors.projector.view import JobFilter, View
from mainspring.schemas import JobStatus
from tests.projector.conftest import Cluster, dump
from tests.support.synthetic_log import every_life

pytestmark = pytest.mark.broker


def test_every_life_of_a_job_is_in_the_view_as_its_events_tell_it(cluster: Cluster, view_url: str) -> None:
    # given one job of each kind
    every_life(cluster.double)

    # when they are projected
    status = cluster.project(view_url)

    # then the view has them all
    assert status.unreadable == 0
    with View(view_url) as view:
        found = {job.job_id: job for job in view.list(limit=500).jobs}
        assert {job_id: job.status.name for job_id, job in found.items()} == {
            "done": "COMPLETED",
            "retried": "COMPLETED",
            "failed": "FAILED",
            "timed-out": "TIMED_OUT",
            "lost": "COMPLETED",
            "released": "COMPLETED",
            "gone": "COMPLETED",
            "waits": "PENDING",
            "moved": "PENDING",
            "cancelled": "CANCELLED",
            "stopped": "CANCELLED",
            "runs": "RUNNING",
            "stopping": "RUNNING",
            "failed-again": "PENDING",
        }
        assert [(one.attempt, one.outcome, one.worker_id) for one in view.attempts("retried")] == [
            (1, "FAILED", "worker-1"),
            (2, "SUCCEEDED", "worker-2"),
        ]
