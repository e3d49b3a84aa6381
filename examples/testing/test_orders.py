"""Tests of the jobs in `orders.py`: no broker, no waiting. The fixture `mainspring` comes with Mainspring."""

from datetime import timedelta

import orders
import pytest

from mainspring.client import AsyncClient, JobCancelledError, JobFailedError
from mainspring.jobs import JobPriority, JobStatus
from mainspring.testing import AsyncVirtualClient, Mainspring

PAGES = 60


class FakePayments:
    """Fails as often as it is told to, and remembers what it was asked for."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.keys: list[str] = []

    async def charge(self, order: str, cents: int, idempotency_key: str) -> str:
        self.keys.append(idempotency_key)
        if self.failures:
            raise self.failures.pop(0)
        return f"{order}: {cents}"


def test_a_charge_is_tried_again_when_the_service_is_away(
    mainspring: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    payments = FakePayments(ConnectionError("away"), ConnectionError("still away"))
    monkeypatch.setattr(orders, "payments", payments)

    job = mainspring.submit(orders.charge.job("A-1", 1999))

    assert job.result() == "A-1: 1999"
    job.assert_attempts(3)
    assert set(payments.keys) == {job.job_id}, "the same key for every attempt, so that nobody pays twice"
    assert job.output == "charging A-1\n" * 3


def test_a_declined_card_is_not_tried_again(mainspring: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "payments", FakePayments(orders.CardDeclinedError("declined")))

    job = mainspring.submit(orders.charge.job("A-1", 1999))

    with pytest.raises(JobFailedError, match="declined"):
        job.result()
    job.assert_failed(orders.CardDeclinedError)
    job.assert_attempts(1)


def test_a_reminder_is_sent_after_three_days_and_not_before(mainspring: Mainspring) -> None:
    job = mainspring.submit(orders.remind.job("A-1"), delay=orders.REMIND_AFTER)

    mainspring.advance(orders.REMIND_AFTER - timedelta(seconds=1))
    job.assert_status(JobStatus.PENDING)

    mainspring.advance("2s")
    job.assert_completed("reminded of A-1")


def test_a_reminder_can_be_called_off(mainspring: Mainspring) -> None:
    job = mainspring.submit(orders.remind.job("A-1"), delay=orders.REMIND_AFTER)
    mainspring.advance("1d")

    assert job.cancel("it was paid")

    with pytest.raises(JobCancelledError, match="it was paid"):
        job.result()


def test_an_export_survives_the_death_of_its_worker(mainspring: Mainspring) -> None:
    job = mainspring.submit(orders.export.job("2030-01-01", pages=PAGES))
    mainspring.advance("30s")
    assert job.progress == (0.5, "page 30 of 2030-01-01")

    mainspring.worker_of(job).kill()
    mainspring.start_worker()

    assert job.result() == PAGES
    job.assert_events("JobSubmitted", "JobStarted", "JobRetryScheduled", "JobStarted", "JobCompleted")


@pytest.mark.mainspring(slots=1)
def test_urgent_work_goes_first(mainspring: Mainspring) -> None:
    long = mainspring.submit(orders.export.job("2030-01-01", pages=10))
    mainspring.advance("1s")
    later = mainspring.submit(orders.remind.job("A-1"))
    urgent = mainspring.submit(orders.remind.job("A-2"), priority=JobPriority.CRITICAL)

    mainspring.join()

    ended = [info.job_id for info in sorted(mainspring.jobs(), key=lambda info: info.finished_at or mainspring.now)]
    assert ended == [long.job_id, urgent.job_id, later.job_id]


async def place_order(order: str, client: AsyncClient | AsyncVirtualClient) -> None:
    """Code of an application that awaits: in production it is given an `AsyncClient`."""
    await client.submit(orders.remind.job(order))


async def test_code_that_awaits_gets_the_async_client(mainspring: Mainspring) -> None:
    await place_order("A-7", mainspring.async_client)

    mainspring.advance("1s")

    mainspring.handle("remind-1").assert_completed("reminded of A-7")
