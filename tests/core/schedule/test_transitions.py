"""The transition table of schedules, and the fold that takes the status from it."""

from itertools import product

import pytest

from mainspring.processors.core.errors import ScheduleFoldError
from mainspring.processors.core.schedule.evolve import evolve_schedule
from mainspring.processors.core.schedule.transitions import (
    SCHEDULE_EDGES,
    SCHEDULE_RECORDS_ONLY,
    SCHEDULE_STAYS,
    apply_schedule_edge,
)
from mainspring.schemas.records import SCHEDULE_EVENT_TYPES
from mainspring.schemas.schedule import ScheduleStatus
from mainspring.schemas.schedule_events import ScheduleCreated, ScheduleDeleted, SchedulePaused
from tests.core.schedule.site import MINUTE, Site

TABLE = {**SCHEDULE_EDGES, **SCHEDULE_STAYS}


def test_every_event_of_a_schedule_is_in_the_table_or_changes_nothing() -> None:
    assert {event for _, event in TABLE} | SCHEDULE_RECORDS_ONLY == SCHEDULE_EVENT_TYPES
    assert not {event for _, event in TABLE} & SCHEDULE_RECORDS_ONLY


@pytest.mark.parametrize(("status", "event"), sorted(product([None, *ScheduleStatus], SCHEDULE_EVENT_TYPES), key=str))
def test_the_table_says_where_an_event_leads_and_refuses_every_other(
    status: ScheduleStatus | None, event: type[object]
) -> None:
    if (status, event) in TABLE:
        assert apply_schedule_edge("s", status, event) is TABLE[status, event]
    else:
        with pytest.raises(ScheduleFoldError, match=event.__name__):
            apply_schedule_edge("s", status, event)


def test_only_a_creation_begins_and_a_deletion_ends() -> None:
    assert [event for status, event in TABLE if status is None] == [ScheduleCreated]
    assert {status for status, event in TABLE if event is ScheduleDeleted} == set(ScheduleStatus)


def test_an_event_that_does_not_follow_is_refused() -> None:
    site = Site().create().later(MINUTE).pause()
    (paused,) = (each for each in site.events if isinstance(each, SchedulePaused))

    with pytest.raises(ScheduleFoldError, match="without a row"):
        evolve_schedule(None, paused)
    with pytest.raises(ScheduleFoldError, match="is next"):
        evolve_schedule(site.state(), paused)
