"""What once failed holds now, and says what it taught."""

import pytest

from tests.sim.corpus import Lesson, lessons
from tests.sim.run import run_plan


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)
def test_a_run_that_once_showed_a_fault_shows_none(lesson: Lesson) -> None:
    # when
    outcome = run_plan(lesson.plan)

    # then
    assert outcome.ok, f"{lesson.name} fails again. It taught: {lesson.taught}\n{outcome.report()}"
    assert outcome.faults > 0


def test_every_lesson_says_what_broke_and_what_it_taught() -> None:
    told = lessons()

    assert told
    assert all(lesson.found and len(lesson.taught.split()) > 15 for lesson in told)
