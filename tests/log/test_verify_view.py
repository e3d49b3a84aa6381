"""The auditor compares the view with the fold, exactly up to where the view stands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mainspring.log.verify import Check, VerifyReport, verify
from mainspring.processors.projector import Retention
from mainspring.processors.projector.tables import jobs
from mainspring.processors.projector.view import View
from mainspring.schemas import JobCancelled, JobCompleted, JobState
from tests.log.conftest import Written
from tests.support.memory_view import keep, project
from tests.support.view_rows import execute


@pytest.fixture
def view_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'view.db'}"


def audit(written: Written, url: str) -> VerifyReport:
    with View(url) as view:
        return verify(written.log, written.codec, view=view)


def test_a_view_that_is_the_fold_is_clean_and_its_rows_are_counted(written: Written, view_url: str) -> None:
    project(written.log, written.codec, view_url)

    report = audit(written, view_url)

    assert report.ok, [str(finding) for finding in report.findings]
    assert report.view_rows == report.jobs == 14


def test_a_view_that_lags_is_compared_with_the_log_as_it_was_there(written: Written, view_url: str) -> None:
    project(written.log, written.codec, view_url, upto=12)

    report = audit(written, view_url)

    assert report.ok, [str(finding) for finding in report.findings]
    assert report.view_rows is not None
    assert 0 < report.view_rows < 14


@pytest.mark.parametrize(
    ("damage", "check", "job_id"),
    [
        ("UPDATE jobs SET retries = 9 WHERE job_id = 'runs'", Check.VIEW_DIFFERS, "runs"),
        ("UPDATE jobs SET status = 'FAILED' WHERE job_id = 'done'", Check.VIEW_DIFFERS, "done"),
        ("DELETE FROM jobs WHERE job_id = 'waits'", Check.VIEW_ABSENT, "waits"),
        ("DELETE FROM jobs WHERE job_id = 'done'", Check.VIEW_ABSENT, "done"),
        (
            "INSERT INTO jobs SELECT 'stranger', {columns} FROM jobs WHERE job_id = 'waits'",
            Check.VIEW_EXTRA,
            "stranger",
        ),
    ],
)
def test_a_seeded_difference_of_the_view_is_found_and_named(
    written: Written, view_url: str, damage: str, check: Check, job_id: str
) -> None:
    project(written.log, written.codec, view_url)
    execute(view_url, damage.replace("{columns}", columns_but_id()))

    report = audit(written, view_url)

    assert [(finding.check, finding.job_id) for finding in report.findings] == [(check, job_id)]


def columns_but_id() -> str:
    return ", ".join(f'"{column.name}"' for column in jobs.columns if column.name != "job_id")


def test_a_view_that_lost_an_event_shows(written: Written, view_url: str) -> None:
    # given a view that was folded from a log with one event less
    partition, offset = written.log.find(written.codec, written.topology.events, JobCompleted, job_id="retried")
    records = written.log.records[written.topology.events.name, partition]
    kept, records[offset] = records[offset], None
    project(written.log, written.codec, view_url)
    records[offset] = kept

    report = audit(written, view_url)

    (finding,) = report.findings
    assert (finding.check, finding.job_id) == (Check.VIEW_DIFFERS, "retried")
    assert "status is RUNNING and the fold gives COMPLETED" in finding.detail


def test_finished_jobs_that_a_view_no_longer_keeps_are_no_fault(written: Written, view_url: str) -> None:
    project(written.log, written.codec, view_url)
    removed = keep(view_url, Retention(max_count=2), written.double.now_ms)

    report = audit(written, view_url)

    assert removed == 7
    assert report.ok, [str(finding) for finding in report.findings]
    assert report.view_rows == 7


def test_text_that_a_database_cannot_hold_is_no_difference(empty: Written, view_url: str) -> None:
    empty.double.submit("job", delay_ms=1_000)
    cancel_with_nul(empty)

    project(empty.log, empty.codec, view_url)

    assert audit(empty, view_url).ok


def cancel_with_nul(written: Written) -> None:
    """As a client without our checks may have asked, in the event and in the row."""
    written.double.cancel("job")
    cancel = written.double.states["job"].cancel
    assert cancel is not None
    topic, changelog = written.topology.events, written.topology.scheduler_changelog
    at = written.log.find(written.codec, topic, JobCancelled, job_id="job")
    written.log.edit(written.codec, topic, *at, reason="a\x00b")
    at = written.log.find(written.codec, changelog, JobState, -1, job_id="job")
    written.log.edit(written.codec, changelog, *at, cancel=replace(cancel, reason="a\x00b"))
