"""Logs of schedules that have had most of what can befall them, and their rows."""

from dataclasses import replace

from mainspring.processors.core.schedule.evolve import NO_PLAN
from mainspring.schemas import (
    CreateSchedule,
    JobSpec,
    OccurrenceFired,
    Overlap,
    PauseSchedule,
    ResumeSchedule,
    ScheduleState,
    TriggerSchedule,
    UpdateSchedule,
)
from tests.log.schedule_log import MINUTE, ScheduleLog, definition

__all__ = ["a_life", "many", "states"]


def a_life() -> ScheduleLog:
    """Fired, overlapped, triggered, changed, paused and resumed; the last instance runs."""
    log = ScheduleLog()
    log.create(overlap=Overlap.SKIP, note="once a minute").later(MINUTE)
    first = log.events(OccurrenceFired)[-1].job_id
    log.later(3 * MINUTE).run(first)
    log.command(TriggerSchedule, reason="by hand").later(1).run(log.events(OccurrenceFired)[-1].job_id)
    log.command(UpdateSchedule, spec=definition(every_ms=2 * MINUTE, overlap=Overlap.SKIP)).later(2 * MINUTE)
    log.command(PauseSchedule, note="the database moves").later(5 * MINUTE).command(ResumeSchedule)
    log.command(ResumeSchedule)
    return log


def many() -> ScheduleLog:
    """Schedules in all statuses, of several queues, tenants and jobs."""
    log = ScheduleLog()
    for number in range(7):
        job = JobSpec(job_id="", name=f"work-{number % 2}", tenant="acme" if number == 3 else "")
        spec = replace(definition(f"s{number}", every_ms=(9 - number) * MINUTE), job=job, note=f"no_{number}")
        log.now_ms += number % 3
        log.command(CreateSchedule, spec=spec)
    log.command(PauseSchedule, schedule_id="s2")
    return log


def states(log: ScheduleLog) -> dict[str, ScheduleState]:
    """The rows as the scheduler has them, but for the plan."""
    return {key: replace(state, plan=NO_PLAN) for key, state in log._schedules.states.items()}
