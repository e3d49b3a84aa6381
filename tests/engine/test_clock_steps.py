"""The wall clock of a scheduler is set, on a real broker: its clock is the only port that is replaced."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from mainspring.log import KafkaLog, verify
from mainspring.schemas import (
    CreateSchedule,
    IntervalRule,
    JobCompleted,
    JobRescheduled,
    JobSpec,
    JobStarted,
    JobSubmitted,
    OccurrenceFired,
    Overlap,
    ScheduleRewound,
    ScheduleSpec,
    ScheduleTiming,
)
from tests.engine.fake_worker import FakeWorker
from tests.engine.support import CODEC, Installation, SettableClock, installation, submit

pytestmark = pytest.mark.broker

HOUR_MS = 3_600_000
EVERY_MS = 1_000


def create(here: Installation) -> None:
    rules = (IntervalRule(every_ms=EVERY_MS, anchor_ms=0),)
    spec = ScheduleSpec(
        schedule_id="tick",
        timing=ScheduleTiming(rules=rules),
        job=JobSpec(job_id="", name="noop"),
        overlap=Overlap.ALLOW_ALL,
    )
    command = CreateSchedule(command_id="create", actor="test", requested_at_ms=0, spec=spec)
    here.produce(here.topology.commands, b"tick", command)
    here.flush()


def submit_both(here: Installation, clock: SettableClock, delay_ms: int) -> None:
    """A job to be run at once, and one after a delay, by a client whose clock is the scheduler's."""
    for job_id, delay in (("at-once", None), ("delayed", delay_ms)):
        command = replace(
            submit(job_id, delay_ms=delay), requested_at_ms=clock.wall_ms(), command_id=f"submit-{job_id}"
        )
        here.produce(here.topology.commands, job_id.encode(), command)
    here.flush()


def test_a_clock_that_goes_two_hours_ahead_and_back_silences_delays_and_doubles_nothing(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    with installation(kafka, prefix) as here:
        clock = SettableClock()
        here.engine(clock=clock, state_dir=tmp_path)
        here.ready()
        create(here)
        here.until(lambda: here.events(OccurrenceFired), "a fire by the right clock")
        clock.ahead_ms = 2 * HOUR_MS
        ahead_ms = clock.wall_ms()
        here.until(
            lambda: here.events(OccurrenceFired)[-1].nominal_ms >= ahead_ms - EVERY_MS, "a fire ahead of its time"
        )
        submit_both(here, clock, delay_ms=2_000)
        here.until(lambda: {each.job_id for each in here.events(JobSubmitted)} >= {"at-once", "delayed"}, "both jobs")

        began_s = time.monotonic()
        clock.ahead_ms = 0
        here.helpers.append(FakeWorker(here.connection, here.topology))
        here.until(lambda: here.events(ScheduleRewound), "the schedule goes back")
        back_ms = here.events(ScheduleRewound)[0].to_ms
        here.until(lambda: here.events(OccurrenceFired)[-1].nominal_ms > back_ms, "the next fire")
        here.until(lambda: {each.job_id for each in here.events(JobCompleted)} >= {"at-once", "delayed"}, "both ends")

        assert time.monotonic() - began_s < 30, "nothing waited for two hours to pass"
        assert [each.job_id for each in here.events(JobRescheduled)] == ["delayed"]
        fired = [each.job_id for each in here.events(OccurrenceFired)]
        assert len(fired) == len(set(fired))
        following = next(
            each for each in here.events(OccurrenceFired) if each.revision > here.events(ScheduleRewound)[0].revision
        )
        assert back_ms < following.nominal_ms <= back_ms + EVERY_MS
        report = verify(KafkaLog(here.connection, here.topology), CODEC)
        assert report.ok, report.findings


def test_a_scheduler_whose_clock_is_two_hours_behind_takes_over_and_keeps_nobody_waiting(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    with installation(kafka, prefix) as here:
        clock = SettableClock()
        first = here.engine(clock=clock, state_dir=tmp_path / "a")
        here.ready()
        create(here)
        here.until(lambda: here.events(OccurrenceFired), "a fire")
        submit_both(here, clock, delay_ms=3_000)
        here.until(lambda: {each.job_id for each in here.events(JobSubmitted)} >= {"at-once", "delayed"}, "both jobs")
        here.drop(first)

        behind = SettableClock(-2 * HOUR_MS)
        here.engine("b", clock=behind, state_dir=tmp_path / "b")
        here.helpers.append(FakeWorker(here.connection, here.topology))
        here.until(lambda: here.events(ScheduleRewound), "the schedule goes back")
        here.until(lambda: {each.job_id for each in here.events(JobCompleted)} >= {"at-once", "delayed"}, "both ends")

        started = {each.job_id: each for each in here.events(JobStarted)}
        submitted = {each.job_id: each for each in here.events(JobSubmitted)}
        assert started["delayed"].decided_at_ms + 2 * HOUR_MS - submitted["delayed"].decided_at_ms >= 3_000
        fired = [each.job_id for each in here.events(OccurrenceFired)]
        assert len(fired) == len(set(fired))
        report = verify(KafkaLog(here.connection, here.topology), CODEC)
        assert report.ok, report.findings
