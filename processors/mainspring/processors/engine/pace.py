"""When to commit: at once while it is quiet, in larger batches under load."""

from dataclasses import dataclass

__all__ = ["Pace"]


@dataclass(slots=True, kw_only=True)
class Pace:
    """A bucket of transactions that fills at one per `interval_ms` and holds `burst` of them.

    A transaction costs the broker about the same whatever is in it. So a lone command is not kept waiting, and neither
    are the few that follow from it; under load the bucket is empty and inputs gather for up to `interval_ms`.
    """

    interval_ms: int
    burst: int
    _debt_ms: float = 0.0
    _seen_at_ms: int = 0

    def wait_ms(self, now_ms: int) -> int:
        """How long the next transaction should let inputs gather."""
        self._settle(now_ms)
        return max(0, round(self._debt_ms - self.interval_ms * (self.burst - 1)))

    def spend(self, now_ms: int) -> None:
        """A transaction has begun."""
        self._settle(now_ms)
        self._debt_ms = min(self._debt_ms + self.interval_ms, float(self.interval_ms * self.burst))

    def _settle(self, now_ms: int) -> None:
        self._debt_ms = max(0.0, self._debt_ms - (now_ms - self._seen_at_ms))
        self._seen_at_ms = now_ms
