"""Schedules on a real broker: fired by one partition, run by others, and heard of again."""

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from mainspring.log import KafkaLog, verify
from mainspring.processors.core.schedule.evolve import NO_PLAN, fold_schedule
from mainspring.schemas import (
    CatchUp,
    Command,
    CommandRejected,
    CreateSchedule,
    DeleteSchedule,
    InstanceEnded,
    IntervalRule,
    JobCompleted,
    JobSpec,
    JobStarted,
    JobSubmitted,
    OccurrenceFired,
    Overlap,
    RejectCode,
    ScheduleCommandRejected,
    ScheduleDeleted,
    ScheduleSpec,
    ScheduleState,
    ScheduleTiming,
)
from mainspring.topics import partition_for
from tests.engine.fake_worker import FakeWorker
from tests.engine.support import CODEC, Installation, installation, submit, txns_are_whole
from tests.engine.test_kill import dying_scheduler

pytestmark = pytest.mark.broker

EVERY_MS = 200
"""Fast enough for a test, and slow enough that two occurrences are two."""


def definition(schedule_id: str, **changes: Any) -> ScheduleSpec:
    timing = ScheduleTiming(rules=(IntervalRule(every_ms=EVERY_MS),))
    fields: dict[str, Any] = {"timing": timing, "job": JobSpec(job_id="", name="noop"), "catch_up": CatchUp.ALL}
    return ScheduleSpec(schedule_id=schedule_id, **(fields | changes))


def create(schedule_id: str, **changes: Any) -> CreateSchedule:
    return CreateSchedule(
        command_id=f"create-{schedule_id}",
        actor="test",
        requested_at_ms=int(time.time() * 1_000),
        spec=definition(schedule_id, **changes),
    )


def send(here: Installation, key: str, command: Command, partition: int = -1) -> None:
    here.produce(here.topology.commands, key.encode(), command, partition)
    here.flush()


def fired(here: Installation) -> list[str]:
    return [each.job_id for each in here.events(OccurrenceFired)]


def states(here: Installation) -> dict[str, ScheduleState]:
    rows = [CODEC.decode(value) for value in here.rows().values()]
    return {row.schedule_id: row for row in rows if isinstance(row, ScheduleState)}


def assert_the_log_is_right(here: Installation) -> None:
    """Folded with the product's own function, and audited as a user would."""
    lives: dict[str, list[Any]] = {}
    for event in here.all_events():
        if hasattr(event, "schedule_id"):
            lives.setdefault(event.schedule_id, []).append(event)
    rows = states(here)
    for schedule_id, events in lives.items():
        assert [each.revision for each in events if not isinstance(each, ScheduleCommandRejected)] == list(
            range(1, 1 + sum(not isinstance(each, ScheduleCommandRejected) for each in events))
        )
        folded = fold_schedule(events)
        row = rows.get(schedule_id)
        assert (row and replace(row, plan=NO_PLAN)) == (folded and replace(folded, plan=NO_PLAN))
    report = verify(KafkaLog(here.connection, here.topology), CODEC)
    assert report.ok, report.findings


def test_a_schedule_fires_its_jobs_and_hears_of_their_end(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix) as here:
        here.engine()
        here.helpers.append(FakeWorker(here.connection, here.topology))

        send(here, "tick", create("tick", overlap=Overlap.ALLOW_ALL))
        here.until(lambda: len(here.events(InstanceEnded)) >= 4, "four instances that ended")

        submitted = {event.job_id: event for event in here.events(JobSubmitted)}
        for event in here.events(InstanceEnded):
            assert event.outcome == "COMPLETED"
            assert submitted[event.job_id].spec.schedule_id == "tick"
        times = [event.nominal_ms for event in here.events(OccurrenceFired)]
        assert {later - earlier for earlier, later in pairwise(times)} == {EVERY_MS}
        assert all(0 <= event.decided_at_ms - event.fire_at_ms < 2_000 for event in here.events(OccurrenceFired))
        send(here, "tick", DeleteSchedule(schedule_id="tick", command_id="end", actor="test", requested_at_ms=0))
        here.until(lambda: here.events(ScheduleDeleted), "the end")
        assert states(here) == {}
        assert txns_are_whole(here.all_events())
        assert_the_log_is_right(here)


@pytest.mark.parametrize("point", ["before-begin", "after-flush", "after-send_offsets", "after-commit"])
def test_one_fire_is_one_job_also_when_its_scheduler_is_killed(kafka: str, prefix: str, point: str) -> None:
    with installation(kafka, prefix) as here:
        schedules = [f"s{number}" for number in range(6)]
        with dying_scheduler(here, point, 10) as process:
            for each in schedules:
                send(here, each, create(each, overlap=Overlap.ALLOW_ALL))
            process.wait(30)
        before = len(fired(here))
        engine = here.engine("b")
        here.helpers.append(FakeWorker(here.connection, here.topology))
        here.until(_at_least(here, before + 12), "fires of the second owner")
        here.drop(engine)
        here.engine("c")
        here.until(_at_least(here, len(fired(here)) + 12), "fires of the third owner")

        jobs = fired(here)
        assert len(jobs) == len(set(jobs))
        for each in schedules:
            times = [event.nominal_ms for event in here.events(OccurrenceFired) if event.schedule_id == each]
            assert times == list(range(times[0], times[-1] + 1, EVERY_MS)), "none is missed, and none comes twice"
        here.until(lambda: {event.job_id for event in here.events(JobCompleted)} >= set(jobs), "all that was fired")
        assert not here.events(CommandRejected)
        assert_the_log_is_right(here)


def _at_least(here: Installation, wanted: int) -> Callable[[], bool]:
    return lambda: len(fired(here)) >= wanted


def test_an_instance_that_never_starts_keeps_the_next_ones_back_and_costs_nothing(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix) as here:
        here.engine()
        worker = FakeWorker(here.connection, here.topology, report=False)
        here.helpers.append(worker)
        send(here, "slow", create("slow", overlap=Overlap.SKIP))
        here.until(lambda: worker.running, "a start")
        here.until(lambda: here.events(JobStarted), "what the start was decided by")
        decided = len(here.events())

        _for_a_while(here, 5 * EVERY_MS)
        assert len(here.events()) == decided
        worker.report = True
        (job_id,) = worker.running
        worker.succeed(job_id)
        here.until(lambda: len(fired(here)) >= 2, "the next one")

        assert_the_log_is_right(here)


def _for_a_while(here: Installation, duration_ms: int) -> None:
    """Lets occurrences fall due: it is their time that has to pass, and nothing tells that it has."""
    end_s = time.monotonic() + duration_ms / 1_000
    here.until(lambda: time.monotonic() > end_s)


def test_only_schedules_may_name_a_schedule_also_by_a_detour(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix) as here:
        here.engine()
        for number, job_id in enumerate(("own", "detour")):
            command = replace(submit(job_id), command_id=job_id, spec=replace(submit(job_id).spec, schedule_id="tick"))
            home = partition_for(job_id.encode(), here.topology.partitions)
            send(here, job_id, command, partition=(home + number) % here.topology.partitions)
        here.until(lambda: len(here.events(CommandRejected)) == 2, "both refusals")

        assert {event.reject_code for event in here.events(CommandRejected)} == {RejectCode.NOT_SUPPORTED}
        assert not here.events(JobSubmitted)


def test_a_schedule_command_on_the_wrong_partition_is_sent_on(kafka: str, prefix: str) -> None:
    with installation(kafka, prefix) as here:
        here.engine()
        home = partition_for(b"tick", here.topology.partitions)
        send(here, "tick", create("tick", overlap=Overlap.ALLOW_ALL), partition=(home + 1) % here.topology.partitions)

        here.until(lambda: len(fired(here)) >= 2, "fires")
