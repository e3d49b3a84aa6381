"""What a list keeps when the terminal is narrow: what is copied or decides is whole, the rest goes by importance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mainspring.cli import output
from mainspring.cli.durations import brief_duration
from mainspring.cli.jobs_view import COLUMNS

JOB = "01a22d92-5b93-7c95-93ea-3c35d4a2a3ba"


def shown(width: int, monkeypatch: pytest.MonkeyPatch, *rows: list[str]) -> list[str]:
    """The lines of a list of jobs on a terminal of that width."""
    console = Console(width=width, highlight=False)
    monkeypatch.setattr(output, "stdout", lambda: console)
    with console.capture() as captured:
        output.print_table(COLUMNS, rows)
    return captured.get().splitlines()


def job(name: str = "greet", status: str = "COMPLETED", due: str = "", why: str = "") -> list[str]:
    return [JOB, name, status, "default", "MEDIUM", "1/4", "59m", due, "3s", why]


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("name", ["greet", "examples.shop.jobs.SendInvoiceToCustomer"])
def test_ids_and_states_are_whole_and_no_line_is_too_long(
    width: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = shown(width, monkeypatch, job(name), job(name, "RETRY_WAIT", "in 3h", "ConnectionError: " + "x" * 200))

    assert all(len(line.rstrip()) <= width for line in lines)
    assert len(lines) == 3
    assert lines[1].startswith(f"{JOB}  {name[:15]}")
    assert "COMPLETED" in lines[1]
    assert "RETRY_WAIT" in lines[2]


def test_the_least_important_columns_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    heads = {width: shown(width, monkeypatch, job(due="in 1h", why="boom"))[0].split() for width in (75, 90, 100, 200)}

    assert heads[200] == [column.head for column in COLUMNS]
    assert "PRIORITY" not in heads[100]
    assert "QUEUE" not in heads[90]
    assert {"JOB", "NAME", "STATUS", "AGE"} <= set(heads[75])


def test_nothing_is_cut_where_no_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    why = "ConnectionError: " + "x" * 500

    assert why in shown(10_000, monkeypatch, job(why=why))[1]


@given(st.floats(min_value=-10, max_value=10**9))
def test_brief_durations_have_one_unit_and_fit_a_column(seconds: float) -> None:
    text = brief_duration(seconds)

    assert text.rstrip("msdh").isdigit()
    assert len(text) <= 6


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2105, "210ms"), (3.9, "3s"), (59 * 60 + 59, "59m"), (7199, "1h"), (86_400 * 3, "3d")]
)
def test_brief_durations_are_rounded_down(seconds: float, text: str) -> None:
    assert brief_duration(seconds) == text
