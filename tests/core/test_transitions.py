"""The transition table: exactly the edges of the design, and no way around it."""

from itertools import product

import pytest

from mainspring.processors.core.errors import IllegalTransitionError
from mainspring.processors.core.job.transitions import EDGES, RECORDS_ONLY, STAYS, TERMINAL, apply_edge, is_terminal
from mainspring.schemas.common import JobStatus
from mainspring.schemas.records import JOB_EVENT_TYPES

ALLOWED = {
    "PENDING": {"RUNNING", "CANCELLED"},
    "RUNNING": {"COMPLETED", "FAILED", "TIMED_OUT", "CANCELLED", "RETRY_WAIT"},
    "RETRY_WAIT": {"RUNNING", "CANCELLED"},
}


def test_the_table_has_exactly_the_edges_of_the_design() -> None:
    found: dict[str, set[str]] = {}
    for (before, _), after in EDGES.items():
        if before is not None:
            found.setdefault(before.name, set()).add(after.name)
    assert found == ALLOWED


def test_a_job_begins_in_one_way_only() -> None:
    assert [(event.__name__, after.name) for (before, event), after in EDGES.items() if before is None] == [
        ("JobSubmitted", "PENDING")
    ]


def test_terminal_is_final() -> None:
    assert {status for status in JobStatus if is_terminal(status)} == TERMINAL
    assert not [key for key in [*EDGES, *STAYS] if key[0] in TERMINAL]


def test_events_that_stay_do_stay() -> None:
    assert all(before is after for (before, _), after in STAYS.items())


def test_every_event_of_the_language_is_in_the_table_or_changes_nothing() -> None:
    assert {event for _, event in [*EDGES, *STAYS]} | RECORDS_ONLY == JOB_EVENT_TYPES


@pytest.mark.parametrize(("status", "event"), sorted(product([None, *JobStatus], JOB_EVENT_TYPES), key=str))
def test_what_is_not_in_the_table_is_refused_loudly(status: JobStatus | None, event: type[object]) -> None:
    expected = {**EDGES, **STAYS}.get((status, event))
    if expected is not None:
        assert apply_edge(status, event) is expected
        return
    with pytest.raises(IllegalTransitionError, match=event.__name__) as caught:
        apply_edge(status, event)
    assert (caught.value.status, caught.value.event) == (status, event)
