"""What is refused before it is accepted, by the name of its field."""

import time
from typing import Any

import pytest

from mainspring.processors.core.timing import check_timing, tzdata_version
from mainspring.processors.core.timing.blocks import Block
from mainspring.processors.core.timing.bounds import (
    CALENDAR_DATES_MAX,
    INTERVAL_MAX_MS,
    JITTER_MAX_MS,
    RULES_MAX,
    SEARCH_WORK_MAX,
    SKIPPED_STRETCHES_MAX,
)
from mainspring.processors.core.timing.plan import Plan, plan_of
from mainspring.processors.core.timing.zones import Segment, Zone
from mainspring.schemas import RejectCode
from mainspring.schemas.schedule import CronRule, GapRule, IntervalRule, NamedCalendar, ScheduleTiming
from tests.core.timing.oracle import ms

_NIGHTLY = CronRule(expression="30 2 * * *")
_HOURLY = IntervalRule(every_ms=3_600_000)
_NOW_MS = ms("2026-03-01T12:00:00Z")


def _timing(**changed: Any) -> ScheduleTiming:
    return ScheduleTiming(**({"rules": (_NIGHTLY,)} | changed))


def _calendar(*dates: str, name: str = "holidays") -> NamedCalendar:
    return NamedCalendar(name=name, dates=dates)


@pytest.mark.parametrize(
    ("changed", "field", "said"),
    [
        ({"rules": ()}, "rules", "must have 1 to 16 rules, and has 0"),
        ({"rules": (_HOURLY,) * (RULES_MAX + 1)}, "rules", "and has 17"),
        ({"rules": [_HOURLY]}, "rules", "must be a tuple, not list"),
        ({"rules": ("@daily",)}, "rules[0]", "must be a CronRule or an IntervalRule, not str"),
        ({"rules": (_NIGHTLY, CronRule(expression="x"))}, "rules[1].expression", "must have five fields"),
        ({"rules": (CronRule(expression=5),)}, "rules[0].expression", "must be a string, not int"),  # type: ignore[arg-type]  # by hand it may be anything
        ({"rules": (CronRule(expression="0," * 300 + "0 * * * *"),)}, "rules[0].expression", "at most 512"),
        ({"rules": (CronRule(expression="0 0 * * *\n"),)}, "rules[0].expression", "not printable"),
        ({"rules": (IntervalRule(every_ms=0),)}, "rules[0].every_ms", "must be from 100"),
        ({"rules": (IntervalRule(every_ms=99),)}, "rules[0].every_ms", "must be from 100"),
        ({"rules": (IntervalRule(every_ms=INTERVAL_MAX_MS + 1),)}, "rules[0].every_ms", "must be from 100"),
        ({"rules": (IntervalRule(every_ms=True),)}, "rules[0].every_ms", "must be a whole number"),
        ({"rules": (IntervalRule(every_ms=1_000, phase_ms=1_000),)}, "rules[0].phase_ms", "from 0 to 999"),
        ({"rules": (IntervalRule(every_ms=1_000, phase_ms=-1),)}, "rules[0].phase_ms", "from 0 to 999"),
        ({"rules": (IntervalRule(every_ms=1_000, anchor_ms=-1),)}, "rules[0].anchor_ms", "must be from 0"),
        ({"rules": (_NIGHTLY, IntervalRule(every_ms=1_234))}, "rules[1].every_ms", "a multiple of 1000 ms"),
        ({"exclude": (IntervalRule(every_ms=1_050),)}, "exclude[0].every_ms", "a multiple of 1000 ms"),
        ({"exclude": (CronRule(expression="* * 30 2 *"),)}, "exclude[0].expression", "never matches"),
        ({"calendars": (_calendar(),)}, "calendars[0].dates", "1 to 2000 dates"),
        ({"calendars": (_calendar(*["2027-01-01"] * (CALENDAR_DATES_MAX + 1)),)}, "calendars[0].dates", "1 to 2000"),
        ({"calendars": (_calendar("2027-02-29"),)}, "calendars[0].dates[0]", "must be a date such as 2027-12-25"),
        ({"calendars": (_calendar("2027-01-01", "20270102"),)}, "calendars[0].dates[1]", "must be a date"),
        ({"calendars": (_calendar("2027-W01-1"),)}, "calendars[0].dates[0]", "must be a date"),
        ({"calendars": (_calendar("2027-01-01", name=""),)}, "calendars[0].name", "is empty"),
        ({"calendars": (_calendar("2027-01-01"),) * 17}, "calendars", "must be at most 16"),
        ({"timezone": "Europe/Berln"}, "timezone", "did you mean Europe/Berlin"),
        ({"timezone": "europe/berlin"}, "timezone", "did you mean Europe/Berlin"),
        ({"timezone": "+02:00"}, "timezone", "write it like Europe/Berlin"),
        ({"timezone": "../tzdata"}, "timezone", f"is no zone of the tz database {tzdata_version()}"),
        ({"timezone": ""}, "timezone", "is no zone"),
        ({"timezone": None}, "timezone", "must be a string"),
        ({"start_ms": -1}, "start_ms", "must be from 0"),
        ({"end_ms": 1.5}, "end_ms", "must be a whole number"),
        ({"start_ms": 2, "end_ms": 1}, "end_ms", "must not be before start_ms"),
        ({"jitter_ms": -1}, "jitter_ms", "from 0 to 86400000"),
        ({"jitter_ms": JITTER_MAX_MS + 1}, "jitter_ms", "from 0 to 86400000"),
        ({"gap": 0}, "gap", "must be a GapRule"),
        ({"fold": "first"}, "fold", "must be a FoldRule"),
        ({"exclude": (CronRule(expression="* 1-3 * * *"),)}, "", "the exclusions leave nothing"),
        ({"start_ms": 0, "end_ms": 60_000}, "", "never fires: nothing is left before its end"),
    ],
)
def test_a_definition_out_of_bounds_is_refused_by_the_name_of_its_field(
    changed: dict[str, Any], field: str, said: str
) -> None:
    problem = check_timing(_timing(**changed), "schedule.timing")

    assert problem is not None
    assert problem.code is RejectCode.INVALID_FIELD
    assert problem.field == f"schedule.timing.{field}".removesuffix(".")
    assert problem.message.startswith(f"{problem.field} ")
    assert said in problem.message


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"rules": (_NIGHTLY,) * RULES_MAX},
        {"rules": (IntervalRule(every_ms=100, phase_ms=99),)},
        {"rules": (IntervalRule(every_ms=1_234, anchor_ms=7),)},
        {"rules": (IntervalRule(every_ms=INTERVAL_MAX_MS),)},
        {"rules": (CronRule(expression="\t0  0 * *\t*  "),)},
        {"rules": (CronRule(expression="* * * * * *", seconds=True),)},
        {"rules": (CronRule(expression="0 0 29 2 *"),)},
        {"rules": (CronRule(expression="0 0 30 2 MON"),)},
        {"exclude": (CronRule(expression="* * * 1-11 *"),), "calendars": (_calendar("2027-12-25"),)},
        {"rules": (_HOURLY,), "exclude": (CronRule(expression="* 1-22 * * *"),)},
        {"timezone": "America/Argentina/Buenos_Aires", "jitter_ms": JITTER_MAX_MS},
        {"start_ms": 0, "end_ms": 86_400_000},
    ],
)
def test_a_definition_within_bounds_is_accepted(changed: dict[str, Any]) -> None:
    assert check_timing(_timing(**changed)) is None


def test_what_would_never_fire_once_it_is_created_is_refused() -> None:
    ended = _timing(end_ms=ms("2026-03-02T02:29:59Z"))
    just_in_time = _timing(end_ms=ms("2026-03-02T02:30:00Z"))
    # Created at noon, every day: always in the hour that is excluded.
    at_noon = _timing(rules=(IntervalRule(every_ms=86_400_000),), exclude=(CronRule(expression="* 12 * * *"),))

    assert [check_timing(each) for each in (ended, just_in_time, at_noon)] == [None, None, None]

    refused = [check_timing(each, created_ms=_NOW_MS) for each in (ended, just_in_time, at_noon)]
    assert [problem and problem.message for problem in refused] == [
        (
            "timing never fires: after it is created, nothing is left before its end; "
            "widen the rules or take exclusions away"
        ),
        None,
        (
            "timing never fires: after it is created, the exclusions leave nothing within what a search passes "
            "(see Bounds in docs/schedules.md); widen the rules or take exclusions away"
        ),
    ]


@pytest.mark.parametrize(
    "rules",
    [
        tuple(IntervalRule(every_ms=1_000 * (at + 7), anchor_ms=at) for at in range(RULES_MAX)),
        tuple(CronRule(expression=f"{at} * * * *") for at in range(RULES_MAX)),
        (CronRule(expression="0 0 29 2 *"),),
        (CronRule(expression="0 0 */28 2 SUN"),),
    ],
    ids=["intervals", "expressions", "leap days", "leap days on Sundays"],
)
def test_a_definition_that_exclusions_leave_nothing_of_is_refused_soon(
    rules: tuple[CronRule | IntervalRule, ...],
) -> None:
    nights = tuple(CronRule(expression=f"* {hour},{23 - hour} * * *") for hour in range(12))
    began = time.process_time()

    problem = check_timing(_timing(rules=rules, exclude=nights, timezone="Europe/Berlin"))

    assert problem is not None
    assert "the exclusions leave nothing" in problem.message
    assert time.process_time() - began < 2


@pytest.mark.parametrize("count", [1, RULES_MAX])
def test_a_definition_whose_times_the_clock_always_jumps_over_is_refused_after_a_bounded_search(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given times in the hour that Berlin leaves out each March
    rules = tuple(CronRule(expression=f"{minute} 2 * 3 SUNL") for minute in range(count))
    timing, look, looks = _timing(rules=rules, timezone="Europe/Berlin", gap=GapRule.SKIP), Zone.segment_at, []

    def counted(zone: Zone, utc_s: int) -> Segment:
        looks.append(utc_s)
        return look(zone, utc_s)

    monkeypatch.setattr(Zone, "segment_at", counted)

    problem = check_timing(timing, created_ms=_NOW_MS)

    assert problem is not None
    assert "the clock of Europe/Berlin leaves out every time that they name" in problem.message
    assert len(looks) <= count * SKIPPED_STRETCHES_MAX


def test_a_search_through_days_that_exclusions_empty_works_out_a_bounded_number_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given intervals, so that no two days are alike, and exclusions of which none takes a whole day
    rules = tuple(IntervalRule(every_ms=1_000 * (at + 2), anchor_ms=0) for at in range(RULES_MAX))
    work_out, days = Plan._work_out, []

    def counted(plan: Plan, block: Block) -> dict[int, int]:
        days.append(block.day)
        return work_out(plan, block)

    monkeypatch.setattr(Plan, "_work_out", counted)

    problem = check_timing(_timing(rules=rules, exclude=rules), created_ms=_NOW_MS)

    assert problem is not None
    assert "the exclusions leave nothing within what a search passes" in problem.message
    assert days
    assert len(days) * 2 * RULES_MAX * 8 <= SEARCH_WORK_MAX + 2 * RULES_MAX * 8


@pytest.mark.parametrize("whole", [True, False], ids=["of whole days", "of whole days in two halves"])
def test_many_rules_with_a_season_are_found_behind_what_is_excluded(*, whole: bool) -> None:
    halves = ("*",) if whole else ("0-11", "12-23")
    season = tuple(CronRule(expression=f"* {hours} * 1-11 *") for hours in halves)
    others = tuple(CronRule(expression=f"{minute} 3 * * *") for minute in range(RULES_MAX - len(season)))
    rules = tuple(IntervalRule(every_ms=1_000 * (at + 600), anchor_ms=0) for at in range(RULES_MAX))
    timing = _timing(rules=rules, exclude=(*season, *others))

    assert check_timing(timing, created_ms=ms("2025-12-31T23:59:59Z")) is None
    found = plan_of(timing, 0).next_after(ms("2025-12-31T23:59:59Z"))

    assert found is not None
    assert ms("2026-12-01T00:00:00Z") <= found < ms("2026-12-01T01:00:00Z")
