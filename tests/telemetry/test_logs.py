"""What a process says, line by line."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from mainspring.telemetry import configure_logging, get_logger


@pytest.fixture(autouse=True)
def restore_logging() -> Iterator[None]:
    """Leave the logging of the test run as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_json_is_one_object_a_line_with_the_time_in_utc_and_the_fields_as_they_were_given() -> None:
    stream = io.StringIO()
    configure_logging(style="json", stream=stream)

    get_logger("mainspring.test").info("started", port=1, job_id="a\nb")

    lines = stream.getvalue().splitlines()
    assert len(lines) == 1
    entry = json.loads(lines[0])
    assert entry.pop("timestamp").endswith("Z")
    assert entry == {"event": "started", "level": "info", "logger": "mainspring.test", "port": 1, "job_id": "a\nb"}


def test_the_standard_library_goes_the_same_way() -> None:
    stream = io.StringIO()
    configure_logging(style="json", stream=stream)

    logging.getLogger("other").warning("%d left", 3)

    entry = json.loads(stream.getvalue())
    assert (entry["event"], entry["level"], entry["logger"]) == ("3 left", "warning", "other")


def test_an_exception_stays_on_its_line() -> None:
    stream = io.StringIO()
    configure_logging(style="json", stream=stream)

    try:
        int("bad")
    except ValueError:
        get_logger("x").exception("failed")

    (line,) = stream.getvalue().splitlines()
    assert "ValueError: invalid literal" in json.loads(line)["exception"]


def test_less_important_levels_are_left_out() -> None:
    stream = io.StringIO()
    configure_logging(style="json", level="warning", stream=stream)

    get_logger("x").info("quiet")
    get_logger("x").warning("loud")

    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["loud"]


def test_auto_is_json_where_no_one_sits_at_a_terminal() -> None:
    stream = io.StringIO()
    configure_logging(style="auto", stream=stream)

    get_logger("x").info("hello")

    assert json.loads(stream.getvalue())["event"] == "hello"


def test_console_lines_have_no_colours_off_a_terminal() -> None:
    stream = io.StringIO()
    configure_logging(style="console", stream=stream)

    get_logger("x").info("hello", n=1)

    assert "hello" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()
