"""The jobs that the benchmarks run: they do nothing, so that what is measured is what it costs to run them."""

import time

from mainspring.jobs import App

__all__ = ["app", "noop", "since"]

app = App("bench")


@app.job
async def noop() -> None:
    """Does nothing."""


@app.job
async def since(at_ns: int) -> int:
    """How long after an instant it was started: nanoseconds, by the wall clock."""
    return time.time_ns() - at_ns
