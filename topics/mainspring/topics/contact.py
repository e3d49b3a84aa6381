"""Whether a client is connected to any broker: told by its own statistics, so that nothing has to be asked."""

import json
import time
from collections.abc import Callable
from typing import Any

__all__ = ["Contact"]

EVERY_MS = 5_000
_CONNECTED = frozenset({"UP", "UPDATE"})


class Contact:
    """Follows the connections of one client that is made with `options`."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lost_at: float | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Options of librdkafka that let it tell."""
        return {"statistics.interval.ms": EVERY_MS, "stats_cb": self.take}

    @property
    def lost_s(self) -> float:
        """For how many seconds no broker has been connected; 0 while one is, and before anything was told."""
        lost_at = self._lost_at
        return 0.0 if lost_at is None else self._monotonic() - lost_at

    def take(self, statistics: str) -> None:
        """What the client library tells of itself, as JSON."""
        brokers = json.loads(statistics).get("brokers", {}).values()
        if any(broker.get("state") in _CONNECTED for broker in brokers):
            self._lost_at = None
        elif self._lost_at is None:
            self._lost_at = self._monotonic()
