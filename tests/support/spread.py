"""Which worker of a parallel run begins with what: slow tests first, and never more than two of them at once.

Slow tests start installations of real processes and mostly wait for them; the time limits that they prove hold beside
one other such test, and beside many short ones. So two workers begin with them while the others begin with the rest.
"""

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

__all__ = ["spread"]

T = TypeVar("T")

_AT_ONCE = 2


def spread(slow: Sequence[T], quick: Sequence[T], workers: int) -> list[T]:
    """An order in which the first two of `workers` equal shares begin with the slow tests.

    The scheduler of a parallel run gives each worker a share of the order, and lets who is done take from the end of
    another's.
    """
    left = len(slow) + len(quick)
    rest = list(quick)
    ordered: list[T] = []
    for worker in range(workers):
        size = left // (workers - worker)
        left -= size
        own = list(slow[worker::_AT_ONCE]) if worker < _AT_ONCE else []
        room = max(0, size - len(own))
        ordered += own + rest[:room]
        rest = rest[room:]
    return ordered + rest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests of a parallel run; every worker finds the same order."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > _AT_ONCE:
        slow = [item for item in items if item.get_closest_marker("slow")]
        quick = [item for item in items if not item.get_closest_marker("slow")]
        items[:] = spread(slow, quick, workers)
