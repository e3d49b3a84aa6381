"""Gaps and folds, against a scan of every minute and against cronsim, in every zone that changes its clock."""

import warnings
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import cycle, product

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.processors.core.timing.zones import zone_named
from mainspring.schemas.schedule import FoldRule, GapRule
from tests.core.timing.oracle import Change, Daily, changes, cron, distinct_zones, ms, nominals, scan, zoneinfo_of

_RULES = tuple(product(GapRule, FoldRule))
# No clock was moved by more than two hours in these years.
_AROUND = timedelta(minutes=125)


def _around(change: Change) -> tuple[Daily, ...]:
    """Times of the day that the change concerns, and expressions that follow real time."""
    info = zoneinfo_of(change.zone)
    walls = [(change.at + timedelta(minutes=shift)).astimezone(info) for shift in (-31, -1, 0, 14)]
    hours = frozenset({wall.hour for wall in walls} | {(wall.hour + 1) % 24 for wall in walls})
    minutes = frozenset({wall.minute for wall in walls} | {15, 45})
    texts = ",".join(map(str, minutes)), ",".join(map(str, hours))
    return (
        Daily(minutes=minutes, hours=hours, minute_text=texts[0], hour_text=texts[1]),
        Daily(minutes=minutes, hours=frozenset(range(24)), minute_text=texts[0], hour_text="*"),
        Daily(
            minutes=frozenset(range(0, 60, 15)),
            hours=frozenset({walls[1].hour}),
            minute_text="*/15",
            hour_text=str(walls[1].hour),
        ),
    )


def test_every_change_of_ten_years_in_every_zone_agrees_with_a_scan_of_its_minutes() -> None:
    assert len({change.zone for change in changes()}) > 100
    rules = cycle(_RULES)

    for change in changes():
        start, end = change.at - _AROUND, change.at + _AROUND
        for daily in _around(change):
            gap, fold = next(rules)
            timing = cron(daily.expression, change.zone, gap=gap, fold=fold)
            right = scan(daily, change.zone, start, end, gap, fold)
            assert nominals(timing, ms(start), ms(end)) == right, (change, daily.expression, gap, fold)


def _text(values: frozenset[int], low: int, high: int) -> str:
    return "*" if len(values) == high - low + 1 else ",".join(map(str, sorted(values)))


@st.composite
def _dailies(draw: st.DrawFn) -> Daily:
    minutes = draw(st.one_of(st.sets(st.integers(0, 59), min_size=1, max_size=6), st.just(set(range(60)))))
    hours = draw(st.one_of(st.sets(st.integers(0, 23), min_size=1, max_size=8), st.just(set(range(24)))))
    return Daily(
        minutes=frozenset(minutes),
        hours=frozenset(hours),
        minute_text=_text(frozenset(minutes), 0, 59),
        hour_text=_text(frozenset(hours), 0, 23),
    )


@settings(max_examples=40, deadline=None)
@given(
    at=st.integers(min_value=0),
    daily=_dailies(),
    gap=st.sampled_from(GapRule),
    fold=st.sampled_from(FoldRule),
    shift=st.integers(-1500, 0),
)
def test_any_expression_around_any_change_agrees_with_a_scan_of_its_minutes(
    at: int, daily: Daily, gap: GapRule, fold: FoldRule, shift: int
) -> None:
    change = changes()[at % len(changes())]
    start = change.at + timedelta(minutes=shift)
    end = start + timedelta(days=2)

    found = nominals(cron(daily.expression, change.zone, gap=gap, fold=fold), ms(start), ms(end))

    assert found == scan(daily, change.zone, start, end, gap, fold)


@pytest.mark.parametrize(
    ("zone", "around"),
    [
        ("Pacific/Apia", "2011-12-30T10:00:00Z"),
        ("Pacific/Kwajalein", "1993-08-21T12:00:00Z"),
        ("America/Havana", "2023-11-05T05:00:00Z"),
        ("Asia/Pyongyang", "2018-05-04T15:00:00Z"),
        ("Antarctica/Casey", "2018-03-10T17:00:00Z"),
    ],
)
def test_whole_days_left_out_and_changes_at_midnight_agree_with_a_scan_of_their_minutes(zone: str, around: str) -> None:
    start, end = datetime.fromisoformat(around) - timedelta(days=2), datetime.fromisoformat(around) + timedelta(days=2)
    twice = Daily(minutes=frozenset({0, 30}), hours=frozenset({0, 12, 23}), minute_text="0,30", hour_text="0,12,23")

    for gap, fold in _RULES:
        found = nominals(cron(twice.expression, zone, gap=gap, fold=fold), ms(start), ms(end))
        assert found == scan(twice, zone, start, end, gap, fold)


def test_the_second_pass_is_not_passed_over_for_a_match_that_is_far_ahead() -> None:
    sundays = cron("*/15 2 * * SUN", "Africa/Casablanca")

    found = nominals(sundays, ms("2020-04-19T01:45:00Z"), ms("2020-04-26T00:00:00Z"))

    assert found == [ms(f"2020-04-19T02:{minute}:00Z") for minute in ("00", "15", "30", "45")]


_FIELD = {
    "minute": st.sampled_from(["*", "*/15", "*/7", "0", "30", "5,35", "10-20", "0-59/20", "59"]),
    "hour": st.sampled_from(["*", "*/2", "*/5", "0", "1", "2", "3", "1-4", "0,12,23", "8-18/3"]),
    "day": st.sampled_from(["*", "*", "*", "*/2", "1", "15,31", "L", "28-31", "LW"]),
    "month": st.sampled_from(["*", "*", "*", "3", "4,10", "*/2", "NOV"]),
    "weekday": st.sampled_from(["*", "*", "*", "SUN", "1-5", "*/2", "5L", "0#1", "7", "SAT"]),
}


@cache
def _plain_changes() -> tuple[Change, ...]:
    """Those of zones where cronsim can serve: at midnight it names times that do not exist, and it steps by hours."""
    beyond_it = {
        change.zone
        for change in changes()
        for shift in (-1, 0)
        if (change.at + timedelta(minutes=shift)).astimezone(zoneinfo_of(change.zone)).hour in {0, 23}
        or change.at.astimezone(zoneinfo_of(change.zone)).minute
    }
    return tuple(change for change in changes() if change.zone not in beyond_it)


@settings(max_examples=150, deadline=None)
@given(at=st.integers(min_value=0), back=st.integers(12 * 60, 40 * 24 * 60), **_FIELD)
def test_expressions_around_changes_agree_with_cronsim(
    at: int, back: int, minute: str, hour: str, day: str, month: str, weekday: str
) -> None:
    change = _plain_changes()[at % len(_plain_changes())]
    expression = f"{minute} {hour} {day} {month} {weekday}"
    after = change.at - timedelta(minutes=back)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        simulated = CronSim(expression, after.astimezone(zoneinfo_of(change.zone)))
        # It names the first instant after a gap once for each time in the gap.
        right = list(dict.fromkeys(ms(next(simulated)) for _ in range(40)))

    assert nominals(cron(expression, change.zone), ms(after), right[-1]) == right


@pytest.mark.parametrize("zone", distinct_zones())
def test_a_zone_has_the_offsets_that_zoneinfo_has(zone: str) -> None:
    info, own = zoneinfo_of(zone), zone_named(zone)
    probes = [datetime(year, month, 1, tzinfo=UTC) for year in (1970, 1996, 2026) for month in (1, 7)]

    for probe in probes:
        offset = probe.astimezone(info).utcoffset()
        assert offset is not None
        segment = own.segment_at(ms(probe) // 1000)
        assert segment.offset_s == offset.total_seconds()
        assert segment.start_s <= ms(probe) // 1000 < segment.end_s


def test_stretches_follow_each_other_and_begin_where_the_clock_changes() -> None:
    for change in changes():
        zone, second = zone_named(change.zone), ms(change.at) // 1000
        before, after = zone.segment_at(second - 1), zone.segment_at(second)
        assert before.end_s == after.start_s == second
        assert before.offset_s != after.offset_s
