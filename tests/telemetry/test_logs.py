"""What a process says, line by line."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
import structlog
import structlog.testing

from mainspring.telemetry import configure_logging, get_logger


@pytest.fixture(autouse=True)
def restore_logging() -> Iterator[None]:
    """Leave the logging of the test run as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    structlog.reset_defaults()
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


def test_embedded_in_a_process_that_set_up_nothing_it_is_silent_below_warning_and_never_on_stdout() -> None:
    code = (
        "from mainspring.telemetry import get_logger\n"
        "log = get_logger('mainspring.test')\n"
        "log.info('news', port=1)\n"
        "log.warning('100 % trouble', name='disk 1', left_ms=5)\n"
        "try:\n    int('bad')\nexcept ValueError:\n    log.exception('failed')\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == ""
    first, second, *trace = told.stderr.splitlines()
    assert first == "100 % trouble name='disk 1' left_ms=5"
    assert second == "failed"
    assert trace[-1].startswith("ValueError: invalid literal")


def test_embedded_it_is_a_logger_of_the_standard_library_with_its_own_name(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="mainspring.test"):
        get_logger("mainspring.test").info("ready", partitions=12)
    assert caplog.record_tuples == [("mainspring.test", logging.INFO, "ready partitions=12")]


def test_a_process_that_sets_up_structlog_later_decides_over_loggers_made_before() -> None:
    log = get_logger("mainspring.test")
    with structlog.testing.capture_logs() as lines:
        log.info("ready", partitions=12)
    assert lines == [{"event": "ready", "partitions": 12, "log_level": "info"}]


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
