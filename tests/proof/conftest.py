"""How a proof tells what it has measured."""

from collections.abc import Callable

import pytest

from tests.support.proofs import PROPERTY, Report


@pytest.fixture
def report(record_property: Callable[[str, object], None]) -> Report:
    """Adds a line to the summary of the run, and to the JUnit file if there is one."""

    def tell(text: str) -> None:
        record_property(PROPERTY, text)

    return tell
