"""A worker of a kit: the real decisions about offers, slots and leases, and ways to hurt it."""

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, Protocol

from mainspring.processors.core import Offer
from mainspring.schemas.common import CauseSource
from mainspring.schemas.logs import LogCaptured
from mainspring.schemas.records import AttemptReport, Signal
from mainspring.schemas.signals import ClaimRefused, StartConfirmed
from mainspring.testing.clock import Duration, microseconds
from mainspring.testing.errors import WorkerGoneError
from mainspring.testing.executor import Stage, VirtualExecutor
from mainspring.workers.attempt import StopReason
from mainspring.workers.config import WorkerConfig
from mainspring.workers.holdings import Holdings
from mainspring.workers.registry import Registry
from mainspring.workers.reports import Reporter

__all__ = ["VirtualWorker", "WorkerHome", "WorkerLife"]

_STOP_US: Final = 3_000_000
"""How long what was told to stop at the end of a drain may take to do so, as in the real worker."""


class WorkerLife(Enum):
    """Where a worker stands."""

    RUNNING = "running"
    DRAINING = "draining"
    STOPPED = "stopped"
    KILLED = "killed"


class WorkerHome(Protocol):
    """What a worker needs of its kit."""

    def report(self, record: AttemptReport, source: CauseSource) -> None:
        """Takes a report."""

    def captured(self, record: LogCaptured) -> None:
        """Takes the output of an attempt."""

    def about_to_fall_silent(self, worker: "VirtualWorker") -> None:
        """The worker is heard for the last time."""

    def run_until(self, done: Callable[[], bool], timeout_us: int | None) -> bool:
        """Moves time until `done`, or for so long."""


class VirtualWorker:
    """A worker process. `worker_id`, `slots` and `queues` are as it was started; the methods are what a test may do."""

    def __init__(self, home: WorkerHome, stage: Stage, config: WorkerConfig, registry: Registry, life: int) -> None:
        self.worker_id = config.worker_id
        self.slots = config.slots
        self.queues = config.queues
        self.number = life
        self.incarnation = f"{config.worker_id}.{life}"
        self.life = WorkerLife.RUNNING
        self.is_connected = True
        self.silent_since_us: int | None = None
        self._home = home
        self._clock = stage.clock
        self._lease_s = config.lease_ms / 1000
        self._give_up_s = config.give_up_ms / 1000
        self._reporter = Reporter(self.worker_id, self.incarnation, lambda: stage.clock.wall_ms)
        self._executor = VirtualExecutor(stage)
        self._unsent: list[tuple[str, Any]] = []
        self._drain_us: int | None = None
        self._stop_us: int | None = None
        self._holdings = Holdings(
            config=config,
            registry=registry,
            reporter=self._reporter,
            executor=self._executor,
            send=self._send,
            count=lambda _reason, _number: None,
        )

    def __repr__(self) -> str:
        return f"<VirtualWorker {self.worker_id!r} {self.life.value}, {len(self.running)} of {self.slots} slots>"

    @property
    def is_alive(self) -> bool:
        """Whether its process exists."""
        return self.life in (WorkerLife.RUNNING, WorkerLife.DRAINING)

    @property
    def running(self) -> tuple[str, ...]:
        """Ids of the jobs whose code runs here."""
        return tuple(attempt.job_id for attempt in self._executor.attempts)

    @property
    def room(self) -> int:
        """For how many offers it has a slot now."""
        return self._holdings.free if self.is_connected and self.life is WorkerLife.RUNNING else 0

    def kill(self) -> None:
        """`kill -9`: its code stops where it stands, nothing is reported; its jobs run again when their lease is over.

        Also from a job of the worker: a blocking one stops right there, an async one at its next `await`.
        """
        self._check_alive()
        self._home.about_to_fall_silent(self)
        self.life = WorkerLife.KILLED
        self._executor.freeze()

    def drain(self, grace: Duration = 30, *, wait: bool = True) -> None:
        """SIGTERM: takes nothing more, gives what runs `grace`, then hands the rest back.

        What is handed back runs elsewhere at once and counts as no retry. `wait`: moves time until it has ended.
        """
        self._check_alive()
        if self.life is WorkerLife.RUNNING:
            self.life = WorkerLife.DRAINING
            self._drain_us = self._clock.now_us + microseconds(grace)
            self._holdings.drain()
        if wait:
            self._home.run_until(lambda: not self.is_alive, None)

    def disconnect(self) -> None:
        """Cuts it off from Kafka: its code goes on, nobody hears of it and it hears of nobody."""
        self._check_alive()
        self._home.about_to_fall_silent(self)
        self.is_connected = False

    def reconnect(self) -> None:
        """It reaches Kafka again: what it had to say is sent now, late as it may be."""
        self._check_alive()
        self.is_connected = True
        self.silent_since_us = None
        unsent, self._unsent = self._unsent, []
        for role, record in unsent:
            self._send(role, record)
        self.beat()

    # For the kit.

    @property
    def next_us(self) -> int | None:
        """When it has something to do by itself."""
        instants = [self._executor.next_us, self._stop_us if self._stop_us is not None else self._drain_us]
        if not self.is_connected:
            instants += self._patience()
        return min((at_us for at_us in instants if at_us is not None), default=None)

    def beat(self) -> None:
        """Renews the leases of what it holds."""
        held = list(self._holdings.attempts.values())
        if held and self.is_alive:
            self._send("attempts", self._reporter.heartbeat(held))

    def offered(self, offer: Offer) -> None:
        """It has read an offer."""
        self._holdings.offered([offer.record], self._clock.seconds, lanes=[offer.lane])

    def hear(self, signal: Signal) -> None:
        """It has read a signal."""
        now = self._clock.seconds
        if isinstance(signal, StartConfirmed):
            self._holdings.confirmed(signal.starts, now)
        elif isinstance(signal, ClaimRefused):
            self._holdings.refused(signal.job_id, signal.attempt, now)
        else:
            self._holdings.cancelled(signal.job_id, signal.attempt, signal.reason, now)

    def turn(self) -> bool:
        """Reports what has ended and looks at the time. Returns whether anything came of it."""
        news = self._executor.collect()
        now = self._clock.seconds
        if news:
            self._holdings.ended(news, now)
        if self.is_connected:
            for attempt in self._holdings.attempts.values():
                attempt.lease_from = now  # its heartbeats have arrived all the time
        self._holdings.tick(now)
        if self.life is WorkerLife.DRAINING:
            self._go_on_draining()
        return bool(news)

    def _patience(self) -> list[int | None]:
        """When it gives up what it hears nothing of: attempts whose lease is over, claims that nobody answers."""
        holdings, at_seconds = self._holdings, self._clock.at_seconds
        return [
            at_seconds(attempt.claimed_at + self._give_up_s)
            if job_id in holdings.awaiting
            else at_seconds(attempt.lease_from + self._lease_s)
            for job_id, attempt in holdings.attempts.items()
            if attempt.stop_reason is None
        ]

    def _go_on_draining(self) -> None:
        now_us = self._clock.now_us
        if self._holdings.attempts and self._stop_us is None and now_us >= (self._drain_us or 0):
            self._stop_us = now_us + _STOP_US
            self._holdings.stop_all(StopReason.DRAINING)
        elif not self._holdings.attempts or (self._stop_us is not None and now_us >= self._stop_us):
            self._holdings.release_rest()
            self.life = WorkerLife.STOPPED
            self._executor.freeze()

    def _send(self, role: str, record: Any) -> None:
        if not self.is_alive:
            return
        if not self.is_connected:
            self._unsent.append((role, record))
        elif role == "logs":
            self._home.captured(record)
        else:
            self._home.report(record, CauseSource.ATTEMPTS)

    def _check_alive(self) -> None:
        if not self.is_alive:
            raise WorkerGoneError(self.worker_id, self.life.value)
