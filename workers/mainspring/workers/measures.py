"""What a worker counts, for `/metrics`."""

import time
from collections import defaultdict
from collections.abc import Iterable

from prometheus_client import Counter, Histogram

from mainspring.telemetry import metrics
from mainspring.telemetry.metrics import observe_many
from mainspring.workers.attempt import Attempt
from mainspring.workers.config import WorkerStatus

__all__ = ["Measures"]


class Measures:
    """Keeps the children of labelled metrics: looking them up would cost more than counting."""

    def __init__(self, slots: int) -> None:
        metrics.WORKER_SLOTS.set(slots)
        self._offers: dict[str, Counter] = {}
        self._durations: dict[tuple[str, str], Histogram] = {}
        self._loop = metrics.LOOP_HEARTBEAT.labels(role="worker")

    def offers(self, outcome: str, number: int) -> None:
        """So many offers met this outcome."""
        counter = self._offers.get(outcome)
        if counter is None:
            counter = self._offers[outcome] = metrics.OFFERS.labels(outcome=outcome)
        counter.inc(number)

    def ended(self, attempts: Iterable[Attempt], now: float) -> None:
        """These attempts have ended."""
        seconds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        for attempt in attempts:
            if attempt.outcome is not None and not attempt.reported and attempt.started_at:
                key = (attempt.handler.name, attempt.outcome.kind.name)
                seconds[key].append(max(0.0, now - attempt.started_at))
        for key, values in seconds.items():
            duration = self._durations.get(key)
            if duration is None:
                labels = {"kind": metrics.kind_label(key[0]), "outcome": key[1].lower()}
                duration = self._durations[key] = metrics.ATTEMPT_DURATION.labels(**labels)
            observe_many(duration, values)

    def turn(self, status: WorkerStatus) -> None:
        """The loop came round."""
        metrics.WORKER_SLOTS_BUSY.set(status.busy)
        metrics.PEAK_RUNNING.set(status.peak_running)
        self._loop.set(time.time())
