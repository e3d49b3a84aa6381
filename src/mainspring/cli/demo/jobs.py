"""The jobs of the demo: one for each way in which a job can run and end."""

import asyncio
import logging
import time

from mainspring.jobs import App, ConcurrencyModel, NonRetryableError, RetryPolicy, current_context

__all__ = [
    "app",
    "email",
    "feed",
    "forever",
    "invoice",
    "partner",
    "payment",
    "pulse",
    "report",
    "thumbnail",
    "video",
]

app = App("demo")
log = logging.getLogger(__name__)

QUICK_RETRY = RetryPolicy(max_retries=2, base_delay=0.2, max_delay=0.4)
PAYMENT_SUCCEEDS_AT = 3
_STEP_S = 0.1


@app.job
async def email(to: str) -> str:
    """Sends an e-mail: a short async job."""
    await asyncio.sleep(0.05)
    log.info("sent to %s", to)
    return f"sent to {to}"


@app.job
async def pulse() -> str:
    """What the recurring schedule fires every second."""
    return "beat"


@app.job
def report(month: int) -> int:
    """Writes a report: a call that blocks, so it runs in a thread."""
    time.sleep(0.4)
    return month


@app.job(model=ConcurrencyModel.PROCESS)
def thumbnail(size: int) -> int:
    """Computes: it needs a core, so it runs in a process of its own. Returns the number of primes below `size`."""
    sieve = bytearray([1]) * size
    sieve[:2] = b"\0\0"
    for number in range(2, int(size**0.5) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, size, number)))
    return sum(sieve)


@app.job
def video(seconds: float) -> str:
    """Works for some seconds, tells how far it is, and stops when it is no longer wanted."""
    ctx = current_context()
    started = time.monotonic()
    while (passed := time.monotonic() - started) < seconds and not ctx.is_cancelled:
        ctx.progress(passed / seconds)
        time.sleep(_STEP_S)
    return "encoded"


@app.job(retry=QUICK_RETRY)
async def payment() -> str:
    """Fails at the first attempts and succeeds at the third."""
    if current_context().attempt < PAYMENT_SUCCEEDS_AT:
        raise ConnectionError("the bank hung up")
    return "paid"


@app.job(retry=QUICK_RETRY)
async def feed() -> None:
    """Fails whenever it is tried."""
    raise ConnectionError("nobody answers")


@app.job(retry=QUICK_RETRY)
async def invoice() -> None:
    """Fails in a way that no retry can help."""
    raise NonRetryableError("the customer does not exist")


@app.job(timeout=0.8, retry=RetryPolicy(max_retries=1, base_delay=0.2, max_delay=0.2))
async def partner() -> None:
    """Waits for an answer that never comes, so each attempt times out."""
    await asyncio.sleep(3600)


@app.job
async def forever() -> None:
    """Never ends by itself."""
    await asyncio.sleep(3600)
