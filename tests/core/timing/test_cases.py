"""What schedulers in the field got wrong, each with the instants that are right."""

import subprocess
import sys
import time

import pytest

from mainspring.processors.core.timing import Timing, check_timing
from mainspring.schemas.epoch import instant_text
from mainspring.schemas.schedule import GapRule
from tests.core.timing.oracle import cron, every, ms, next_texts

_CASES = {
    "C01 either day field": (
        "0 16 1,2,3 * FRI",
        "UTC",
        "2023-05-01T00:00:00Z",
        (
            "2023-05-01T16:00:00Z 2023-05-02T16:00:00Z 2023-05-03T16:00:00Z 2023-05-05T16:00:00Z "
            "2023-05-12T16:00:00Z 2023-05-19T16:00:00Z 2023-05-26T16:00:00Z 2023-06-01T16:00:00Z "
            "2023-06-02T16:00:00Z 2023-06-03T16:00:00Z"
        ),
    ),
    "C02 a stepped star restricts nothing": (
        "0 16 */2 * SAT",
        "UTC",
        "2023-05-01T00:00:00Z",
        (
            "2023-05-13T16:00:00Z 2023-05-27T16:00:00Z 2023-06-03T16:00:00Z 2023-06-17T16:00:00Z "
            "2023-07-01T16:00:00Z 2023-07-15T16:00:00Z"
        ),
    ),
    "C02 on Wednesdays": (
        "0 0 */2 * 3",
        "UTC",
        "2024-08-16T00:00:00Z",
        (
            "2024-08-21T00:00:00Z 2024-09-11T00:00:00Z 2024-09-25T00:00:00Z 2024-10-09T00:00:00Z "
            "2024-10-23T00:00:00Z 2024-11-13T00:00:00Z"
        ),
    ),
    "C04 all days written out": (
        "0 0 1-31 * 4",
        "UTC",
        "2024-12-01T00:00:00Z",
        "2024-12-02T00:00:00Z 2024-12-03T00:00:00Z 2024-12-04T00:00:00Z 2024-12-05T00:00:00Z",
    ),
    "C04 a star": (
        "0 0 * * 4",
        "UTC",
        "2024-12-01T00:00:00Z",
        "2024-12-05T00:00:00Z 2024-12-12T00:00:00Z 2024-12-19T00:00:00Z",
    ),
    "C05 0 is Sunday": ("0 2 * * 0", "UTC", "2019-12-19T00:00:00Z", "2019-12-22T02:00:00Z 2019-12-29T02:00:00Z"),
    "C05 7 is Sunday": ("0 2 * * 7", "UTC", "2019-12-19T00:00:00Z", "2019-12-22T02:00:00Z 2019-12-29T02:00:00Z"),
    "C05 4 is Thursday": ("30 7 * * 4", "UTC", "2018-02-09T00:00:00Z", "2018-02-15T07:30:00Z 2018-02-22T07:30:00Z"),
    "C05 Sunday and Monday": (
        "15 10,12 * * 1,7",
        "UTC",
        "2018-12-08T00:00:00Z",
        "2018-12-09T10:15:00Z 2018-12-09T12:15:00Z 2018-12-10T10:15:00Z 2018-12-10T12:15:00Z 2018-12-16T10:15:00Z",
    ),
    "C13 strictly after": ("0 3 * * *", "UTC", "2020-01-01T03:00:00Z", "2020-01-02T03:00:00Z"),
    "C13 half a second late": ("0 3 * * *", "UTC", "2020-01-01T03:00:00.5Z", "2020-01-02T03:00:00Z"),
    "C13 half a second early": ("0 3 * * *", "UTC", "2020-01-01T02:59:59.5Z", "2020-01-01T03:00:00Z"),
    "D01 once at the new offset": (
        "0 6 * * MON",
        "America/New_York",
        "2021-11-05T16:00:00Z",
        "2021-11-08T11:00:00Z 2021-11-15T11:00:00Z 2021-11-22T11:00:00Z",
    ),
    "D02 one each Monday": (
        "0 8 * * 1",
        "Europe/Amsterdam",
        "2017-10-19T22:00:00Z",
        "2017-10-23T06:00:00Z 2017-10-30T07:00:00Z 2017-11-06T07:00:00Z 2017-11-13T07:00:00Z",
    ),
    "D04 every hour in spring": (
        "0 */1 * * *",
        "America/Los_Angeles",
        "2020-03-08T05:00:00Z",
        (
            "2020-03-08T06:00:00Z 2020-03-08T07:00:00Z 2020-03-08T08:00:00Z 2020-03-08T09:00:00Z "
            "2020-03-08T10:00:00Z 2020-03-08T11:00:00Z 2020-03-08T12:00:00Z 2020-03-08T13:00:00Z"
        ),
    ),
    "D05 the hour that comes twice": (
        "30 * * * *",
        "Europe/Helsinki",
        "2017-10-28T23:45:00Z",
        "2017-10-29T00:30:00Z 2017-10-29T01:30:00Z 2017-10-29T02:30:00Z 2017-10-29T03:30:00Z",
    ),
    "D05 from its second pass": (
        "30 * * * *",
        "Europe/Helsinki",
        "2017-10-29T01:45:00Z",
        "2017-10-29T02:30:00Z 2017-10-29T03:30:00Z 2017-10-29T04:30:00Z",
    ),
    "D07 at the end of the gap": (
        "0 2 * * *",
        "US/Eastern",
        "2013-03-09T17:00:00Z",
        "2013-03-10T07:00:00Z 2013-03-11T06:00:00Z 2013-03-12T06:00:00Z",
    ),
    "D07 from shortly before it": (
        "30 2 * * *",
        "America/New_York",
        "2026-03-08T06:30:00Z",
        "2026-03-08T07:00:00Z 2026-03-09T06:30:00Z",
    ),
    "D08 a day of 23 hours": (
        "0 0 * * 1-5",
        "US/Central",
        "2021-03-12T06:00:01Z",
        "2021-03-15T05:00:00Z 2021-03-16T05:00:00Z 2021-03-17T05:00:00Z",
    ),
    "D10 every minute in autumn": (
        "* * * * *",
        "Europe/Paris",
        "2020-10-25T00:58:00Z",
        "2020-10-25T00:59:00Z 2020-10-25T01:00:00Z 2020-10-25T01:01:00Z 2020-10-25T01:02:00Z 2020-10-25T01:03:00Z",
    ),
    "D11 every half hour in autumn": (
        "*/30 * * * *",
        "Australia/Melbourne",
        "2024-04-06T14:00:00Z",
        (
            "2024-04-06T14:30:00Z 2024-04-06T15:00:00Z 2024-04-06T15:30:00Z 2024-04-06T16:00:00Z "
            "2024-04-06T16:30:00Z 2024-04-06T17:00:00Z 2024-04-06T17:30:00Z 2024-04-06T18:00:00Z"
        ),
    ),
    "D13 two hours": (
        "30 1 * * *",
        "Antarctica/Troll",
        "2026-03-28T12:00:00Z",
        "2026-03-29T01:00:00Z 2026-03-29T23:30:00Z 2026-03-30T23:30:00Z",
    ),
    "D13 half an hour in spring": (
        "15 2 * * *",
        "Australia/Lord_Howe",
        "2025-10-04T01:30:00Z",
        "2025-10-04T15:30:00Z 2025-10-05T15:15:00Z 2025-10-06T15:15:00Z",
    ),
    "D13 half an hour in autumn": (
        "45 1 * * *",
        "Australia/Lord_Howe",
        "2025-04-05T01:00:00Z",
        "2025-04-05T14:45:00Z 2025-04-06T15:15:00Z 2025-04-07T15:15:00Z",
    ),
    "D13 a day that was left out": (
        "0 12 * * *",
        "Pacific/Apia",
        "2011-12-28T23:00:00Z",
        "2011-12-29T22:00:00Z 2011-12-30T10:00:00Z 2011-12-30T22:00:00Z",
    ),
    "D14 in UTC": ("30 1 * * *", "UTC", "2022-10-29T23:50:00Z", "2022-10-30T01:30:00Z 2022-10-31T01:30:00Z"),
    "D16 accepted on any day": (
        "0 2 * * *",
        "Europe/Copenhagen",
        "2018-10-27T10:00:00Z",
        "2018-10-28T00:00:00Z 2018-10-29T01:00:00Z 2018-10-30T01:00:00Z",
    ),
    "Z01 Mexico dropped summer time": (
        "0 12 * * *",
        "America/Mexico_City",
        "2023-04-01T19:00:00Z",
        "2023-04-02T18:00:00Z 2023-04-03T18:00:00Z",
    ),
    "Z01 Brazil dropped summer time": (
        "0 9 * * *",
        "America/Sao_Paulo",
        "2019-11-03T03:00:00Z",
        "2019-11-03T12:00:00Z 2019-11-04T12:00:00Z",
    ),
    "Z02 midnight in summer": ("0 0 * * *", "America/Los_Angeles", "2020-08-26T19:00:00Z", "2020-08-27T07:00:00Z"),
    "Z02 midnight in winter": ("0 0 * * *", "America/Los_Angeles", "2020-12-26T20:00:00Z", "2020-12-27T08:00:00Z"),
    "Z04 soon after a restart": ("*/5 * * * *", "Europe/London", "2024-08-28T11:01:00Z", "2024-08-28T11:05:00Z"),
    "T02 a clock set back": ("* * * * *", "UTC", "2026-01-01T15:01:00Z", "2026-01-01T15:02:00Z"),
    "F04 the slot after the one that ran": (
        "0 6 * * 1",
        "Europe/Prague",
        "2026-08-03T04:00:00Z",
        "2026-08-10T04:00:00Z",
    ),
}


@pytest.mark.parametrize("case", _CASES)
def test_an_expression_fires_at_the_right_instants(case: str) -> None:
    expression, zone, after, right = _CASES[case]
    timing = cron(expression, zone)

    assert check_timing(timing, created_ms=ms(after)) is None
    assert next_texts(timing, after, len(right.split())) == right.split()


def test_d07_skipping_the_gap_is_a_choice() -> None:
    found = next_texts(cron("0 2 * * *", "US/Eastern", gap=GapRule.SKIP), "2013-03-09T17:00:00Z", 1)

    assert found == ["2013-03-11T06:00:00Z"]


def test_d10_a_day_of_25_hours_has_1500_minutes() -> None:
    local_day = ms("2020-10-24T21:59:59Z"), ms("2020-10-25T22:59:59Z")

    last, before = Timing(cron("* * * * *", "Europe/Paris"), "s", 0).latest(*local_day)

    assert last is not None
    assert before + 1 == 1500


@pytest.mark.parametrize("zone", ["Europe/London", "Asia/Tokyo", "America/New_York"])
def test_d14_the_zone_of_the_machine_does_not_matter(zone: str) -> None:
    program = (
        "from tests.core.timing.oracle import cron, next_texts\n"
        "print(next_texts(cron('30 1 * * *'), '2022-10-29T23:50:00Z', 2))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program], env={"TZ": zone, "PYTHONPATH": "."}, capture_output=True, text=True, check=True
    )

    assert ran.stdout.strip() == "['2022-10-30T01:30:00Z', '2022-10-31T01:30:00Z']"


@pytest.mark.parametrize("expression", ["0 0 30 2 *", "0 0 31 2 *", "0 0 31 4 *", "0 0 31 2,4,6,9,11 *"])
def test_c07_a_date_that_no_year_has_is_refused_at_once(expression: str) -> None:
    began = time.perf_counter()
    problem = check_timing(cron(expression))
    took_s = time.perf_counter() - began

    assert problem is not None
    assert problem.field == "timing.rules[0].expression"
    assert "never matches" in problem.message
    assert took_s < 1


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("*/0 * * * *", "minute: the step"),
        ("*/60 * * * *", "minute: the step"),
        ("*/90 * * * *", "minute: the step"),
        ("0 */24 * * *", "hour: the step"),
        ("0 17 * * MON_FRI", "day of week: cannot read 'MON_FRI'"),
        ("1,,2 * * * *", "minute: an item of the list '1,,2' is empty"),
        ("0 0 0 * *", "day of month: 0 is out of range"),
        ("60 * * * *", "minute: 60 is out of range"),
        ("0 24 * * *", "hour: 24 is out of range"),
        ("0 0 * 13 *", "month: 13 is out of range"),
        ("0 0 * * 8", "day of week: 8 is out of range"),
        ("* * * *", "must have five fields"),
        ("", "is empty"),
        ("² * * * *", "minute: cannot read '²'"),
        ("٣ * * * *", "minute: cannot read '٣'"),
        ("* 8-17 * * 1-5 */10", "must have five fields, such as '30 2 * * MON-FRI', and has 6"),
    ],
)
def test_c08_c10_c11_what_is_no_expression_is_refused_by_the_name_of_its_field(expression: str, named: str) -> None:
    problem = check_timing(cron(expression))

    assert problem is not None
    assert problem.field == "timing.rules[0].expression"
    assert named in problem.message


def test_i01_the_nth_tick_is_at_its_beginning_plus_n_intervals() -> None:
    start_ms = ms("2026-01-01T00:00:00.123Z")
    clock = Timing(every(60_000), "s", start_ms)

    # Each is asked for a quarter of a second late.
    ticks, at_ms = [], start_ms
    for _ in range(30):
        occurrence = clock.next_after(at_ms + 250)
        assert occurrence is not None
        at_ms = occurrence.nominal_ms
        ticks.append(at_ms)

    assert ticks == [start_ms + 60_000 * n for n in range(1, 31)]


def test_i02_every_four_days_begins_four_days_after_its_creation() -> None:
    clock = Timing(every(345_600_000), "s", 1_618_471_225_466)

    first = clock.next_after(1_618_471_225_466)
    assert first is not None
    second = clock.next_after(first.nominal_ms)
    assert second is not None

    assert (first.nominal_ms, second.nominal_ms - first.nominal_ms) == (1_618_816_825_466, 345_600_000)


def test_k01_what_was_missed_is_one_occurrence_and_the_next_is_on_the_grid() -> None:
    clock = Timing(every(15_000), "s", 0)

    last, before = clock.latest(10_000, 190_000)
    following = clock.next_after(190_000)

    assert last is not None
    assert following is not None
    assert (last.nominal_ms, before, following.nominal_ms) == (180_000, 11, 195_000)


def test_k02_each_schedule_has_its_own_missed_times() -> None:
    since, now = ms("2026-01-01T09:39:30Z"), ms("2026-01-01T09:40:10Z")

    for expression, following in (("*/10 * * * *", "2026-01-01T09:50:00Z"), ("* * * * *", "2026-01-01T09:41:00Z")):
        last, before = Timing(cron(expression), "s", 0).latest(since, now)
        assert last is not None
        assert (instant_text(last.nominal_ms), before) == ("2026-01-01T09:40:00Z", 0)
        assert next_texts(cron(expression), "2026-01-01T09:40:10Z", 1) == [following]


def test_k04_a_backlog_comes_oldest_first_without_repeats() -> None:
    until = ms("2026-01-02T00:00:00Z")

    backlog = Timing(cron("0 * * * *"), "s", 0).between(until - 86_400_000, until, 100)

    assert [each.nominal_ms for each in backlog.occurrences] == [until - 3_600_000 * n for n in range(23, -1, -1)]
    assert not backlog.has_more


def test_t01_forty_three_years_of_five_seconds_cost_a_division() -> None:
    clock, set_to_ms = Timing(every(5_000, anchor_ms=0), "s", 0), 1_363_651_200_000
    began = time.perf_counter()

    last, before = clock.latest(0, set_to_ms)
    following = clock.next_after(set_to_ms)
    took_s = time.perf_counter() - began

    assert last is not None
    assert following is not None
    assert before + 1 == 272_730_240
    assert (last.nominal_ms, following.nominal_ms) == (set_to_ms, 1_363_651_205_000)
    assert took_s < 0.1


def test_a_year_of_every_second_by_the_local_clock_is_counted_quickly() -> None:
    clock, until = Timing(cron("* * * * * *", "Europe/Berlin", seconds=True), "s", 0), ms("2026-01-01T00:00:00Z")
    began = time.process_time()

    last, before = clock.latest(ms("2025-01-01T00:00:00Z"), until)
    took_s = time.process_time() - began

    assert last is not None
    assert (last.nominal_ms, before + 1) == (until, 365 * 86_400)
    assert took_s < 0.1
