"""Is this process alive, ready, started? Named checks with reasons.

Liveness asks only whether the process's own loops come round: a broker that cannot be reached must not restart every
pod. A loop that turns but gets nothing done although there is something to do is told apart by `Loop.progress`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock
from time import monotonic, time

from mainspring.telemetry.metrics import LOOP_HEARTBEAT

__all__ = ["Check", "Health", "Loop", "Probe", "Report"]

# Why a check fails, in words for an operator; None when it is well.
Check = Callable[[], str | None]


class Probe(StrEnum):
    """What is asked."""

    LIVE = "live"
    READY = "ready"
    STARTUP = "startup"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The answer to one probe: `ok`, and for each check `"ok"` or the reason why not."""

    probe: Probe
    ok: bool
    checks: dict[str, str]

    def as_json(self) -> dict[str, object]:
        """The body of the HTTP answer."""
        return {"probe": self.probe.value, "status": "ok" if self.ok else "failing", "checks": self.checks}


class Loop:
    """The pulse of one loop; any thread may read the ages.

    Call `beat` each time it comes round, `working` when it has something to do, `progress` when it got something done.
    """

    def __init__(self, role: str, clock: Callable[[], float] = monotonic) -> None:
        self.role = role
        self._clock = clock
        self._beat_at = clock()
        self._pending_since: float | None = None
        self._metric = LOOP_HEARTBEAT.labels(role=role)
        self._metric.set(time())

    def beat(self) -> None:
        """The loop came round."""
        self._beat_at = self._clock()
        self._metric.set(time())

    def working(self) -> None:
        """There is something to do (lag, a due job); the clock of `stalled_s` starts unless it runs already."""
        if self._pending_since is None:
            self._pending_since = self._clock()

    def progress(self) -> None:
        """Something was done, or there is nothing to do."""
        self._pending_since = None

    @property
    def age_s(self) -> float:
        """Seconds since the last beat."""
        return self._clock() - self._beat_at

    @property
    def stalled_s(self) -> float:
        """Seconds for which there has been something to do without any of it being done; 0 when there is none."""
        since = self._pending_since
        return 0.0 if since is None else self._clock() - since


class Health:
    """The named checks of one process, by probe. Thread-safe; a check that raises counts as failing with its error."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._checks: dict[Probe, dict[str, Check]] = {probe: {} for probe in Probe}

    def live(self, name: str, check: Check) -> None:
        """Add a check whose failure means that only a restart helps. It must not depend on a broker."""
        self._add(Probe.LIVE, name, check)

    def ready(self, name: str, check: Check) -> None:
        """Add a check whose failure means that the process cannot do its work just now."""
        self._add(Probe.READY, name, check)

    def startup(self, name: str, check: Check) -> None:
        """Add a check that fails until the process has come up once (restore is done, for example)."""
        self._add(Probe.STARTUP, name, check)

    def loop(self, role: str, *, max_age_s: float, max_stall_s: float | None = None) -> Loop:
        """Watch a loop: alive while it comes round in `max_age_s`, ready while no work lies for `max_stall_s`."""
        loop = Loop(role, self._clock)
        self.live(f"{role} loop", lambda: _too_old(loop, max_age_s))
        if max_stall_s is not None:
            self.ready(f"{role} progress", lambda: _stalled(loop, max_stall_s))
        return loop

    def report(self, probe: Probe) -> Report:
        """Run the checks of a probe. Readiness includes liveness: a process that hangs is not ready."""
        with self._lock:
            checks = dict(self._checks[probe])
            if probe is Probe.READY:
                checks = self._checks[Probe.LIVE] | checks
        results = {name: _run(check) for name, check in checks.items()}
        return Report(
            probe=probe,
            ok=all(reason is None for reason in results.values()),
            checks={name: reason or "ok" for name, reason in results.items()},
        )

    def _add(self, probe: Probe, name: str, check: Check) -> None:
        with self._lock:
            self._checks[probe][name] = check


def _run(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - a broken check is a failing check, whatever broke it
        return f"check failed: {type(error).__name__}: {error}"


def _too_old(loop: Loop, max_age_s: float) -> str | None:
    age = loop.age_s
    return None if age <= max_age_s else f"has not come round for {age:.1f} s (allowed: {max_age_s:g} s)"


def _stalled(loop: Loop, max_stall_s: float) -> str | None:
    stalled = loop.stalled_s
    return None if stalled <= max_stall_s else f"alive, but nothing done for {stalled:.1f} s although there is work"
