"""Is the auditor alive? Each check finds the one fault that is seeded for it, and names the record."""

from __future__ import annotations

import pytest

from mainspring.log.verify import Check, verify
from tests.log.conftest import Written
from tests.log.life_faults import LIFE_FAULTS
from tests.log.record_faults import RECORD_FAULTS, a_report_on_another_partition
from tests.log.seeding import Fault
from tests.log.table_faults import TABLE_FAULTS

FAULTS = [*RECORD_FAULTS, *LIFE_FAULTS, *TABLE_FAULTS]


@pytest.mark.parametrize(("fault", "check"), FAULTS, ids=lambda value: getattr(value, "__name__", None))
def test_the_auditor_finds_the_seeded_fault_and_names_its_record(written: Written, fault: Fault, check: Check) -> None:
    # given a log that is sound
    assert verify(written.log, written.codec).ok

    # when one fault is seeded in it
    place = fault(written)
    report = verify(written.log, written.codec)

    # then it is found, and the first record at fault is named
    assert not report.ok
    found = {finding.check: finding for finding in report.findings}
    assert check in found, [str(finding) for finding in report.findings]
    assert found[check].place == place, str(found[check])


def test_every_check_of_the_log_has_a_seeded_fault() -> None:
    of_the_view = {Check.VIEW_DIFFERS, Check.VIEW_ABSENT, Check.VIEW_EXTRA}  # seeded in test_verify_view.py
    of_schedules = {Check.LEDGER}  # seeded in test_verify_schedules.py
    assert {check for _, check in FAULTS} == set(Check) - of_the_view - of_schedules


def test_a_hundred_faults_of_one_kind_are_one_finding_with_their_number(written: Written) -> None:
    for _ in range(100):
        a_report_on_another_partition(written)

    (finding,) = verify(written.log, written.codec).findings

    assert (finding.check, finding.count) == (Check.WRONG_PARTITION, 100)
