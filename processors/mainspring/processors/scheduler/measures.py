"""What the scheduler tells Prometheus: counted per transaction, since a label costs as much as a decision."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from mainspring.processors.core import PartitionCore
from mainspring.processors.engine.ports import Place
from mainspring.schemas import (
    CommandRejected,
    FailReason,
    JobEvent,
    JobFailed,
    JobRetryScheduled,
    JobStarted,
    JobState,
    JobSubmitted,
    ReportRefused,
    RetryReason,
    ScheduleCommandRejected,
    ScheduleEvent,
)
from mainspring.telemetry import metrics
from mainspring.telemetry.metrics import observe_many

__all__ = ["count_events", "count_schedule_events", "measure"]

StateOf: TypeAlias = Callable[[str], JobState | None]
"""The row of a job."""

_ALL = "all"


def count_events(events: Sequence[JobEvent], state_of: StateOf) -> None:
    """Counts what one transaction has written for one partition."""
    by_kind: dict[type[JobEvent], list[JobEvent]] = {}
    for event in events:
        by_kind.setdefault(type(event), []).append(event)
    for kind, same in by_kind.items():
        metrics.EVENTS.labels(type=kind.__name__).inc(len(same))
        count = _COUNTERS.get(kind)
        if count is not None:
            count(same, state_of)


def count_schedule_events(events: Sequence[ScheduleEvent]) -> None:
    """Counts what one transaction has written about the schedules of one partition."""
    for name, count in Counter(type(event).__name__ for event in events).items():
        metrics.EVENTS.labels(type=name).inc(count)
    rejected = Counter(event.command for event in events if isinstance(event, ScheduleCommandRejected))
    for command, count in rejected.items():
        metrics.COMMANDS.labels(type=command, outcome="rejected").inc(count)


def measure(cores: Iterable[PartitionCore], lags: Mapping[Place, int], group: str) -> None:
    """Sets the gauges: what is in the tables, and how far behind the inputs are."""
    states: Counter[tuple[str, str]] = Counter()
    leases: Counter[str] = Counter()
    for core in cores:
        states[_ALL, "waiting"] += core.waiting
        states[_ALL, "finished"] += core.terminal
        for queue, stats in core.stats().items():
            states[queue, "ready"] += stats.ready
            states[queue, "offered"] += stats.offered
            states[queue, "running"] += stats.running
            leases[queue] += stats.running
    for (queue, state), count in states.items():
        metrics.JOBS.labels(queue=queue, state=state).set(count)
    for queue, count in leases.items():
        metrics.LEASES.labels(queue=queue).set(count)
    for (topic, partition), lag in lags.items():
        metrics.CONSUMER_LAG.labels(group=group, topic=topic, partition=partition).set(lag)


def _count_submitted(events: Sequence[JobEvent], _state_of: StateOf) -> None:
    metrics.COMMANDS.labels(type="SubmitJob", outcome="accepted").inc(len(events))


def _count_rejected(events: Sequence[JobEvent], _state_of: StateOf) -> None:
    rejected = Counter(event.command for event in events if isinstance(event, CommandRejected))
    for command, count in rejected.items():
        metrics.COMMANDS.labels(type=command, outcome="rejected").inc(count)


def _count_started(events: Sequence[JobEvent], state_of: StateOf) -> None:
    late_s: dict[str, list[float]] = {}
    waited_s: dict[str, list[float]] = {}
    for event in events:
        state = state_of(event.job_id)
        if state is None or not isinstance(event, JobStarted):
            continue
        late_s.setdefault(state.queue, []).append(max(0, event.decided_at_ms - event.due_at_ms) / 1_000)
        if event.attempt == 1:
            waited_s.setdefault(state.queue, []).append(max(0, event.decided_at_ms - state.submitted_at_ms) / 1_000)
    for histogram, by_queue in ((metrics.RUN_LATENESS, late_s), (metrics.QUEUE_WAIT, waited_s)):
        for queue, values in by_queue.items():
            observe_many(histogram.labels(queue=queue), values)


def _count_lost(events: Sequence[JobEvent], state_of: StateOf) -> None:
    lost = [event for event in events if getattr(event, "reason", None) in (RetryReason.LOST, FailReason.LOST)]
    for queue, count in _by_queue(lost, state_of).items():
        metrics.LEASE_EXPIRATIONS.labels(queue=queue).inc(count)


def _count_refused(events: Sequence[JobEvent], state_of: StateOf) -> None:
    for queue, count in _by_queue(events, state_of).items():
        metrics.STALE_RESULTS.labels(queue=queue).inc(count)


def _by_queue(events: Sequence[JobEvent], state_of: StateOf) -> Counter[str]:
    states = [state_of(event.job_id) for event in events]
    return Counter("" if state is None else state.queue for state in states)


_COUNTERS: Mapping[type[JobEvent], Callable[[Sequence[JobEvent], StateOf], None]] = {
    JobSubmitted: _count_submitted,
    CommandRejected: _count_rejected,
    JobStarted: _count_started,
    JobRetryScheduled: _count_lost,
    JobFailed: _count_lost,
    ReportRefused: _count_refused,
}
