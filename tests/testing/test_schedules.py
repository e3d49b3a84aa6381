"""Recurring schedules under the kit, as commands of the language."""

from datetime import timedelta

import pytest

from mainspring.jobs import App
from mainspring.schemas.commands import CreateSchedule, DeleteSchedule
from mainspring.schemas.job import JobSpec
from mainspring.schemas.schedule import CronRule, IntervalRule, ScheduleSpec, ScheduleTiming
from mainspring.schemas.schedule_events import OccurrenceFired, ScheduleCommandRejected, ScheduleDeleted
from mainspring.testing import Mainspring
from mainspring.testing.kit import START

app = App("schedules")
ran: list[str] = []


@app.job
async def report(name: str) -> None:
    ran.append(name)


@pytest.fixture
def mainspring_app() -> App:
    ran.clear()
    return app


def _create(kit: Mainspring, rule: CronRule | IntervalRule) -> CreateSchedule:
    job = JobSpec(job_id="", name="report", payload=b'{"name":"daily"}')
    spec = ScheduleSpec(schedule_id="reports", timing=ScheduleTiming(rules=(rule,), timezone="Europe/Berlin"), job=job)
    return CreateSchedule(command_id="create", actor="test", requested_at_ms=kit._clock.wall_ms, spec=spec)


@pytest.mark.parametrize(
    ("rule", "runs"),
    [(IntervalRule(every_ms=3_600_000), 24 * 7), (CronRule(expression="30 2 * * MON-FRI"), 5)],
    ids=["interval", "cron"],
)
def test_a_schedule_fires_all_week_and_survives_the_scheduler(
    mainspring: Mainspring, rule: CronRule | IntervalRule, runs: int
) -> None:
    # given
    mainspring.send(_create(mainspring, rule))
    mainspring.advance("3d")

    # when
    mainspring.restart_scheduler()
    mainspring.advance("4d")

    # then
    fired = [event for event in mainspring.events(OccurrenceFired) if isinstance(event, OccurrenceFired)]
    assert len(fired) == len(ran) == runs
    mainspring.handle(fired[-1].job_id).assert_completed()
    assert mainspring.now == START + timedelta(days=7)


def test_a_deleted_schedule_fires_no_more_and_a_refusal_is_an_event(mainspring: Mainspring) -> None:
    mainspring.send(_create(mainspring, IntervalRule(every_ms=60_000)))
    mainspring.advance("90s")

    for command_id in ("delete", "delete again"):
        mainspring.send(
            DeleteSchedule(
                schedule_id="reports", command_id=command_id, actor="test", requested_at_ms=mainspring._clock.wall_ms
            )
        )
    mainspring.advance("1h")

    assert ran == ["daily"]
    assert len(mainspring.events(ScheduleDeleted)) == len(mainspring.events(ScheduleCommandRejected)) == 1
