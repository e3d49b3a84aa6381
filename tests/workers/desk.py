"""A worker's holdings with no Kafka around them, and a clock that only the tests move."""

from dataclasses import replace
from typing import Any

from mainspring.jobs import App, to_spec
from mainspring.schemas.attempts import AttemptClaimed
from mainspring.schemas.codec import Codec
from mainspring.schemas.common import ConfirmedStart, Priority
from mainspring.schemas.work import WorkOffered
from mainspring.topics import Connection, Topology
from mainspring.workers import Registry, WorkerConfig
from mainspring.workers.attempt import Attempt, Outcome, OutcomeKind, StopReason
from mainspring.workers.holdings import Holdings
from mainspring.workers.reports import Reporter

app = App("holdings")


@app.job
async def known() -> None:
    """Any job."""


class FakeExecutor:
    """Runs nothing: the test says when an attempt ends."""

    def __init__(self) -> None:
        self.running = 0
        self.begun: dict[str, Attempt] = {}
        self.stopped: dict[str, StopReason] = {}

    def invoke(self, attempts: Any) -> None:
        self.running += len(attempts)
        self.begun |= {attempt.job_id: attempt for attempt in attempts}

    def stop(self, attempt: Attempt, reason: StopReason) -> None:
        attempt.stop_reason = reason
        self.stopped[attempt.job_id] = reason

    def end(self, job_id: str) -> Attempt:
        attempt = self.begun.pop(job_id)
        attempt.outcome = Outcome(kind=OutcomeKind.SUCCEEDED)
        attempt.returned = True
        self.running -= 1
        return attempt


class Desk:
    """Holdings with everything around them at hand."""

    def __init__(self, slots: int = 2, **changes: Any) -> None:
        self.executor = FakeExecutor()
        self.sent: list[Any] = []
        config = WorkerConfig(
            connection=Connection("nowhere:1"),
            topology=Topology(),
            codec=Codec.embedded(),
            slots=slots,
            **changes,
        )
        self.holdings = Holdings(
            config=config,
            registry=Registry(app),
            reporter=Reporter("w", "life"),
            executor=self.executor,
            send=lambda role, record: self.sent.append(record),
            count=lambda outcome, number: None,
        )

    def offer(
        self, *job_ids: str, now: float = 0.0, name: str = "known", lane: Priority = Priority.MEDIUM, **spec: Any
    ) -> None:
        offers = [
            WorkOffered(
                job_id=job_id,
                attempt=1,
                offer=1,
                offered_at_ms=0,
                due_at_ms=0,
                spec=replace(to_spec(name), job_id=job_id, priority=lane, **spec),
            )
            for job_id in job_ids
        ]
        self.holdings.offered(offers, now)

    def confirm(self, *job_ids: str, now: float = 0.0, attempt: int = 1) -> None:
        self.holdings.confirmed([ConfirmedStart(job_id=job_id, attempt=attempt) for job_id in job_ids], now)

    def end(self, job_id: str, now: float = 0.0) -> None:
        self.holdings.ended([self.executor.end(job_id)], now)

    def take(self, kind: type) -> list[Any]:
        found = [record for record in self.sent if isinstance(record, kind)]
        self.sent = [record for record in self.sent if not isinstance(record, kind)]
        return found

    def claimed(self) -> list[tuple[str, bool]]:
        return [(claim.job_id, claim.free_slot) for claim in self.take(AttemptClaimed)]
