"""Jobs of every model and every end, quick enough to run for real, too."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from mainspring.jobs import (
    App,
    ConcurrencyModel,
    JobCall,
    JobOptions,
    NonRetryableError,
    RetryLater,
    RetryPolicy,
    current_context,
)

__all__ = ["Scenario", "app", "scenarios"]

app = App("mixed")
TWICE = RetryPolicy(max_retries=2, base_delay=0.05, jitter=False)


@app.job
async def adds(a: int, b: int) -> int:
    await asyncio.sleep(0.02)
    return a + b


@app.job
def shouts(text: str) -> str:
    print(f"shouting {text}")
    return text.upper()


@app.job(model=ConcurrencyModel.PROCESS)
def squares(number: int) -> int:
    return number * number


@app.job(retry=TWICE)
async def succeeds_in_the_end(failures: int) -> int:
    attempt = current_context().attempt
    if attempt <= failures:
        raise ConnectionError(f"away {attempt}")
    return attempt


@app.job(retry=TWICE)
def fails_for_good() -> None:
    raise NonRetryableError("never")


@app.job(retry=TWICE)
async def comes_again_later() -> int:
    if current_context().attempt == 1:
        raise RetryLater(0.1)
    return current_context().attempt


@app.job(timeout=0.2, retry=RetryPolicy(max_retries=1, base_delay=0.01, jitter=False))
async def takes_too_long() -> None:
    await asyncio.sleep(30)


@app.job(timeout=0.2)
def blocks_too_long() -> None:
    time.sleep(1)


@app.job(model=ConcurrencyModel.PROCESS, timeout=1.5)
def computes_too_long() -> None:
    time.sleep(30)


@app.job
async def returns_what_no_json_holds() -> object:
    return object()


@app.job
async def lingers(seconds: float) -> None:
    await asyncio.sleep(seconds)


@app.job
def lingers_in_a_thread(seconds: float) -> None:
    time.sleep(seconds)


@app.job
async def hangs() -> None:
    await asyncio.Event().wait()


@app.job
def exits() -> None:
    raise SystemExit(1)


NO_OPTIONS = JobOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A job, under an id of its own, and what is done to it."""

    job_id: str
    job: JobCall | str
    arguments: dict[str, object] | None = None
    options: JobOptions = NO_OPTIONS
    cancelled: bool = False


def scenarios(now: datetime) -> tuple[Scenario, ...]:
    """All of them. `now`: where the clock of those who run them stands."""
    calls: tuple[Callable[[], JobCall], ...] = (
        lambda: adds.job(1, 2),
        lambda: shouts.job("hey"),
        lambda: squares.job(12),
        lambda: succeeds_in_the_end.job(0),
        lambda: succeeds_in_the_end.job(2),
        lambda: succeeds_in_the_end.job(3),
        fails_for_good.job,
        comes_again_later.job,
        takes_too_long.job,
        blocks_too_long.job,
        computes_too_long.job,
        returns_what_no_json_holds.job,
        exits.job,
    )
    soon = now + timedelta(seconds=1)
    plain = tuple(Scenario(job_id=f"mixed-{number}", job=call()) for number, call in enumerate(calls))
    return (
        *plain,
        Scenario(job_id="mixed-0", job=adds.job(3, 4)),
        Scenario(job_id="misfit", job="adds", arguments={"a": "one", "c": 2}),
        Scenario(job_id="elsewhere", job=adds.job(1, 1), options=JobOptions(queue="elsewhere")),
        Scenario(job_id="delayed", job=adds.job(5, 6), options=JobOptions(delay=0.3)),
        Scenario(job_id="never", job=adds.job(7, 8), options=JobOptions(delay=3600), cancelled=True),
        Scenario(job_id="expired", job=adds.job(9, 9), options=JobOptions(delay=60, start_deadline=soon)),
    )
