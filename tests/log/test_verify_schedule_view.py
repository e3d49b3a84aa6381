"""The auditor compares the schedules of the view with the fold, exactly up to where the view stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from mainspring.log.verify import Check, VerifyReport, verify
from mainspring.processors.projector import Retention
from mainspring.processors.projector.view import View
from mainspring.schemas import DeleteSchedule, OccurrenceFired, Overlap, PauseSchedule
from tests.log.schedule_log import MINUTE, ScheduleLog
from tests.support.memory_view import keep, project
from tests.support.view_rows import execute


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'view.db'}"


def life() -> ScheduleLog:
    """Three fired, one of which has ended; then deleted and made anew, fired once more, and paused."""
    log = ScheduleLog().create(overlap=Overlap.ALLOW_ALL).later(MINUTE).later(MINUTE).later(MINUTE)
    log.run(log.events(OccurrenceFired)[0].job_id).command(DeleteSchedule)
    return log.create(overlap=Overlap.ALLOW_ALL, note="second").later(MINUTE).command(PauseSchedule, note="why")


def audit(log: ScheduleLog, url: str) -> VerifyReport:
    with View(url) as view:
        return verify(log.log, log.codec, view=view)


@pytest.mark.parametrize("upto", [0, 3, 8, 11, 14, None])
def test_a_view_of_schedules_that_is_the_fold_is_clean_wherever_it_stands(url: str, upto: int | None) -> None:
    log = life()
    project(log.log, log.codec, url, upto=upto)

    report = audit(log, url)

    assert report.ok, [str(finding) for finding in report.findings]
    assert report.view_schedules == (0 if upto == 0 else 1)
    assert report.schedules == 1


@pytest.mark.parametrize(
    ("damage", "check", "words"),
    [
        ("UPDATE schedules SET fired = 9", Check.VIEW_DIFFERS, "fired is 9 and the fold gives 1"),
        ("UPDATE schedules SET status = 'ACTIVE'", Check.VIEW_DIFFERS, "status is ACTIVE and the fold gives PAUSED"),
        (
            "UPDATE schedules SET definition = replace(definition, 'second', 'third')",
            Check.VIEW_DIFFERS,
            "its definition is not what was last accepted",
        ),
        ("UPDATE schedules SET schedule_id = 'stranger'", Check.VIEW_EXTRA, "'stranger'"),
        ("DELETE FROM schedules", Check.VIEW_ABSENT, "PAUSED by its events and not in the view"),
        (
            "DELETE FROM occurrences WHERE incarnation > 0",
            Check.VIEW_DIFFERS,
            "its ledger has 0 fired and 0 skipped, and the fold gives 1 and 0",
        ),
    ],
)
def test_a_seeded_difference_of_a_schedule_is_found_and_named(url: str, damage: str, check: Check, words: str) -> None:
    log = life()
    project(log.log, log.codec, url)
    execute(url, damage)

    findings = {finding.check: str(finding) for finding in audit(log, url).findings}

    assert words in findings.pop(check)
    assert set(findings) <= {Check.VIEW_ABSENT}  # a stranger in its place


def test_entries_that_a_view_no_longer_keeps_are_no_fault(url: str) -> None:
    log = life()
    project(log.log, log.codec, url)
    keep(url, Retention(max_count=0), log.now_ms)

    report = audit(log, url)

    assert report.ok, [str(finding) for finding in report.findings]
