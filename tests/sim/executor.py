"""What runs, and the book of what really ran: kept outside of everything that is under test."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mainspring.schemas.common import AttemptError
from mainspring.workers.attempt import Attempt, Outcome, OutcomeKind, StopReason
from tests.sim.jobs import Behaviour
from tests.sim.process import Process
from tests.sim.rest import Rest
from tests.sim.world import SECOND, Event

__all__ = ["Ledger", "Run", "SimExecutor"]

_KINDS = {
    StopReason.TIMED_OUT: OutcomeKind.TIMED_OUT,
    StopReason.CANCELLED: OutcomeKind.CANCELLED,
    StopReason.DRAINING: OutcomeKind.RELEASED,
    StopReason.LEASE_AT_RISK: OutcomeKind.RELEASED,
}


@dataclass(slots=True)
class Run:
    """An attempt's code as it really ran."""

    job_id: str
    attempt: int
    process: str
    start: int
    end: int | None = None


@dataclass(slots=True)
class Ledger:
    """All runs, and when each worker's process was out of contact."""

    runs: list[Run] = field(default_factory=list)
    silences: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    on_start: list[Callable[[Run], None]] = field(default_factory=list)

    def begin(self, run: Run) -> None:
        """Code begins to run."""
        self.runs.append(run)
        for tell in self.on_start:
            tell(run)


class SimExecutor:
    """Lets attempts take their time, instead of `JobExecutor`."""

    def __init__(self, process: Process, ledger: Ledger, rest: Rest) -> None:
        self.running = 0
        self.peak_running = 0
        self.overdue = 0
        self._process = process
        self._world = process.world
        self._ledger = ledger
        self._rest = rest
        self._ended: list[Attempt] = []
        self._runs: dict[Attempt, tuple[Run, Event]] = {}
        process.on_death.append(self.stop_everything)

    def start(self) -> None:
        """Nothing is needed."""

    def invoke(self, attempts: Sequence[Attempt]) -> None:
        """Begins attempts."""
        for attempt in attempts:
            behaviour = Behaviour.of(attempt.payload)
            attempt.running = True
            attempt.started_at = self._process.clock.mono_ms() / 1000
            attempt.started_at_ms = self._process.clock.wall_ms()
            run = Run(attempt.job_id, attempt.number, self._process.name, self._world.now)
            self._world.note("run", attempt.job_id, attempt.number, self._process.name)
            self._ledger.begin(run)
            self.running += 1
            self.peak_running = max(self.peak_running, self.running)
            outcome = _outcome(behaviour, attempt)
            self._runs[attempt] = (run, self._later(behaviour.ms * 1000, attempt, outcome))
            if attempt.timeout_ms is not None and not behaviour.deaf and behaviour.ms >= attempt.timeout_ms:
                self._world.after(attempt.timeout_ms * 1000, lambda attempt=attempt: self._time_out(attempt))  # type: ignore[misc]

    def stop(self, attempt: Attempt, reason: StopReason) -> None:
        """Asks an attempt to stop; it does so after a moment, unless it is deaf."""
        self._process.point("stop")
        if attempt.stop_reason is not None or attempt not in self._runs:
            return
        attempt.stop_reason = reason
        if Behaviour.of(attempt.payload).deaf:
            self._world.saw("stop not heard")
            return
        run, event = self._runs[attempt]
        event.cancel()
        delay = self._world.rng.randrange(1, 300_000)
        self._runs[attempt] = (run, self._later(delay, attempt, Outcome(kind=_KINDS[reason])))

    def stop_everything(self) -> None:
        """The process ends, and what runs in it with it."""
        for attempt, (run, event) in self._runs.items():
            event.cancel()
            run.end = self._world.now
            self._world.note("stopped", attempt.job_id, attempt.number)
        self._runs.clear()

    def collect(self, wait_s: float = 0.0) -> list[Attempt]:
        """What has ended since the last call."""
        if wait_s > 0 and not self._ended:
            self._rest.take(wait_s)
        ended, self._ended = self._ended, []
        return ended

    def shutdown(self, patience_s: float) -> None:
        """Waits for what was told to stop. What is deaf to that runs on, until the process ends over it."""
        until = self._world.now + round(patience_s * SECOND)
        while self.running and self._world.now < until:
            self._process.sleep(SECOND // 20)

    def _time_out(self, attempt: Attempt) -> None:
        self._process.background(lambda: self.stop(attempt, StopReason.TIMED_OUT))

    def _later(self, delay: int, attempt: Attempt, outcome: Outcome) -> Event:
        return self._world.after(delay, lambda: self._process.background(lambda: self._end(attempt, outcome)))

    def _end(self, attempt: Attempt, outcome: Outcome) -> None:
        found = self._runs.pop(attempt, None)
        if found is None:
            return
        found[0].end = self._world.now
        self.running -= 1
        attempt.running = False
        attempt.returned = True
        attempt.outcome = outcome
        self._ended.append(attempt)
        self._rest.ring()


def _outcome(behaviour: Behaviour, attempt: Attempt) -> Outcome:
    if behaviour.fails < 0 or attempt.number <= behaviour.fails:
        error = AttemptError(type="SimulatedError", message=f"attempt {attempt.number} fails")
        return Outcome(kind=OutcomeKind.FAILED, error=error, retryable=not behaviour.for_good)
    return Outcome(kind=OutcomeKind.SUCCEEDED, result=b"1")
