"""SubmitJob: accepted once, due when asked, refused with a reason."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.processors.core import FIFOStrategy, Now, QueueRules, Rules
from mainspring.schemas.bounds import DELAY_MAX_MS, INSTANT_MAX_MS, PAYLOAD_MAX_BYTES
from mainspring.schemas.codes import RejectCode
from mainspring.schemas.commands import SubmitJob
from mainspring.schemas.common import CauseSource, JobStatus
from mainspring.schemas.events import CommandRejected, JobSubmitted
from mainspring.schemas.job import JobSpec
from tests.core.spec import NOON, START_MONO, Partition


def test_a_job_without_a_time_is_due_when_it_is_accepted() -> None:
    event = Partition().submit().event(JobSubmitted)
    assert event.due_at_ms == event.decided_at_ms == NOON


def test_what_the_command_said_is_in_the_event() -> None:
    partition = Partition().submit(command_id="c1", tenant="acme", payload=b"{}")
    event = partition.event(JobSubmitted)
    assert (event.command_id, event.actor, event.reason) == ("c1", "ada", "because")
    assert event.spec == partition.rows.specs["job"]
    assert event.cause.source is CauseSource.COMMANDS


def test_accepted_jobs_are_numbered_in_order_and_refused_ones_are_not() -> None:
    partition = Partition().submit("a").submit("a").submit("b", queue="nowhere").submit("c")
    assert (partition.state("a").seq, partition.state("c").seq, partition.core.next_seq) == (0, 1, 2)


@pytest.mark.parametrize(
    ("delay_ms", "due"),
    [
        (2147483647, "2026-01-26T08:31:23.647+00:00"),
        (2147483648, "2026-01-26T08:31:23.648+00:00"),
        (4294967296, "2026-02-20T05:02:47.296+00:00"),
    ],
)
def test_a_delay_beyond_32_bits_is_the_delay_it_says(delay_ms: int, due: str) -> None:
    partition = Partition().submit(delay_ms=delay_ms)
    assert datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=partition.state().due_at_ms) == (
        datetime.fromisoformat(due)
    )
    partition.later(delay_ms - 1).dispatch()
    assert partition.offers == []
    partition.later(1).dispatch()
    assert len(partition.offers) == 1


@pytest.mark.parametrize("spec", [{"run_at_ms": NOON - 1000}, {"run_at_ms": 0}, {"delay_ms": 0}])
def test_a_time_that_has_passed_means_now_and_runs_once(spec: dict[str, Any]) -> None:
    partition = Partition().submit(**spec)
    assert partition.state().due_at_ms == NOON
    partition.start().succeed().taken_over().later(60_000).dispatch()
    assert len(partition.offers) == 1


@given(
    run_at_ms=st.none() | st.integers(-1, INSTANT_MAX_MS + 1),
    delay_ms=st.none() | st.integers(-1, DELAY_MAX_MS + 1),
    lag_ms=st.integers(-10_000_000, 10_000_000),
)
def test_a_job_is_never_due_before_it_is_accepted_nor_later_because_a_clients_clock_is_ahead(
    run_at_ms: int | None, delay_ms: int | None, lag_ms: int
) -> None:
    partition = Partition()
    command = SubmitJob(
        command_id="c",
        actor="ada",
        requested_at_ms=NOON + lag_ms,
        spec=JobSpec(job_id="job", name="work", run_at_ms=run_at_ms, delay_ms=delay_ms),
    )
    (event,) = partition.apply(command, CauseSource.COMMANDS).last.events
    if isinstance(event, CommandRejected):
        both = run_at_ms is not None and delay_ms is not None
        out_of_range = not 0 <= (run_at_ms or 0) <= INSTANT_MAX_MS or not 0 <= (delay_ms or 0) <= DELAY_MAX_MS
        assert both or out_of_range
        return
    assert isinstance(event, JobSubmitted)
    asked = NOON if not (run_at_ms or delay_ms) else run_at_ms or NOON + min(lag_ms, 0) + (delay_ms or 0)
    assert event.due_at_ms == max(NOON, asked)


@pytest.mark.parametrize(
    ("spec", "code", "says"),
    [
        ({"queue": "nowhere"}, RejectCode.UNKNOWN_QUEUE, "not declared.*default"),
        ({"depends_on": ("other",)}, RejectCode.NOT_SUPPORTED, "depends_on"),
        ({"schedule_id": "daily"}, RejectCode.NOT_SUPPORTED, "schedule_id"),
        ({"name": ""}, RejectCode.INVALID_FIELD, "name"),
        ({"max_retries": -1}, RejectCode.INVALID_FIELD, "max_retries"),
        ({"run_at_ms": INSTANT_MAX_MS + 1}, RejectCode.INVALID_FIELD, "run_at_ms"),
        ({"payload": b"x" * (PAYLOAD_MAX_BYTES + 1)}, RejectCode.PAYLOAD_TOO_LARGE, "payload"),
    ],
)
def test_what_breaks_a_limit_is_refused_with_code_and_field(spec: dict[str, Any], code: RejectCode, says: str) -> None:
    partition = Partition().submit(**spec)
    event = partition.event(CommandRejected)
    assert (event.reject_code, event.command, event.revision, event.status) == (code, "SubmitJob", 0, None)
    assert re.search(says, event.message)
    assert partition.rows.states == {}
    assert partition.rows.specs == {}


def test_a_delay_that_ends_after_the_year_9999_is_refused_rather_than_failing_at_the_producer() -> None:
    spec = JobSpec(job_id="job", name="work", delay_ms=DELAY_MAX_MS)
    command = SubmitJob(command_id="c", actor="ada", requested_at_ms=INSTANT_MAX_MS, spec=spec)
    event = Partition(now=Now(INSTANT_MAX_MS, START_MONO)).apply(command, CauseSource.COMMANDS).event(CommandRejected)
    assert event.reject_code == RejectCode.INVALID_FIELD
    assert "year 9999" in event.message


def test_the_same_command_twice_is_one_job_and_no_second_answer() -> None:
    partition = Partition().submit(command_id="c1").submit(command_id="c1")
    assert partition.last.events == []
    assert partition.names() == ["JobSubmitted"]


def test_the_same_command_after_the_end_is_still_no_second_answer() -> None:
    partition = Partition().submit(command_id="c1").start().succeed().submit(command_id="c1")
    assert partition.last.events == []


def test_another_command_for_a_known_id_is_refused_with_the_state_of_the_job() -> None:
    partition = Partition().submit().start().submit()
    event = partition.event(CommandRejected)
    assert (event.reject_code, event.status, event.revision) == (RejectCode.DUPLICATE_JOB, "RUNNING", 2)
    assert partition.status() is JobStatus.RUNNING


def test_a_refusal_does_not_repeat_what_was_too_long() -> None:
    event = Partition().submit(command_id="x" * 100_000).event(CommandRejected)
    assert event.reject_code == RejectCode.INVALID_FIELD
    assert len(event.command_id) == 255


def test_a_declared_queue_is_accepted() -> None:
    rules = Rules(queues={"mail": QueueRules(strategy=FIFOStrategy())})
    assert Partition(rules).submit(queue="mail").event(JobSubmitted).spec.queue == "mail"
