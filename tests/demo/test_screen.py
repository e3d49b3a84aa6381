"""How the demo looks: a table that fits into a small terminal, and plain lines where there is none."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from mainspring.cli.demo.board import Board
from mainspring.cli.demo.director import SCHEDULERS, WORKERS
from mainspring.cli.demo.fleet import Fleet
from mainspring.cli.demo.owners import Owners
from mainspring.cli.demo.plan import make_plan
from mainspring.cli.demo.screen import Screen
from mainspring.cli.demo.story import Story
from mainspring.cli.demo.summary import print_plan
from tests.demo.lives import ended, right_life, story_of, submitted

PLAN = make_plan()
EMAIL = next(planned for planned in PLAN if planned.job_id == "email-01")
ENDED = {planned.job_id: story_of(right_life(planned)) for planned in PLAN}


def _console(*, terminal: bool = True, width: int = 80) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=width, height=24, color_system=None)


def _text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    fleet = Fleet(tmp_path)
    roles = dict.fromkeys(SCHEDULERS, "scheduler") | dict.fromkeys(WORKERS, "worker")
    fleet.add({name: (role, (sys.executable,)) for name, role in (roles | {"projector": "projector"}).items()})
    return fleet


def _frame(fleet: Fleet, stories: dict[str, Story]) -> list[str]:
    console = _console()
    board = cast(Board, SimpleNamespace(stories=stories))
    owners = cast(Owners, SimpleNamespace(of=lambda name: (0, 1, 2, 3)))
    console.print(Screen(console, PLAN)._frame(fleet, board, owners))
    return _text(console).splitlines()


@pytest.mark.parametrize("stories", [{}, ENDED], ids=["before the first event", "when all have ended"])
def test_the_live_table_fits_into_a_small_terminal_with_room_for_what_is_said(
    fleet: Fleet, stories: dict[str, Story]
) -> None:
    lines = _frame(fleet, stories)

    # A row too wide would wrap, and make the table taller than it is.
    assert len(lines) == 19
    assert not [line for line in lines if "…" in line]


def test_each_row_tells_what_its_jobs_must_come_to_and_ticks_it_when_all_have(fleet: Fleet) -> None:
    before, after = _frame(fleet, {}), _frame(fleet, ENDED)

    rows = {planned.kind.row: planned.expected.status.name for planned in PLAN}
    for row, status in rows.items():
        assert [line for line in before if line.startswith(row) and "0/" in line and line.rstrip().endswith(status)]
        assert [line for line in after if line.startswith(row) and line.rstrip().endswith(f"✓ {status}")]


def test_a_wrong_end_is_shown_as_wrong(fleet: Fleet) -> None:
    wrong: Any = ENDED | {"invoice-01": story_of([*right_life(EMAIL)])}

    (line,) = [line for line in _frame(fleet, wrong) if line.startswith("fails for good")]

    assert line.rstrip().endswith("✗ COMPLETED")


def test_without_a_terminal_each_end_is_a_line_and_nothing_else_is() -> None:
    console = _console(terminal=False, width=200)
    screen = Screen(console, PLAN)

    screen.on_event(story_of([submitted(EMAIL)]), submitted(EMAIL))
    screen.on_event(story_of(right_life(EMAIL)), ended(EMAIL, 1))

    (line,) = _text(console).splitlines()
    assert "email-01" in line
    assert "COMPLETED on worker-1, 10 ms late" in line


def test_the_plan_is_printed_whole_in_80_columns() -> None:
    console = _console()

    print_plan(console, PLAN, Path("plan.json"))

    printed = _text(console)
    assert "…" not in printed
    assert all(planned.kind.label in printed for planned in PLAN)
