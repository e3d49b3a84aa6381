"""What must not stop a partition: rules that cannot be computed, time zone data that has changed, poison."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from mainspring.processors.core.timing.plan import plan_of
from mainspring.schemas.codes import PauseCode, RejectCode
from mainspring.schemas.commands import DeleteSchedule, PauseSchedule, SubmitJob
from mainspring.schemas.common import Cause, CauseSource
from mainspring.schemas.events import CommandRejected
from mainspring.schemas.followups import InstanceFinished
from mainspring.schemas.schedule import CronRule, Overlap, ScheduleStatus, ScheduleTiming
from mainspring.schemas.schedule_events import InstanceEnded, ScheduleCommandRejected, SchedulePaused
from tests.core.schedule.site import HOUR, ID, MINUTE, Site, definition, every, minute
from tests.core.spec import NOON

FAILING = every(MINUTE, end_ms=NOON + 1_000 * HOUR)
"""Rules that a test lets fail."""


def fail(*_: object) -> None:
    raise OverflowError("date value out of range")


@pytest.fixture
def broken() -> Site:
    """A schedule in a zone that this version of the time zone data no longer knows."""
    site = Site().create().create(definition(schedule_id="sound"))
    timing = ScheduleTiming(rules=(CronRule(expression="* * * * *"),), timezone="Atlantis/Capital")
    site.schedules.specs[ID] = definition(timing)
    site.schedules.states[ID] = replace(site.state(), plan=replace(site.state().plan, tzdata="of old"))
    return site.taken_over()


def test_a_schedule_that_cannot_be_computed_is_paused_with_the_reason_and_the_others_go_on(broken: Site) -> None:
    broken.later(MINUTE).until_idle()

    (paused,) = (each for each in broken.events if isinstance(each, SchedulePaused))
    assert paused.pause_code == PauseCode.UNPROCESSABLE
    assert "Atlantis/Capital" in paused.reason
    assert broken.fired() == ["sound@2026-01-01T12:01:00Z"]
    assert broken.state().plan.due_at_ms is None


def test_a_schedule_that_cannot_be_computed_can_be_given_another_definition_or_deleted(broken: Site) -> None:
    broken.later(MINUTE).until_idle()
    assert broken.trigger().refusal() == RejectCode.UNPROCESSABLE

    broken.update(definition())

    assert broken.state().version == 2
    broken.resume().later(MINUTE)
    assert minute(2) in broken.fired()
    broken.assert_row_is_fold()


def test_a_schedule_that_cannot_be_computed_can_be_deleted(broken: Site) -> None:
    broken.later(MINUTE).until_idle().delete()

    assert set(broken.schedules.states) == {"sound"}


@pytest.mark.parametrize("method", ["next_after", "span"])
def test_rules_that_fail_at_an_instant_keep_nobody_from_deleting_or_replacing_them(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site().create(definition(FAILING)).create(definition(FAILING, "other"))
    monkeypatch.setattr(plan_of(FAILING, NOON), method, fail)
    site.later(MINUTE).until_idle()

    site.update(definition(every(HOUR)))
    site.apply(DeleteSchedule(schedule_id="other", command_id="delete", actor="ada", requested_at_ms=NOON))

    assert site.state().version == 2
    assert set(site.schedules.states) == {ID}
    site.assert_row_is_fold()


COMMANDS: dict[str, Callable[[Site], Site]] = {
    "pause": Site.pause,
    "trigger": Site.trigger,
    "backfill": lambda site: site.backfill(NOON, NOON + MINUTE),
    "create": lambda site: site.create(definition(FAILING, "another")),
    "update": lambda site: site.update(definition(FAILING)),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_on_rules_that_fail_at_an_instant_is_refused_with_the_reason_and_leaves_no_trace(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given rules that fail wherever they are asked from now on
    site = Site().create(definition(every(HOUR) if command == "update" else FAILING))
    site.set_clock(2 * MINUTE)
    before = site.state()
    for method in ("next_after", "span"):
        monkeypatch.setattr(plan_of(FAILING, NOON), method, fail)

    COMMANDS[command](site)

    rejected = next(each for each in site.last if isinstance(each, ScheduleCommandRejected))
    assert rejected.reject_code == RejectCode.UNPROCESSABLE
    assert "OverflowError: date value out of range" in rejected.message
    assert site.last[0] is rejected, "nothing of what was half decided is kept"
    assert site.state().cursor_ms == before.cursor_ms
    assert "another" not in site.schedules.states
    site.assert_row_is_fold()


def test_a_resume_on_rules_that_fail_at_an_instant_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site().create(definition(FAILING)).pause().set_clock(2 * MINUTE)
    monkeypatch.setattr(plan_of(FAILING, NOON), "span", fail)

    assert site.resume().refusal() == RejectCode.UNPROCESSABLE

    assert site.state().status is ScheduleStatus.PAUSED


@pytest.mark.parametrize("is_set_back", [False, True], ids=["due", "clock set back"])
def test_a_turn_that_has_no_time_decides_on_one_schedule_and_the_next_turns_on_the_others(*, is_set_back: bool) -> None:
    # Given five schedules with something to decide
    ids = [f"{ID}-{number}" for number in range(5)]
    site = Site()
    for schedule_id in ids:
        site.create(definition(every(HOUR), schedule_id, overlap=Overlap.ALLOW_ALL))
    if is_set_back:
        site.set_clock(2 * HOUR).until_idle().set_clock(-2 * HOUR)
    else:
        site.set_clock(HOUR)

    # When each turn is over as soon as it is asked for
    decided = []
    for _ in ids:
        site.core.tick(site.now, lambda: True)
        decided += [each.schedule_id for each in site.core.drain().schedule_events]

    # Then each of them has had its turn, one by one
    assert sorted(decided) == ids
    site.core.tick(site.now, lambda: True)
    assert site.core.drain().schedule_events == []


def test_a_storm_of_triggers_looks_for_no_occurrence_that_the_row_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site().create(definition(every(HOUR), overlap=Overlap.ALLOW_ALL)).later(MINUTE)
    plan = plan_of(every(HOUR), NOON)
    look, asked = plan.next_after, []

    def counted(after_ms: int) -> int | None:
        asked.append(after_ms)
        return look(after_ms)

    monkeypatch.setattr(plan, "next_after", counted)
    for _ in range(100):
        site.trigger()

    assert len(set(site.fired())) == 100
    assert asked == []


def test_other_time_zone_data_is_taken_up_after_a_restart_without_an_event() -> None:
    site = Site().create(definition(every(HOUR)))
    right = site.state().plan
    stale = replace(right, fire_at_ms=NOON + 5 * HOUR, due_at_ms=NOON + 5 * HOUR, tzdata="of old")
    site.schedules.states[ID] = replace(site.state(), plan=stale)
    events = len(site.events)

    site.taken_over().tick()

    assert site.state().plan == right
    assert len(site.events) == events


def test_a_submit_that_is_poison_is_told_to_its_schedule() -> None:
    site = Site().create()
    site.held = []
    site.later(MINUTE)
    ((_, submit),) = site.held
    site.held = None

    assert isinstance(submit, SubmitJob)
    cause = Cause(source=CauseSource.FOLLOWUPS, partition=0, offset=9)
    site.core.refuse_fired(submit, "cannot be applied", cause, site.now)
    site.last = []
    site._settle()

    (rejected,) = site.job_events
    assert isinstance(rejected, CommandRejected)
    assert rejected.reject_code == RejectCode.UNPROCESSABLE
    assert site.event(InstanceEnded).outcome == "REFUSED"
    assert site.state().active == ()


def test_a_command_in_which_the_shell_found_something_wrong_is_answered() -> None:
    site = Site().create()
    pause = PauseSchedule(schedule_id=ID, command_id="pause", actor="ada", requested_at_ms=NOON)
    cause = Cause(source=CauseSource.COMMANDS, partition=0, offset=9)

    site.core.refuse(pause, RejectCode.BAD_KEY, "another key", cause, site.now)

    (refused,) = site.core.drain().schedule_events
    assert isinstance(refused, ScheduleCommandRejected)
    assert (refused.reject_code, refused.revision, refused.status) == ("BAD_KEY", 1, ScheduleStatus.ACTIVE.name)


def test_news_of_an_instance_of_nobody_changes_nothing() -> None:
    site = Site().create()
    news = InstanceFinished(
        schedule_id=ID,
        job_id=minute(1),
        submit_command_id=f"{minute(1)}#x",
        outcome="COMPLETED",
        detail="",
        finished_at_ms=NOON,
    )

    for each in (news, replace(news, schedule_id="nobody"), replace(news, submit_command_id="")):
        assert site.apply(each, CauseSource.FOLLOWUPS).last == []
