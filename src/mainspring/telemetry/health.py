"""Is this process alive, ready, started? Named checks with reasons.

Liveness asks only whether the process's own loops come round: a broker that cannot be reached must not restart every
pod.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock

__all__ = ["Check", "Health", "Probe", "Report"]

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


class Health:
    """The named checks of one process, by probe. Thread-safe; a check that raises counts as failing with its error."""

    def __init__(self) -> None:
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
