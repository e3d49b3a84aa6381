"""Enums of the language: numbers in the log and in comparisons, names for people."""

import json
import pickle

import pytest

from mainspring.jobs import JobPriority
from mainspring.schemas import CauseSource, JobStatus


@pytest.mark.parametrize("member", [*JobStatus, *JobPriority, *CauseSource])
def test_a_member_shows_its_name_and_stays_a_number(member: JobStatus | JobPriority | CauseSource) -> None:
    assert str(member) == f"{member}" == member.name
    assert f"{member:>12}" == member.name.rjust(12)
    assert "%s" % member == member.name  # noqa: UP031 - this is how logging does it
    assert json.dumps(member) == str(member.value)
    assert pickle.loads(pickle.dumps(member)) is member  # noqa: S301 - of this very process
    assert type(member)(int(member)) is member


def test_members_are_ordered_by_their_numbers() -> None:
    assert JobPriority.LOW < JobPriority.MEDIUM < JobPriority.HIGH < JobPriority.CRITICAL
    assert not JobStatus.PENDING
    assert [status for status in JobStatus if status.is_terminal] == sorted(JobStatus)[3:]
