"""The fold: what it keeps, and what it refuses."""

from dataclasses import replace

import pytest

from mainspring.processors.core.errors import IllegalTransitionError, OrphanEventError, RevisionGapError
from mainspring.processors.core.job.evolve import NOT_OFFERED, evolve, fold, with_dispatch
from mainspring.schemas.common import JobStatus
from mainspring.schemas.records import JOB_EVENT_TYPES, JobEvent
from mainspring.schemas.tables import Dispatch
from tests.core.spec import Partition


def all_events() -> list[JobEvent]:
    """The events of a few jobs which together are of every type."""
    partition = Partition()
    partition.submit(max_retries=1, retry_base_delay_ms=0).start().fail().start().time_out()
    partition.submit("done").start("done").succeed("done").succeed("done", worker="w2")
    partition.submit("stopped").start("stopped").cancel("stopped").stopped("stopped")
    partition.submit("failed").start("failed").fail("failed")
    partition.submit("moved", delay_ms=10).reschedule(partition.now.wall_ms + 5, "moved").cancel("moved")
    partition.cancel("nobody")
    return partition.events


def test_the_events_of_every_type_fold_to_the_row_of_their_job() -> None:
    partition = Partition()
    partition.submit(max_retries=1, retry_base_delay_ms=0).start().fail().start().time_out()
    state = fold(partition.events)
    assert state == partition.state()
    assert state is not None
    assert (state.status, state.attempt, state.retries, state.revision) == (JobStatus.TIMED_OUT, 2, 1, 5)


def test_the_sample_has_an_event_of_every_type() -> None:
    assert {type(event) for event in all_events()} == JOB_EVENT_TYPES


def test_an_event_that_skips_a_revision_is_refused() -> None:
    partition = Partition().submit().start()
    submitted, started = partition.events
    with pytest.raises(RevisionGapError, match="event of revision 3 where 2 is next"):
        fold([submitted, replace(started, revision=3)])
    with pytest.raises(RevisionGapError):
        fold([replace(submitted, revision=2)])


def test_an_event_without_a_submit_before_it_is_refused() -> None:
    started = Partition().submit().start().events[-1]
    with pytest.raises(OrphanEventError, match="JobStarted without a row"):
        evolve(None, started)


def test_an_event_that_the_table_has_no_edge_for_is_refused() -> None:
    partition = Partition().submit().start().succeed()
    completed = partition.events[-1]
    with pytest.raises(IllegalTransitionError, match="JobCompleted is not allowed for a job that is COMPLETED"):
        evolve(partition.state(), replace(completed, revision=4))


def test_refusals_change_nothing_also_where_there_is_no_job() -> None:
    refusals = [event for event in all_events() if type(event).__name__ in {"CommandRejected", "ReportRefused"}]
    assert len(refusals) == 2
    done = Partition().submit().start().succeed().state()
    for refusal in refusals:
        assert evolve(None, refusal) is None
        assert evolve(done, refusal) is done


def test_other_dispatch_columns_are_no_transition() -> None:
    state = Partition().submit().state()
    offered = with_dispatch(state, Dispatch(offered_attempt=1, offer=1, offered_at_ms=5))
    assert replace(offered, dispatch=NOT_OFFERED) == state
    assert offered.dispatch.offered_attempt == 1


def test_every_transition_withdraws_an_offer() -> None:
    partition = Partition().submit(delay_ms=0).dispatch()
    assert partition.state().dispatch.offered_attempt == 1
    assert partition.reschedule(partition.now.wall_ms).state().dispatch == NOT_OFFERED
