"""Reading expressions: what each form means, and that croniter is given only what all its versions read alike."""

import calendar
from datetime import date, timedelta

import pytest
from croniter import croniter
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.processors.core.timing import CronError
from mainspring.processors.core.timing.cron import compile_cron
from tests.core.timing.oracle import cron, next_texts

_EPOCH = date(1970, 1, 1)


def _days(expression: str, year: int) -> list[str]:
    """The matching days of a year, as `01-31`."""
    compiled = compile_cron(expression, seconds=False)
    first = (date(year, 1, 1) - _EPOCH).days
    days = [day for day in range(first, first + 366) if compiled.matches_day(day)]
    return [f"{_EPOCH + timedelta(days=day):%m-%d}" for day in days if (_EPOCH + timedelta(days=day)).year == year]


def _each_month(*texts: str) -> list[str]:
    return sorted(texts)


@pytest.mark.parametrize(
    ("expression", "days"),
    [
        ("0 0 L 2,4 *", ["02-28", "04-30"]),
        ("0 0 L-2 2,4 *", ["02-26", "04-28"]),
        ("0 0 15W 8,11 *", ["08-14", "11-16"]),  # 15 August 2026 is a Saturday, 15 November a Sunday
        ("0 0 1W 8 *", ["08-03"]),  # a Saturday; Friday is in July
        ("0 0 31W 1,5 *", ["01-30", "05-29"]),  # a Saturday; a Sunday, whose Monday is in June
        ("0 0 31W 4,5 *", ["05-29"]),  # April has no day 31
        ("0 0 LW 1,2,5 *", ["01-30", "02-27", "05-29"]),
        ("0 0 * 1 5#3", ["01-16"]),
        ("0 0 * 1,2 FRI#5", ["01-30"]),
        ("0 0 * 1,2 5L", ["01-30", "02-27"]),
        ("0 0 * 1,2 friL", ["01-30", "02-27"]),
        ("0 0 * 1 L5", ["01-30"]),
        ("0 0 * 1 SUN#1,7L", ["01-04", "01-25"]),
        ("0 0 L,1 1 *", ["01-01", "01-31"]),
        (
            "0 0 13 * 5L",
            sorted(
                [f"{month:02}-13" for month in range(1, 13)]
                + _each_month(
                    "01-30",
                    "02-27",
                    "03-27",
                    "04-24",
                    "05-29",
                    "06-26",
                    "07-31",
                    "08-28",
                    "09-25",
                    "10-30",
                    "11-27",
                    "12-25",
                )
            ),
        ),
        ("0 0 13 * ?", [f"{month:02}-13" for month in range(1, 13)]),
        ("0 0 ? 1 MON#1", ["01-05"]),
        ("0 0 11 1 */6", ["01-11"]),
        ("0 0 1 jan,Dec *", ["01-01", "12-01"]),
        ("0 0 1 NOV-FEB *", ["01-01", "02-01", "11-01", "12-01"]),
        ("@yearly", ["01-01"]),
        ("@annually", ["01-01"]),
    ],
)
def test_the_days_of_a_year(expression: str, days: list[str]) -> None:
    assert _days(expression, 2026) == days


@pytest.mark.parametrize(
    ("text", "field", "values"),
    [
        ("5-5 * * * *", "minutes", {5}),
        ("59/15 * * * *", "minutes", {59}),
        ("50/20 * * * *", "minutes", {50}),
        ("5/20 * * * *", "minutes", {5, 25, 45}),
        ("10-50/15,3 * * * *", "minutes", {3, 10, 25, 40}),
        ("*/45 * * * *", "minutes", {0, 45}),
        ("58-2 * * * *", "minutes", {58, 59, 0, 1, 2}),
        ("*,5 * * * *", "minutes", set(range(60))),
        ("58-4/3 * * * *", "minutes", {58, 1, 4}),
        ("0 22-4/2 * * *", "hours", {22, 0, 2, 4}),
        ("0 0 1 NOV-FEB/3 *", "months", {11, 2}),
    ],
)
def test_lists_ranges_and_steps(text: str, field: str, values: set[int]) -> None:
    bits: int = getattr(compile_cron(text, seconds=False), field)

    assert {at for at in range(64) if bits >> at & 1} == values


@pytest.mark.parametrize(
    ("text", "weekdays"),
    [
        ("7", {0}), ("7-7", {0}), ("7-0", {0}), ("7-2", {0, 1, 2}), ("0-7", set(range(7))), ("5-7", {5, 6, 0}),
        ("FRI-MON", {5, 6, 0, 1}), ("sat-SUN", {6, 0}), ("1-7/2", {1, 3, 5, 0}), ("6/2", {6}), ("*/3", {0, 3, 6}),
    ],
)  # fmt: skip
def test_seven_is_sunday_wherever_it_stands(text: str, weekdays: set[int]) -> None:
    bits = compile_cron(f"0 0 * * {text}", seconds=False).days.weekdays

    assert {at for at in range(7) if bits >> at & 1} == weekdays


@pytest.mark.parametrize(
    ("nickname", "fields"),
    [
        ("@monthly", "0 0 1 * *"), ("@weekly", "0 0 * * 0"), ("@daily", "0 0 * * *"), ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"), ("@YEARLY", "0 0 1 1 *"),
    ],
)  # fmt: skip
def test_a_nickname_is_its_fields(nickname: str, fields: str) -> None:
    after = "2026-02-03T04:05:06Z"

    assert next_texts(cron(nickname), after, 3) == next_texts(cron(fields), after, 3)


def test_six_fields_begin_with_the_seconds() -> None:
    found = next_texts(cron("10-30/10 30 2 * * *", "Europe/Berlin", seconds=True), "2026-03-28T12:00:00Z", 4)

    # Three times of the day in one gap are made up for once.
    assert found == [
        "2026-03-29T01:00:00Z", "2026-03-30T00:30:10Z", "2026-03-30T00:30:20Z", "2026-03-30T00:30:30Z",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("H * * * *", "minute: cannot read 'H'"),
        ("* * * * * 2027", "must have five fields"),
        ("0 0 * * L", "day of week: L needs a day"),
        ("0 0 1-5W * *", "day of month: '1-5W'"),
        ("0 0 32W * *", "day of month: 32 is out of range"),
        ("0 0 L-31 * *", "day of month: 'L-31' is in no month"),
        ("0 0 * * FRI#6", "day of week: 'FRI#6'"),
        ("0 0 * * MON-FRI#1", "day of week: cannot read"),
        ("0 0 * * MONDAY", "day of week: cannot read 'MONDAY'"),
        ("? * * * *", "minute: cannot read '?'"),
        ("0 0 1,? * *", "day of month: cannot read '?'"),
        ("-5 * * * *", "minute: cannot read '-5'"),
        ("*/-5 * * * *", "minute: cannot read"),
        ("1.5 * * * *", "minute: cannot read"),
        ("@reboot", "must be one of @yearly"),
        ("@every 5m", "an interval says every so often"),
        ("0\u00a00 * * *", "must have five fields"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_field(expression: str, said: str) -> None:
    with pytest.raises(CronError) as refused:
        compile_cron(expression, seconds=False)

    assert said in str(refused.value)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="0123456789*/-,?LWw#@ SUNMONJANxe²", max_size=24), st.booleans())
def test_any_text_is_read_or_refused_and_nothing_else(text: str, seconds: bool) -> None:
    try:
        compiled = compile_cron(text, seconds=seconds)
    except CronError:
        return
    assert compiled.next_day(0) is not None


@settings(max_examples=60, deadline=None)
@given(
    year=st.integers(1970, 9998),
    month=st.integers(1, 12),
    day=st.integers(1, 31),
    weekday=st.integers(0, 6),
    nth=st.integers(1, 5),
)
def test_special_days_agree_with_the_calendar(year: int, month: int, day: int, weekday: int, nth: int) -> None:
    length = calendar.monthrange(year, month)[1]
    of_weekday = [each for each in range(1, length + 1) if date(year, month, each).isoweekday() % 7 == weekday]
    workdays = [each for each in range(1, length + 1) if date(year, month, each).isoweekday() < 6]
    right = {
        f"0 0 * * {weekday}#{nth}": of_weekday[nth - 1 : nth],
        f"0 0 * * {weekday}L": of_weekday[-1:],
        "0 0 L * *": [length],
        "0 0 LW * *": workdays[-1:],
        f"0 0 {day}W * *": sorted(workdays, key=lambda each: (abs(each - day), each))[:1] if day <= length else [],
    }

    for expression, days in right.items():
        matching = compile_cron(expression, seconds=False).days.of(year, month)
        assert [each for each in range(1, 32) if matching >> each & 1] == days, expression


def test_croniter_is_asked_only_for_what_its_versions_agree_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    expand = croniter.expand

    def listen(text: str) -> object:
        asked.append(text)
        return expand(text)

    monkeypatch.setattr(croniter, "expand", listen)
    for expression in ("59/15 5-5 15W,L-1,7 * 5#3,1", "30/31 23/4 LW DEC/2 7-7", "8/52 22-0 ? JAN 7-1"):
        compile_cron.__wrapped__(expression, seconds=False)

    # Minute, hour, day, month, day of week, second: no range of one value or past its turn, no step beyond its range.
    assert asked == ["59 5 7 * 1 0", "30 23 * 12 0 0", "8 22,23,0 * 1 0-1 0"]
