"""`docs/schedule-lifecycle.md` is what the table draws."""

from pathlib import Path

from mainspring.processors.core.schedule.drawing import WHAT_HAPPENED, WHY_NOT_FIRED, schedule_lifecycle_markdown
from mainspring.processors.core.schedule.transitions import SCHEDULE_EDGES, SCHEDULE_STAYS
from mainspring.schemas.codes import OccurrenceOutcome

PAGE = Path(__file__).parents[3] / "docs" / "schedule-lifecycle.md"


def test_the_page_in_the_docs_is_the_one_that_the_table_draws() -> None:
    assert PAGE.read_text(encoding="utf-8") == schedule_lifecycle_markdown()


def test_the_page_has_words_for_every_event_and_every_outcome() -> None:
    assert set(WHAT_HAPPENED) == {event for _, event in [*SCHEDULE_EDGES, *SCHEDULE_STAYS]}
    assert set(WHY_NOT_FIRED) == set(OccurrenceOutcome)
