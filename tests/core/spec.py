"""Given, when, then for the core: one partition, its rows in a dictionary, and a clock that the test moves."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mainspring.processors.core import Now, Output, PartitionCore, Rules, in_flight_in
from mainspring.processors.core.explain import WhyNot
from mainspring.processors.core.memory import RowsInMemory
from mainspring.schemas.attempts import (
    AttemptCancelled,
    AttemptClaimed,
    AttemptFailed,
    AttemptHeartbeat,
    AttemptReleased,
    AttemptSucceeded,
    AttemptTimedOut,
    OfferDeclined,
)
from mainspring.schemas.codes import DeclineReason, ReleaseReason
from mainspring.schemas.commands import CancelJob, RescheduleJob, RetryJob, SubmitJob
from mainspring.schemas.common import AttemptError, Cause, CauseSource, HeldAttempt, JobStatus
from mainspring.schemas.job import JobSpec
from mainspring.schemas.records import JobEvent, Record, Signal
from mainspring.schemas.tables import JobState
from mainspring.schemas.work import WorkOffered
from tests.support.index_store import DictStore

T = TypeVar("T")

NOON = 1_767_268_800_000
"""2026-01-01T12:00:00Z: where every test begins."""

START_MONO = 5_000_000


@dataclass
class Partition:
    """A partition under test. Every verb applies one input and collects what came out of it in `last`."""

    rules: Rules = field(default_factory=Rules)
    seed: int = 7
    now: Now = field(default_factory=lambda: Now(NOON, START_MONO))
    rows: RowsInMemory = field(default_factory=RowsInMemory)
    last: Output = field(default_factory=Output)
    events: list[JobEvent] = field(default_factory=list)
    offers: list[WorkOffered] = field(default_factory=list)
    signals: list[Signal] = field(default_factory=list)
    core: PartitionCore = field(init=False)
    offset: int = 0
    commands: int = 0
    index: DictStore | None = None
    """Where the indexes keep what does not fit into their windows; None: all of it is in memory."""
    window_jobs: int = 1

    def __post_init__(self) -> None:
        self._load(0)

    def _load(self, next_seq: int, clock_ms: int = 0) -> None:
        self.core = PartitionCore(0, self.rules, self.rows, self.seed, index=self.index, window_jobs=self.window_jobs)
        states = [*self.rows.states.values()]
        if self.index is not None:
            in_flight = set(in_flight_in(self.index))
            states = [state for state in states if state.job_id in in_flight]
        self.core.load(states, next_seq, self.now, clock_ms=clock_ms)

    # Time and the shell.

    def later(self, ms: int) -> "Partition":
        """Moves both clocks."""
        self.now = Now(self.now.wall_ms + ms, self.now.mono_ms + ms)
        return self

    def set_clock(self, by_ms: int) -> "Partition":
        """Sets the wall clock, ahead or back, and lets no time pass."""
        self.now = Now(self.now.wall_ms + by_ms, self.now.mono_ms)
        return self

    def drain(self) -> "Partition":
        self.last = self.core.drain()
        self.events += self.last.events
        self.offers += [each.record for each in self.last.offers]
        self.signals += self.last.signals
        if self.index is not None:
            self.index.write(self.core.drain_index())
        return self

    def tick(self) -> "Partition":
        self.core.tick(self.now)
        return self.drain()

    def dispatch(self, room: int = 1_000_000) -> "Partition":
        self.core.tick(self.now)
        self.core.dispatch(self.now, room)
        return self.drain()

    def taken_over(self) -> "Partition":
        """Another owner loads the partition from its rows."""
        self._load(self.core.next_seq, self.core.clock_ms)
        return self

    def lease_check(self, asked_at: Now | None = None) -> "Partition":
        """`attempts` has been read past the end that was asked for at `asked_at` (default: now)."""
        self.core.expire_leases(asked_at or self.now, self.now)
        return self.drain()

    def apply(self, record: Record, source: CauseSource, raw: bytes = b"") -> "Partition":
        self.core.apply(record, self.cause(source), self.now, raw)
        return self.drain()

    def cause(self, source: CauseSource) -> Cause:
        self.offset += 1
        return Cause(source=source, partition=0, offset=self.offset)

    # Users.

    def _command(self, command_id: str | None) -> dict[str, Any]:
        self.commands += 1
        return {
            "command_id": command_id or f"command-{self.commands}",
            "actor": "ada",
            "reason": "because",
            "requested_at_ms": self.now.wall_ms,
        }

    def submit(self, job_id: str = "job", command_id: str | None = None, **spec: Any) -> "Partition":
        spec.setdefault("name", "work")
        command = SubmitJob(spec=JobSpec(job_id=job_id, **spec), **self._command(command_id))
        return self.apply(command, CauseSource.COMMANDS)

    def cancel(self, job_id: str = "job", command_id: str | None = None) -> "Partition":
        return self.apply(CancelJob(job_id=job_id, **self._command(command_id)), CauseSource.COMMANDS)

    def reschedule(self, run_at_ms: int, job_id: str = "job", command_id: str | None = None) -> "Partition":
        command = RescheduleJob(job_id=job_id, run_at_ms=run_at_ms, **self._command(command_id))
        return self.apply(command, CauseSource.COMMANDS)

    def retry(self, new_job_id: str, job_id: str = "job", command_id: str | None = None) -> "Partition":
        command = RetryJob(job_id=job_id, new_job_id=new_job_id, **self._command(command_id))
        return self.apply(command, CauseSource.COMMANDS)

    # Workers. Where no attempt is given, the one on offer or running is meant.

    def _report(self, job_id: str, attempt: int | None, worker: str) -> dict[str, Any]:
        if attempt is None:
            state = self.rows.states[job_id]
            attempt = state.dispatch.offered_attempt or state.attempt
        return {
            "job_id": job_id,
            "attempt": attempt,
            "worker_id": worker,
            "incarnation": f"{worker}#1",
            "reported_at_ms": self.now.wall_ms,
        }

    def claim(
        self, job_id: str = "job", attempt: int | None = None, worker: str = "w1", *, free_slot: bool = True
    ) -> "Partition":
        report = AttemptClaimed(free_slot=free_slot, **self._report(job_id, attempt, worker))
        return self.apply(report, CauseSource.ATTEMPTS)

    def start(self, job_id: str = "job", worker: str = "w1") -> "Partition":
        """Offers and starts a job that is due."""
        return self.dispatch().claim(job_id, worker=worker)

    def succeed(
        self,
        job_id: str = "job",
        attempt: int | None = None,
        worker: str = "w1",
        result: bytes | None = b"42",
        raw: bytes = b"raw",
    ) -> "Partition":
        report = AttemptSucceeded(
            started_at_ms=self.now.wall_ms, result=result, **self._report(job_id, attempt, worker)
        )
        return self.apply(report, CauseSource.ATTEMPTS, raw)

    def fail(
        self,
        job_id: str = "job",
        attempt: int | None = None,
        worker: str = "w1",
        *,
        retryable: bool = True,
        retry_delay_ms: int | None = None,
        error: AttemptError | None = None,
    ) -> "Partition":
        report = AttemptFailed(
            started_at_ms=self.now.wall_ms,
            error=error or AttemptError(type="ValueError", message="no"),
            retryable=retryable,
            retry_delay_ms=retry_delay_ms,
            **self._report(job_id, attempt, worker),
        )
        return self.apply(report, CauseSource.ATTEMPTS, b"raw")

    def time_out(self, job_id: str = "job", attempt: int | None = None, worker: str = "w1") -> "Partition":
        report = AttemptTimedOut(
            started_at_ms=self.now.wall_ms, timeout_ms=1000, **self._report(job_id, attempt, worker)
        )
        return self.apply(report, CauseSource.ATTEMPTS, b"raw")

    def stopped(self, job_id: str = "job", attempt: int | None = None, worker: str = "w1") -> "Partition":
        return self.apply(AttemptCancelled(**self._report(job_id, attempt, worker)), CauseSource.ATTEMPTS, b"raw")

    def release(self, job_id: str = "job", attempt: int | None = None, worker: str = "w1") -> "Partition":
        report = AttemptReleased(reason=ReleaseReason.DRAINING, **self._report(job_id, attempt, worker))
        return self.apply(report, CauseSource.ATTEMPTS, b"raw")

    def decline(
        self,
        job_id: str = "job",
        attempt: int | None = None,
        worker: str = "w1",
        reason: DeclineReason = DeclineReason.NO_SLOTS,
    ) -> "Partition":
        report = OfferDeclined(reason=reason, **self._report(job_id, attempt, worker))
        return self.apply(report, CauseSource.ATTEMPTS)

    def heartbeat(self, *held: tuple[str, int], worker: str = "w1") -> "Partition":
        attempts = tuple(HeldAttempt(job_id=job_id, attempt=attempt) for job_id, attempt in held)
        report = AttemptHeartbeat(
            worker_id=worker, incarnation=f"{worker}#1", reported_at_ms=self.now.wall_ms, attempts=attempts
        )
        return self.apply(report, CauseSource.ATTEMPTS)

    # What then.

    def state(self, job_id: str = "job") -> JobState:
        return self.rows.states[job_id]

    def status(self, job_id: str = "job") -> JobStatus:
        return self.state(job_id).status

    def why_not(self, job_id: str = "job") -> WhyNot:
        return self.core.explain(job_id, self.now)

    def event(self, kind: type[T]) -> T:
        """The one event of the last step, which must be of this type."""
        (event,) = self.last.events
        assert isinstance(event, kind), event
        return event

    def signal(self, kind: type[T]) -> T:
        """The one signal of the last step, which must be of this type."""
        (signal,) = self.last.signals
        assert isinstance(signal, kind), signal
        return signal

    def names(self, select: Callable[[JobEvent], bool] = lambda _: True) -> list[str]:
        """The types of all events so far."""
        return [type(each).__name__ for each in self.events if select(each)]
