"""The background work of a small shop: an e-mail, a sales report and a thumbnail, each run the way that suits it.

    mainspring dev --app examples.shop.app:app      # everything in one terminal
    python -m examples.shop.checkout                # in another: a customer checks out

What the jobs write goes to the directory SHOP_DIR (`shop-data` by default).
"""

import asyncio
import csv
import logging
import os
import time
from collections import Counter
from datetime import date
from email.message import EmailMessage
from pathlib import Path

from mainspring.jobs import App, CpuBoundJob, JobPriority, NonRetryableError, RetryPolicy, current_context

app = App("shop")
log = logging.getLogger(__name__)


def shop_dir() -> Path:
    """Where the shop keeps its files."""
    return Path(os.environ.get("SHOP_DIR", "shop-data"))


@app.on_start
async def open_shop() -> None:
    """Once in every process, before its first job: what all jobs of the process share."""
    app.state.outbox = shop_dir() / "outbox"
    app.state.outbox.mkdir(parents=True, exist_ok=True)


@app.job(timeout=10, retry=RetryPolicy(max_retries=5), priority=JobPriority.HIGH)
async def send_receipt(order_id: str, to: str, total_cents: int) -> str:
    """An async job: it waits for a mail server most of the time, so thousands share one event loop.

    An attempt may run again when its worker dies, so the mail carries a key by which the server knows it.
    """
    if "@" not in to:
        # No retry makes an address of it.
        raise NonRetryableError(f"{to!r} is no e-mail address")
    mail = EmailMessage()
    mail["To"], mail["Subject"] = to, f"Your order {order_id}"
    mail["Message-ID"] = f"<{current_context().idempotency_key}@shop.example>"
    mail.set_content(f"Thank you! You paid {total_cents / 100:.2f} €.")
    await asyncio.sleep(0.05)  # the mail server takes its time
    path: Path = app.state.outbox / f"{order_id}.eml"
    await asyncio.to_thread(path.write_bytes, mail.as_bytes())
    log.info("receipt for %s sent to %s", order_id, to)
    return str(mail["Message-ID"])


@app.job(timeout=60)
def sales_report(day: date) -> dict[str, int]:
    """A blocking job: files, databases without an async driver. It runs in a thread and stops when it is cancelled."""
    ctx = current_context()
    sold: Counter[str] = Counter()
    with (shop_dir() / "orders.csv").open(encoding="utf-8", newline="") as orders:
        for number, order in enumerate(csv.DictReader(orders), 1):
            if ctx.is_cancelled:
                raise InterruptedError(f"stopped at order {number}")
            if order["day"] == day.isoformat():
                sold[order["article"]] += int(order["pieces"])
            ctx.progress(note=f"{number} orders read")
            time.sleep(0.01)  # an old database
    return dict(sold)


@app.register
class Thumbnail(CpuBoundJob):
    """A CPU-bound job, as a class: it runs in a process of its own, which a time-out or a cancel ends at once.

    Makes a small picture of a large one, both binary PPM; returns its size.
    """

    picture: str
    width: int = 64

    timeout = 30

    def run_sync(self) -> tuple[int, int]:
        """Each pixel of the thumbnail is the mean of those that it stands for."""
        source = shop_dir() / self.picture
        magic, size, _, pixels = source.read_bytes().split(b"\n", 3)
        if magic != b"P6":
            raise NonRetryableError(f"{self.picture} is no binary PPM")
        wide, high = map(int, size.split())
        step = max(1, wide // self.width)
        columns, rows = wide // step, high // step
        small = bytearray()
        for row in range(rows):
            lines = [pixels[3 * wide * (row * step + i) : 3 * wide * (row * step + i + 1)] for i in range(step)]
            for column in range(columns):
                left, right = 3 * column * step, 3 * (column + 1) * step
                small += bytes(sum(sum(line[left + c : right : 3]) for line in lines) // step**2 for c in range(3))
        source.with_suffix(".small.ppm").write_bytes(b"P6\n%d %d\n255\n" % (columns, rows) + small)
        return columns, rows
