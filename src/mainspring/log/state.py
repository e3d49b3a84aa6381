"""The state of every job at a time T: the fold of what had been decided by then."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mainspring.log.errors import LogError
from mainspring.log.records import decoded
from mainspring.log.source import LogSource, Raw, Span
from mainspring.processors.core.errors import CoreError
from mainspring.processors.core.job.evolve import evolve
from mainspring.processors.core.job.transitions import is_terminal
from mainspring.schemas import JOB_EVENT_TYPES, Codec
from mainspring.schemas.common import JobStatus
from mainspring.schemas.events import JobSubmitted
from mainspring.schemas.records import JobEvent
from mainspring.schemas.tables import JobState
from mainspring.topics import partition_for

__all__ = ["StateAt", "job_at", "state_at", "states_at"]

SLACK_MS = 600_000
"""How far the brokers' clocks and a scheduler's may differ: so much more than T is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateAt:
    """How many jobs there were at a time, by status, and by queue and status."""

    at_ms: int
    by_status: Mapping[JobStatus, int]
    by_queue: Mapping[str, Mapping[JobStatus, int]]

    @property
    def jobs(self) -> int:
        """All jobs that had been submitted by then."""
        return sum(self.by_status.values())


def state_at(source: LogSource, codec: Codec, at_ms: int) -> StateAt:
    """Counts the jobs as they were at a time (epoch milliseconds). Raises LogError when the log cannot be folded."""
    counted: Counter[tuple[str, JobStatus]] = Counter(
        (state.queue, state.status) for state in states_at(source, codec, at_ms)
    )
    by_status: Counter[JobStatus] = Counter()
    by_queue: dict[str, dict[JobStatus, int]] = {}
    for (queue, status), number in counted.items():
        by_status[status] += number
        by_queue.setdefault(queue, {})[status] = number
    return StateAt(at_ms=at_ms, by_status=dict(by_status), by_queue=by_queue)


def states_at(source: LogSource, codec: Codec, at_ms: int) -> Iterator[JobState]:
    """Every job as it was at a time, in no order; memory grows with the jobs that were unfinished then.

    An id that was forgotten by the scheduler and submitted again comes once for each of its lives.
    """
    for partition in range(source.topology.events.partitions):
        live: dict[str, JobState] = {}
        for event in _events(source, codec, partition, at_ms):
            state = _evolved(live.get(event.job_id), event)
            if state is None:
                continue
            if is_terminal(state.status):
                live.pop(event.job_id, None)
                yield state
            else:
                live[event.job_id] = state
        yield from live.values()


def job_at(source: LogSource, codec: Codec, job_id: str, at_ms: int) -> JobState | None:
    """One job as it was at a time; None when it had not been submitted by then."""
    key = job_id.encode()
    partition = partition_for(key, source.topology.events.partitions)
    state: JobState | None = None
    for event in _events(source, codec, partition, at_ms, key):
        state = _evolved(None if type(event) is JobSubmitted else state, event)
    return state


def _events(
    source: LogSource, codec: Codec, partition: int, at_ms: int, key: bytes | None = None
) -> Iterator[JobEvent]:
    """Events decided by then; where a set-back clock put them out of order, a job's up to its first later one."""
    topic = source.topology.events
    span = source.spans([topic])[topic.name, partition]
    behind = source.at_time(topic, at_ms + SLACK_MS).get(partition)
    if behind is not None:
        span = Span(start=span.start, end=max(span.start, min(span.end, behind)))
    if span.start > 0:
        raise LogError(
            f"{topic.name} partition {partition} begins at offset {span.start}: "
            "without its beginning the state cannot be folded; read the view, or an export that is older"
        )
    later: set[str] = set()
    for batch in source.read(topic, partition, span):
        for raw in batch:
            if key is not None and raw.key != key:
                continue
            event = _event(codec, topic.name, partition, raw)
            if event is None or event.job_id in later:
                continue
            if event.decided_at_ms > at_ms:
                later.add(event.job_id)
                continue
            yield event


def _event(codec: Codec, topic: str, partition: int, raw: Raw) -> JobEvent | None:
    record = decoded(codec, topic, partition, raw).record
    return record if type(record) in JOB_EVENT_TYPES else None  # type: ignore[return-value]  # JOB_EVENT_TYPES holds the members of JobEvent


def _evolved(state: JobState | None, event: JobEvent) -> JobState | None:
    try:
        return evolve(state, event)
    except CoreError as error:
        raise LogError(
            f"the log does not fold: {error} Run `mainspring log verify` to see all that is wrong"
        ) from error
