"""`docs/lifecycle.md` is what the table draws."""

from pathlib import Path

from mainspring.processors.core.job.drawing import WHO_MOVES, lifecycle_markdown
from mainspring.processors.core.job.transitions import EDGES, STAYS

PAGE = Path(__file__).parents[2] / "docs" / "lifecycle.md"


def test_the_page_in_the_docs_is_the_one_that_the_table_draws() -> None:
    assert PAGE.read_text(encoding="utf-8") == lifecycle_markdown()


def test_every_edge_says_who_moves_a_job_along_it() -> None:
    assert WHO_MOVES.keys() == EDGES.keys() | STAYS.keys()


def test_every_edge_is_drawn_and_has_its_line() -> None:
    page = lifecycle_markdown()
    for index, ((before, event), after) in enumerate([*EDGES.items(), *STAYS.items()]):
        letter = chr(ord("a") + index)
        assert f"{'[*]' if before is None else before.name} --> {after.name}: {letter}\n" in page
        assert f"| {letter} | {'(nothing)' if before is None else before.name} | `{event.__name__}` |" in page
