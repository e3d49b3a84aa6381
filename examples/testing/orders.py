"""An application with jobs, as small as one can be: what its tests are about."""

import asyncio
import time
from datetime import timedelta

from mainspring.jobs import App, NonRetryableError, RetryPolicy, current_context

app = App("orders")


class CardDeclinedError(NonRetryableError):
    """Trying again would not help."""


class Payments:
    """Stands for the client of a payment service."""

    async def charge(self, order: str, cents: int, idempotency_key: str) -> str:
        raise NotImplementedError("the real service")


payments = Payments()


@app.job(timeout=30, retry=RetryPolicy(max_retries=3, base_delay=2))
async def charge(order: str, cents: int) -> str:
    """Charges an order, once however often it is tried."""
    context = current_context()
    print(f"charging {order}")
    return await payments.charge(order, cents, context.idempotency_key)


@app.job(retry=RetryPolicy(max_retries=1, base_delay=60, jitter=False))
def export(day: str, pages: int) -> int:
    """Exports a day page by page: blocking, a second a page."""
    context = current_context()
    for page in range(pages):
        if context.is_cancelled:
            break
        time.sleep(1)
        context.progress((page + 1) / pages, f"page {page + 1} of {day}")
    return pages


@app.job
async def remind(order: str) -> str:
    """Reminds of an unpaid order."""
    await asyncio.sleep(0.1)
    return f"reminded of {order}"


REMIND_AFTER = timedelta(days=3)
