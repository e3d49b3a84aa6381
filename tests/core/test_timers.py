"""Ticks are bounded, wakes are exact, and an idle partition sleeps."""

import pytest

from mainspring.processors.core import Now, PartitionCore, Rules, Wake
from mainspring.processors.core.errors import MissingSpecError, UnexpectedRecordError
from mainspring.schemas.codes import RejectCode
from mainspring.schemas.commands import CancelJob
from mainspring.schemas.common import CauseSource, Priority
from mainspring.schemas.events import CommandRejected
from tests.core.spec import NOON, START_MONO, Partition


def test_an_empty_partition_waits_for_nothing() -> None:
    assert Partition().core.wake_at() is None


def test_the_wake_is_when_the_first_job_is_due() -> None:
    partition = Partition().submit("b", delay_ms=10_000_000_000).submit("a", delay_ms=5000)
    assert partition.core.wake_at() == Wake(NOON + 5000, None)
    assert partition.cancel("a").core.wake_at() is not None
    wake = partition.core.wake_at()
    assert wake is not None
    assert wake.wall_ms == NOON + 7 * 86_400_000, "the cancelled job leaves the table before the other is due"


def test_a_ready_job_with_room_is_due_now() -> None:
    assert Partition().submit().core.wake_at() == Wake(None, START_MONO)


def test_an_offer_wakes_for_its_renewal_and_a_run_for_its_lease() -> None:
    partition = Partition().submit().dispatch()
    assert partition.core.wake_at() == Wake(None, START_MONO + 1000)
    assert partition.claim().core.wake_at() == Wake(None, START_MONO + 10_000)


def test_a_job_that_falls_due_changes_no_row_until_it_is_offered() -> None:
    partition = Partition().submit(delay_ms=1000)
    before = partition.state()
    partition.later(1000).tick()
    assert partition.state() is before
    assert partition.last.events == []


def test_a_crowd_due_at_one_instant_is_moved_in_growing_slices_and_an_urgent_job_passes_it() -> None:
    partition = Partition(Rules(window_start=1))
    for number in range(12_000):
        partition.submit(f"crowd-{number}", run_at_ms=NOON + 1000, priority=Priority.LOW)
    partition.later(1000).tick()
    first = partition.core.stats()["default"].ready
    assert 0 < first < 500, "the first offers do not wait until all of it has been moved"
    wake = partition.core.wake_at()
    assert wake is not None
    assert wake.wall_ms is not None
    assert wake.wall_ms <= partition.now.wall_ms, "the rest is due now"
    partition.submit("urgent", priority=Priority.CRITICAL).dispatch()
    assert [offer.record.job_id for offer in partition.last.offers] == ["urgent"]
    ticks = 0
    while partition.core.waiting:
        partition.tick()
        ticks += 1
    assert ticks < 12
    assert partition.core.stats()["default"].ready == 12_000
    assert partition.core.waiting == 0


def test_a_record_that_is_no_input_is_refused() -> None:
    partition = Partition().submit()
    with pytest.raises(UnexpectedRecordError, match="JobState is no input"):
        partition.apply(partition.state(), CauseSource.COMMANDS)


def test_a_row_without_its_specification_stops_loudly() -> None:
    partition = Partition().submit()
    partition.rows.specs.clear()
    with pytest.raises(MissingSpecError, match="has a state row but no specification"):
        partition.dispatch()


def test_what_the_shell_finds_wrong_is_answered_like_any_other_refusal() -> None:
    partition = Partition()
    command = CancelJob(job_id="job", command_id="c", actor="ada", requested_at_ms=NOON)
    cause = partition.cause(CauseSource.COMMANDS)
    partition.core.refuse(command, RejectCode.BAD_KEY, "the key is not the job id", cause, partition.now)
    event = partition.drain().event(CommandRejected)
    assert (event.reject_code, event.command, event.cause) == (RejectCode.BAD_KEY, "CancelJob", cause)


def test_two_cores_that_read_the_same_inputs_decide_the_same() -> None:
    def life() -> list[object]:
        partition = Partition().submit(max_retries=3).start().fail()
        partition.later(60_000).start().later(10_000).lease_check().start().succeed()
        return [*partition.events, *partition.offers, *partition.signals]

    assert life() == life()


def test_loading_reads_no_specification() -> None:
    partition = Partition()
    for number in range(1000):
        partition.submit(f"job-{number}", delay_ms=number)
    partition.rows.specs.clear()
    core = PartitionCore(0, partition.rules, partition.rows, 1)
    core.load(partition.rows.states.values(), 1000, Now(NOON, 0))
    assert core.waiting == 1000
    assert core.next_seq == 1000
