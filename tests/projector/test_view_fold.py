"""A view is the fold of its log, for lives of any kind."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mainspring.processors.projector.view import View
from mainspring.schemas import Codec
from mainspring.topics import Topology
from tests.support.memory_view import memory, project, project_in_pieces
from tests.support.scheduler_double import SchedulerDouble
from tests.support.synthetic_log import MemoryLog
from tests.support.view_rows import dump

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["submit", "start", "succeed", "fail", "retry", "lose", "cancel", "release", "reject"]),
        st.integers(0, 4),
    ),
    max_size=40,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, cut=st.integers(0, 40))
def test_whatever_happened_the_view_is_the_fold_however_it_was_cut_into_batches(
    codec: Codec, tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], cut: int
) -> None:
    # given any lives of some jobs
    topology = Topology(partitions=2)
    double = SchedulerDouble(topology, codec, MemoryLog(topology))
    for step, number in steps:
        live(double, step, f"job-{number}")
    folder = tmp_path_factory.mktemp("views")
    whole, pieces = f"sqlite:///{folder / 'whole.db'}", f"sqlite:///{folder / 'pieces.db'}"

    # when they are folded at once, and event by event up to a cut and then the rest
    project(memory(double), codec, whole)
    project_in_pieces(memory(double), codec, pieces, cut)

    # then both views are the same, and their states are the fold
    assert dump(whole) == dump(pieces)
    with View(whole) as view, view.snapshot() as snapshot:
        assert {state.job_id: state for p in range(2) for state, _ in snapshot.states(p)} == double.states


def live(double: SchedulerDouble, step: str, job_id: str) -> None:
    """One step of a job's life, where its status allows it."""
    state = double.states.get(job_id)
    status = None if state is None else state.status.name
    match step, status:
        case "submit", None:
            double.submit(job_id, max_retries=9, max_lost=9)
        case "start", "PENDING" | "RETRY_WAIT":
            double.start(job_id)
        case "succeed", "RUNNING":
            double.succeed(job_id)
        case "fail" | "retry", "RUNNING" if state is not None and state.cancel is None:
            double.fail(job_id, retry_in_ms=5 if step == "retry" else None)
        case "lose", "RUNNING" if state is not None and state.cancel is None:
            double.lose(job_id)
        case "release", "RUNNING" if state is not None and state.cancel is None:
            double.release(job_id)
        case "cancel", "PENDING" | "RETRY_WAIT" | "RUNNING":
            double.cancel(job_id)
        case "reject", _:
            double.reject(job_id)
