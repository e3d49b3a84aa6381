"""A customer checks out: what a web shop would submit, and what it can ask afterwards."""

import csv
from datetime import UTC, datetime, timedelta

from examples.shop.app import Thumbnail, sales_report, send_receipt, shop_dir

from mainspring.client import Client


def prepare() -> None:
    """Some orders and a picture, as the shop would have them."""
    today = datetime.now(UTC).date()
    shop_dir().mkdir(parents=True, exist_ok=True)
    with (shop_dir() / "orders.csv").open("w", encoding="utf-8", newline="") as orders:
        writer = csv.writer(orders)
        writer.writerow(["day", "article", "pieces"])
        writer.writerows([[today, article, pieces] for article, pieces in [("lamp", 2), ("chair", 4), ("lamp", 1)]])
    pixels = bytes(channel for y in range(256) for x in range(256) for channel in (x, y, 128))
    (shop_dir() / "lamp.ppm").write_bytes(b"P6\n256 256\n255\n" + pixels)


def main() -> None:
    """Submits three jobs of three kinds, waits for their results, and takes a fourth one back."""
    prepare()
    with Client() as client:
        receipt = client.submit(send_receipt.job("A-1001", to="ada@example.org", total_cents=4990))
        picture = client.submit(Thumbnail(picture="lamp.ppm", width=64))
        report = client.submit(sales_report.job(datetime.now(UTC).date()))
        reminder = client.submit(
            send_receipt.job("A-1002", to="ada@example.org", total_cents=990), delay=timedelta(days=3)
        )
        print("receipt  ", receipt.result(timeout=60))
        print("thumbnail", "{} x {}".format(*picture.result(timeout=60)))
        print("report   ", report.result(timeout=60))
        print("reminder ", "taken back" if client.cancel(reminder.job_id, "paid already") else "too late")


if __name__ == "__main__":
    main()
