"""Jobs to play with: what `mainspring dev` runs when it is given no app."""

import asyncio
import logging
import random
import time

from mainspring.jobs import App, ConcurrencyModel, JobContext, NonRetryableError, RetryPolicy

__all__ = ["app"]

app = App("sample")
log = logging.getLogger(__name__)


@app.job
async def hello(name: str = "world") -> str:
    """Greets; an async job."""
    log.info("greeting %s", name)
    return f"Hello, {name}!"


@app.job
def sleep(ctx: JobContext, seconds: float = 1.0) -> str:
    """Sleeps in a thread, reports its progress, and stops early when it is cancelled."""
    started = time.monotonic()
    while (passed := time.monotonic() - started) < seconds and not ctx.is_cancelled:
        ctx.progress(passed / seconds)
        time.sleep(min(0.1, seconds - passed))
    return f"slept {time.monotonic() - started:.1f} s"


@app.job(model=ConcurrencyModel.PROCESS)
def primes(below: int = 100_000) -> int:
    """Counts the primes below a number; a CPU-bound job in a process of its own."""
    sieve = bytearray([1]) * below
    sieve[:2] = b"\0\0"
    for number in range(2, int(below**0.5) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, below, number)))
    return sum(sieve)


@app.job(retry=RetryPolicy(max_retries=5, base_delay=0.5, max_delay=10))
async def flaky(chance: float = 0.5) -> str:
    """Fails with some chance, and is tried again."""
    await asyncio.sleep(0.05)
    if random.random() < chance:  # noqa: S311 - chance, no secret
        raise ConnectionError("the other side hung up")
    return "got through"


@app.job
async def broken() -> None:
    """Fails for good."""
    raise NonRetryableError("this job can never succeed")
