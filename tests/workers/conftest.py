"""An executor that runs."""

from collections.abc import Iterator

import pytest

from mainspring.workers.executors import JobExecutor
from tests.workers.executing import an_executor


@pytest.fixture
def executor() -> Iterator[JobExecutor]:
    with an_executor() as running:
        yield running
