"""What holds for any definition: strictly rising, one truth behind every question, exact grids, bounded jitter."""

from datetime import date, datetime
from itertools import pairwise

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from mainspring.processors.core.timing import Timing, check_timing, occurrence_id
from mainspring.schemas.schedule import CronRule, FoldRule, GapRule, IntervalRule, NamedCalendar, ScheduleTiming
from tests.core.timing.oracle import DAY_MS, every, ms, zoneinfo_of

_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Antarctica/Troll", "Asia/Tehran")
_CREATED_MS = ms("2026-03-27T10:11:12.345Z")
_SPAN_MS = 3 * DAY_MS
_Rule = CronRule | IntervalRule

_crons = st.builds(
    CronRule,
    expression=st.builds(
        "{} {} {} * {}".format,
        st.sampled_from(["*/20", "0", "30", "15,45", "*"]),
        st.sampled_from(["*", "*/6", "2", "1-3", "0,12"]),
        st.sampled_from(["*", "*/2", "L", "29"]),
        st.sampled_from(["*", "SUN", "5L", "1-5"]),
    ),
)
_intervals = st.builds(
    IntervalRule,
    every_ms=st.integers(900, 86_400).map(lambda seconds: seconds * 1_000),
    anchor_ms=st.none() | st.integers(0, 2 * _CREATED_MS),
    phase_ms=st.integers(0, 179_999),
)
_rules = st.one_of(_crons, _intervals)
_timings = st.builds(
    ScheduleTiming,
    rules=st.lists(_rules, min_size=1, max_size=3).map(tuple),
    exclude=st.lists(_rules, max_size=2).map(tuple),
    calendars=st.sampled_from(
        [(), (NamedCalendar(name="holidays", dates=("2026-03-29", "2026-10-25", "2026-04-01")),)]
    ),
    timezone=st.sampled_from(_ZONES),
    start_ms=st.none() | st.integers(_CREATED_MS, _CREATED_MS + DAY_MS),
    end_ms=st.none() | st.integers(_CREATED_MS + DAY_MS, _CREATED_MS + _SPAN_MS),
    jitter_ms=st.sampled_from([0, 1, 60_000, DAY_MS]),
    gap=st.sampled_from(GapRule),
    fold=st.sampled_from(FoldRule),
)


def _walk(clock: Timing, after_ms: int, until_ms: int) -> list[int]:
    """The nominal instants in (after, until], one question for each."""
    found = []
    while (occurrence := clock.next_after(after_ms)) is not None and occurrence.nominal_ms <= until_ms:
        after_ms = occurrence.nominal_ms
        found.append(after_ms)
    return found


@settings(max_examples=40, deadline=None)
@given(timing=_timings, after_ms=st.integers(_CREATED_MS, _CREATED_MS + DAY_MS), limit=st.integers(0, 40))
def test_next_between_and_latest_tell_one_truth_and_it_rises_strictly(
    timing: ScheduleTiming, after_ms: int, limit: int
) -> None:
    clock, until_ms = Timing(timing, "s", _CREATED_MS), _CREATED_MS + _SPAN_MS

    walked = _walk(clock, after_ms, until_ms)
    some = clock.between(after_ms, until_ms, limit)
    last, before = clock.latest(after_ms, until_ms)

    assert walked == sorted(set(walked))
    assert [each.nominal_ms for each in some.occurrences] == walked[:limit]
    assert some.has_more == (len(walked) > limit)
    assert (before, last and last.nominal_ms) == ((len(walked) - 1, walked[-1]) if walked else (0, None))


@settings(max_examples=25, deadline=None)
@given(timing=_timings)
def test_a_union_minus_exclusions_is_what_each_rule_gives_alone(timing: ScheduleTiming) -> None:
    until_ms, info = _CREATED_MS + _SPAN_MS, zoneinfo_of(timing.timezone)
    first_ms = max(_CREATED_MS, (timing.start_ms or 0) - 1)
    last_ms = min(until_ms, until_ms if timing.end_ms is None else timing.end_ms)

    def alone(rule: _Rule) -> set[int]:
        definition = ScheduleTiming(rules=(rule,), timezone=timing.timezone, gap=timing.gap, fold=timing.fold)
        return set(_walk(Timing(definition, "s", _CREATED_MS), first_ms, last_ms))

    def is_excluded(instant_ms: int) -> bool:
        local = datetime.fromtimestamp(instant_ms // 1000, info)
        return any(
            local.date() in {date.fromisoformat(text) for text in calendar.dates} for calendar in timing.calendars
        ) or any(
            instant_ms in alone(rule) if isinstance(rule, IntervalRule) else _matches(rule, local)
            for rule in timing.exclude
        )

    right = sorted(each for each in set().union(*map(alone, timing.rules)) if not is_excluded(each))

    assert _walk(Timing(timing, "s", _CREATED_MS), _CREATED_MS, until_ms) == right


def _matches(rule: CronRule, local: datetime) -> bool:
    """Whether a local minute matches, asked as a schedule in UTC: there every local time is there once."""
    wall = local.replace(second=0, microsecond=0, tzinfo=zoneinfo_of("UTC"), fold=0)
    found = Timing(ScheduleTiming(rules=(rule,)), "s", 0).next_after(ms(wall) - 1)
    return found is not None and found.nominal_ms == ms(wall)


@settings(max_examples=25, deadline=None)
@given(timing=_timings)
def test_jitter_delays_by_less_than_its_bound_and_never_into_the_next_occurrence(timing: ScheduleTiming) -> None:
    clock = Timing(timing, "s", _CREATED_MS)

    found = clock.between(_CREATED_MS, _CREATED_MS + _SPAN_MS, 50).occurrences

    for each in found:
        assert each.nominal_ms <= each.fire_at_ms <= each.nominal_ms + max(0, timing.jitter_ms - 1)
        assert timing.end_ms is None or each.fire_at_ms <= timing.end_ms
        assert clock.next_after(each.nominal_ms - 1) == each
    for earlier, later in pairwise(found):
        assert earlier.fire_at_ms < later.nominal_ms


def test_jitter_spreads_schedules_of_the_same_time_and_is_the_same_in_every_process() -> None:
    timing = ScheduleTiming(rules=(CronRule(expression="@daily"),), jitter_ms=600_000)
    midnight_ms = ms("2026-01-01T00:00:00Z")

    found = [Timing(timing, f"s{at}", 0).next_after(midnight_ms - 1) for at in range(1000)]
    delays = [each.fire_at_ms - midnight_ms for each in found if each is not None]

    assert len(delays) == 1000
    for tenth in range(10):
        assert 60 < sum(delay // 60_000 == tenth for delay in delays) < 145
    assert delays[:3] == [409_775, 540_044, 415_234]


@given(
    every_ms=st.integers(100, 315_619_200_000),
    anchor_ms=st.integers(0, 4_000_000_000_000),
    n=st.integers(-(10**9), 10**9),
    late_ms=st.integers(0, 99),
)
@example(every_ms=1_000, anchor_ms=123, n=10**9, late_ms=1)
def test_the_nth_time_of_an_interval_is_exact_for_any_n(every_ms: int, anchor_ms: int, n: int, late_ms: int) -> None:
    due_ms = anchor_ms + n * every_ms
    assume(every_ms < due_ms < ms("9990-01-01T00:00:00Z"))
    clock = Timing(every(every_ms, anchor_ms), "s", 0)

    last, before = clock.latest(due_ms - every_ms, due_ms + late_ms)
    found = clock.next_after(due_ms - 1)
    following = clock.next_after(due_ms + late_ms)

    assert found is not None
    assert last is not None
    assert following is not None
    assert (found.nominal_ms, last.nominal_ms, before) == (due_ms, due_ms, 0)
    assert following.nominal_ms == due_ms + every_ms


def test_an_interval_of_odd_milliseconds_has_not_drifted_after_a_thousand_million_times() -> None:
    clock = Timing(every(1_234, anchor_ms=7), "s", 0)

    last, before = clock.latest(6, 7 + 1_234 * 10**9)

    assert last is not None
    assert (last.nominal_ms, before) == (7 + 1_234 * 10**9, 10**9)


def test_start_and_end_belong_to_the_schedule() -> None:
    hours = [ms("2026-01-01T00:00:00Z") + 3_600_000 * at for at in range(5)]
    timing = ScheduleTiming(rules=(CronRule(expression="@hourly"),), start_ms=hours[1], end_ms=hours[3])
    clock = Timing(timing, "s", 0)

    assert _walk(clock, 0, hours[4]) == hours[1:4]
    assert clock.next_after(hours[3]) is None
    assert clock.latest(0, hours[4]) == (clock.next_after(hours[2]), 2)


def test_an_id_has_milliseconds_only_where_there_are_any() -> None:
    assert occurrence_id("backup", ms("2026-12-24T01:30:00Z")) == "backup@2026-12-24T01:30:00Z"
    assert occurrence_id("backup", ms("2026-12-24T01:30:00.050Z")) == "backup@2026-12-24T01:30:00.050Z"


def test_a_month_that_is_excluded_is_passed_without_asking_for_each_second() -> None:
    timing = ScheduleTiming(
        rules=(IntervalRule(every_ms=1_000, anchor_ms=250),),
        exclude=(CronRule(expression="* * * 8 *"),),
        timezone="Asia/Tokyo",
    )
    assert check_timing(timing) is None

    found = Timing(timing, "s", 0).next_after(ms("2026-07-31T14:59:59.900Z"))

    assert found is not None
    assert found.nominal_ms == ms("2026-08-31T15:00:00.250Z")


def test_nothing_fires_from_the_year_9999_on() -> None:
    for timing in (
        every(86_400_000, 0),
        ScheduleTiming(rules=(CronRule(expression="@daily"),), timezone="Europe/Berlin"),
    ):
        clock, last_day_ms = Timing(timing, "s", 0), ms("9998-12-31T00:00:00Z")
        found = _walk(clock, last_day_ms - DAY_MS, ms("9999-12-31T23:59:59.999Z"))
        assert 1 <= len(found) <= 2
        assert found[-1] <= last_day_ms
        assert clock.next_after(ms("9999-12-31T23:59:59.999Z")) is None


def test_leap_days_at_weekends_are_found_over_a_century_without_a_leap_year() -> None:
    clock = Timing(ScheduleTiming(rules=(CronRule(expression="0 0 29 2 */6"),)), "s", 0)

    found = _walk(clock, ms("2060-01-01T00:00:00Z"), ms("2140-01-01T00:00:00Z"))

    leap_days = [date(year, 2, 29) for year in range(2060, 2140, 4) if year != 2100]
    assert found == [ms(f"{day}T00:00:00Z") for day in leap_days if day.isoweekday() in {6, 7}]
