"""Durations, times, states and bytes, as people and programs get them."""

import time
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.cli.durations import format_duration, parse_duration
from mainspring.cli.output import escape, printable
from mainspring.cli.show import ago, iso, local, payload_json, payload_text, plural, until


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10),
        ("5m", 300),
        ("2h", 7200),
        ("1h30m", 5400),
        ("250ms", 0.25),
        ("2d", 172_800),
        ("1w", 604_800),
        ("7", 7),
        ("1.5s", 1.5),
        (" 1H 30M ", 5400),
        ("0s", 0),
    ],
)
def test_durations_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "soon", "10x", "s", "-5s", "1h30", "1e3s", "nan", "inf", "5 minutes"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write it like 10s, 5m, 1h30m, 250ms or 2d"):
        parse_duration(text)


def test_a_duration_that_no_calendar_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="too long"):
        parse_duration("999999999999w")


@given(st.integers(min_value=0, max_value=10**9))
def test_a_duration_in_milliseconds_is_read_exactly(ms: int) -> None:
    assert parse_duration(f"{ms}ms") == timedelta(milliseconds=ms)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.0004, "0 ms"),
        (0.25, "250 ms"),
        (1, "1.0 s"),
        (12.4, "12 s"),
        (60, "1 m"),
        (200, "3 m 20 s"),
        (3600, "1 h"),
        (7260, "2 h 1 m"),
        (187_200, "2 d 4 h"),
        (-5, "-5.0 s"),
    ],
)
def test_durations_are_shown_in_at_most_two_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_times_for_programs_are_iso_in_utc_with_milliseconds() -> None:
    assert iso(0) == "1970-01-01T00:00:00.000Z"
    assert iso(1_796_056_084_402) == "2026-11-30T16:28:04.402Z"
    assert iso(None) is None


@pytest.mark.parametrize(
    ("zone", "shown"), [("UTC", "1970-01-01 00:00:00 UTC"), ("Europe/Vienna", "1970-01-01 01:00:00 CET")]
)
def test_times_for_people_are_local_and_name_their_zone(monkeypatch: pytest.MonkeyPatch, zone: str, shown: str) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert local(0) == shown
        assert local(7, ms=True) == shown.replace(":00 ", ":00.007 ")
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


def test_how_far_a_time_is_away() -> None:
    assert ago(1000, now_ms=4000) == "3.0 s ago"
    assert ago(4000, now_ms=1000) == "in 3.0 s"
    assert ago(1000, now_ms=1000) == "0 ms ago"
    assert ago(None) == "-"
    assert until(1000, 1250) == "250 ms"
    assert until(None, 1250) == "-"


def test_payloads_are_json_where_they_are_text_where_they_can_be_and_base64_else() -> None:
    assert payload_json(b'{"x": 1}', "application/json") == {"x": 1}
    assert payload_json(b"not json", "application/json") == "not json"
    assert payload_json(b"\xff\x00", "application/x") == {"base64": "/wA="}
    assert payload_json(None, None) is None
    assert payload_text(b'"' + b"x" * 999 + b'"', "application/json").endswith("… (1001 bytes)")


# A backslash at the very end is doubled by rich, or it would take the markup behind it for text.
@given(st.text().filter(lambda text: not text.endswith("\\")))
def test_users_text_cannot_move_the_terminals_cursor_nor_be_read_as_markup(text: str) -> None:
    from rich.text import Text

    shown = printable(text)

    assert all(char.isprintable() or char in "\n\t" for char in shown)
    assert Text.from_markup(escape(text)).plain == shown


def test_one_of_something_is_no_plural() -> None:
    assert [plural(count, "job") for count in (0, 1, 2)] == ["0 jobs", "1 job", "2 jobs"]
