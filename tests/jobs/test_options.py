"""Terms of a job as keywords: a misspelt one is answered with what was meant."""

from typing import Any

import pytest

from mainspring.client.commands import to_options
from mainspring.jobs import App, JobDefinitionError, JobOptions, UnknownOptionError
from mainspring.jobs.options import OPTION_NAMES, options_of


def test_a_misspelt_term_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(UnknownOptionError, match="no option 'dealy'; did you mean 'delay'") as caught:
        options_of(queue="mail", dealy=3)
    assert caught.value.option == "dealy"
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, JobDefinitionError)


def test_a_term_that_resembles_none_is_answered_with_all() -> None:
    with pytest.raises(UnknownOptionError) as caught:
        options_of(zzz=3)
    assert all(name in str(caught.value) for name in OPTION_NAMES)


def test_a_submit_knows_its_own_keywords_too() -> None:
    terms: Any = {"raeson": "because"}
    with pytest.raises(UnknownOptionError, match="did you mean 'reason'"):
        to_options(terms)


def test_declarations_and_calls_say_it_too() -> None:
    app = App("test")

    def work() -> None: ...

    wrong: Any = {"timout": 3}
    with pytest.raises(UnknownOptionError, match="did you mean 'timeout'"):
        app.job(**wrong)(work)
    with pytest.raises(UnknownOptionError, match="did you mean 'timeout'"):
        app.job(work).job().with_options(timout=3)


def test_right_terms_are_options() -> None:
    assert options_of(queue="mail", delay=3) == JobOptions(queue="mail", delay=3)
