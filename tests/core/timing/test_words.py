"""Definitions in words, and previews."""

import pytest

from mainspring.processors.core.timing import Timing, preview
from mainspring.schemas.schedule import CronRule, FoldRule, IntervalRule, NamedCalendar, ScheduleTiming
from tests.core.timing.oracle import cron, ms


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("30 2 * * MON-FRI", "At 02:30, Monday to Friday"),
        ("30 2 * * *", "At 02:30, every day"),
        ("@hourly", "Every hour"),
        ("* * * * *", "Every minute"),
        ("*/15 * * * *", "Every 15 minutes"),
        ("30 * * * *", "At minute 30 of every hour"),
        ("*/45 * * * *", "At minutes 0 and 45 of every hour"),
        ("0 */2 * * *", "Every 2 hours from 00:00"),
        ("15 */2 * * *", "At minute 15 of hours 0, 2, 4 … 22, every day"),
        ("*/10 8-17 * * MON-FRI", "Every 10 minutes from 08:00 to 17:59, Monday to Friday"),
        ("* 2 * * *", "Every minute from 02:00 to 02:59"),
        ("15 10,12 * * 1,7", "At 10:15 and 12:15, Monday and Sunday"),
        ("0 0 * * FRI-MON", "At 00:00, Friday to Monday"),
        ("0 16 1,2,3 * FRI", "At 16:00, on days 1 to 3 of the month or Friday"),
        ("0 16 */2 * SAT", "At 16:00, Saturday if on days 1, 3, 5 … 31 of the month"),
        ("0 0 1-31 * 4", "At 00:00, every day"),
        ("0 0 L * *", "At 00:00, on the last day of the month"),
        ("0 0 L-2 * *", "At 00:00, on the 3rd last day of the month"),
        ("0 0 15W,LW 7 *", "At 00:00, on the workday nearest to day 15 and the last workday of the month, in July"),
        ("0 9 * * 5#3,2L", "At 09:00, the third Friday of the month and the last Tuesday of the month"),
        ("0 0 1 1 *", "At 00:00, on day 1 of the month, in January"),
        ("0,1,2,10-20 5-9/2 * * *", "At minutes 0 to 2 and 10 to 20 of hours 5, 7 and 9, every day"),
    ],
)  # fmt: skip
def test_an_expression_in_words(expression: str, words: str) -> None:
    assert Timing(cron(expression, "Europe/Berlin"), "s", 0).describe() == f"{words}, Europe/Berlin"


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("* * * * * *", "Every second"),
        ("*/15 * * * * *", "Every 15 seconds"),
        ("5 30 2 * * *", "At 02:30:05, every day"),
        ("0 30 2 * * *", "At 02:30, every day"),
        ("10 * * * * *", "At second 10 of every minute"),
        ("1,3 */5 * * * *", "At seconds 1 and 3 of: every 5 minutes"),
    ],
)
def test_an_expression_with_seconds_in_words(expression: str, words: str) -> None:
    assert Timing(cron(expression, seconds=True), "s", 0).describe() == f"{words}, UTC"


def test_intervals_unions_exclusions_bounds_and_jitter_in_words() -> None:
    timing = ScheduleTiming(
        rules=(
            IntervalRule(every_ms=5_400_000),
            IntervalRule(every_ms=3_600_000, anchor_ms=ms("2026-01-01T00:00:00Z"), phase_ms=60_000),
            CronRule(expression="@daily"),
        ),
        exclude=(CronRule(expression="* 3 * * *"),),
        calendars=(NamedCalendar(name="bank holidays", dates=("2026-12-25",)),),
        timezone="Europe/Vienna",
        start_ms=ms("2026-01-01T00:00:00Z"),
        end_ms=ms("2027-01-01T00:00:00.5Z"),
        jitter_ms=90_000,
    )

    assert Timing(timing, "s", 0).describe() == (
        "Every 1 hour 30 minutes; and every hour on the beat of 2026-01-01 00:01:00Z; and at 00:00, every day, "
        "except what is every minute from 03:00 to 03:59 and the dates of bank holidays, Europe/Vienna, "
        "from 2026-01-01 00:00:00Z, until 2027-01-01 00:00:00.500Z, each up to 1 minute 30 seconds later"
    )


@pytest.mark.parametrize(
    ("every_ms", "words"),
    [
        (60_000, "Every minute"),
        (900_000, "Every 15 minutes"),
        (86_400_000, "Every day"),
        (1_250, "Every 1 second 250 ms"),
    ],
)
def test_an_interval_alone_needs_no_zone(every_ms: int, words: str) -> None:
    timing = ScheduleTiming(rules=(IntervalRule(every_ms=every_ms),), timezone="Europe/Vienna")

    assert Timing(timing, "s", 0).describe() == words


def test_a_preview_marks_gaps_and_folds_and_counts_what_is_excluded() -> None:
    gap = preview(cron("30 2 * * *", "Europe/Berlin"), "s", 0, ms("2026-03-28T00:00:00Z"), 3)
    fold = preview(cron("30 2 * * *", "Europe/Berlin", fold=FoldRule.BOTH), "s", 0, ms("2026-10-25T00:00:00Z"), 3)
    hours = ScheduleTiming(
        rules=(CronRule(expression="@hourly"),),
        exclude=(CronRule(expression="* 0-8 * * *"),),
        timezone="Asia/Kathmandu",
    )

    assert [(each.utc, each.local, each.mark) for each in gap] == [
        ("2026-03-28T01:30:00Z", "2026-03-28T02:30:00+01:00", ""),
        ("2026-03-29T01:00:00Z", "2026-03-29T03:00:00+02:00", "gap"),
        ("2026-03-30T00:30:00Z", "2026-03-30T02:30:00+02:00", ""),
    ]
    assert [(each.local, each.mark) for each in fold] == [
        ("2026-10-25T02:30:00+02:00", "fold"),
        ("2026-10-25T02:30:00+01:00", "fold"),
        ("2026-10-26T02:30:00+01:00", ""),
    ]
    found = preview(hours, "s", 0, ms("2026-01-01T17:00:00Z"), 2)
    assert [(each.local, each.excluded) for each in found] == [
        ("2026-01-01T23:00:00+05:45", 0),
        ("2026-01-02T09:00:00+05:45", 9),
    ]


def test_a_preview_ends_with_the_schedule_and_shows_its_jitter() -> None:
    timing = ScheduleTiming(rules=(IntervalRule(every_ms=1_500, anchor_ms=0),), end_ms=4_500, jitter_ms=1_000)

    found = preview(timing, "s", 0, 0, 10)

    assert [each.utc for each in found] == [
        "1970-01-01T00:00:01.500Z",
        "1970-01-01T00:00:03Z",
        "1970-01-01T00:00:04.500Z",
    ]
    assert all(0 <= each.fire_at_ms - each.nominal_ms < 1_000 for each in found)
    assert len({each.fire_at_ms - each.nominal_ms for each in found}) > 1
