"""One partition of the scheduler's table, read from its changelog, and what the rules say about one job in it."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mainspring.cli.connect import connection_of
from mainspring.processors.core import Now, PartitionCore
from mainspring.processors.core.explain import Ready, WhyNot, explain
from mainspring.processors.core.job.evolve import fold
from mainspring.processors.core.job.transitions import is_terminal
from mainspring.schemas import JobSpec, JobState, UnreadableRecordError
from mainspring.topics import partition_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.client import HistoryEntry
    from mainspring.settings import Settings

__all__ = ["place_in_queue", "read_partition"]

_STATE = b"J"


class _Rows:
    """The states of a partition; the rules only read them here."""

    def __init__(self, states: dict[str, JobState]) -> None:
        self._states = states

    def state(self, job_id: str) -> JobState | None:
        return self._states.get(job_id)

    def spec(self, job_id: str) -> JobSpec | None:
        return None

    def put_state(self, job_id: str, state: JobState | None) -> None:
        raise NotImplementedError("the table is read here, never written")

    def put_spec(self, job_id: str, spec: JobSpec | None) -> None:
        raise NotImplementedError("the table is read here, never written")


def read_partition(settings: "Settings", job_id: str, history: "Sequence[HistoryEntry]") -> tuple[WhyNot | None, Any]:
    """Why the job is not running and its state; (None, None) when neither table nor log knows it.

    A finished job that has left the table is explained by the fold of its events.
    """
    topology = settings.topology()
    partition = partition_for(job_id.encode(), topology.partitions)
    states = _states(settings, partition)
    state = states.get(job_id) or fold(entry.event for entry in history)
    if state is None:
        return None, None
    now_ms = time.time_ns() // 1_000_000
    why = explain(state, now_ms)
    if isinstance(why, Ready) and job_id in states:
        why = place_in_queue(settings, partition, states, job_id, now_ms)
    return why, state


def place_in_queue(
    settings: "Settings", partition: int, states: dict[str, JobState], job_id: str, now_ms: int
) -> WhyNot:
    """The job's place in its queue, by the scheduler's own rules."""
    # What the clock would decide at once (an expired start) is nobody's competitor, and is not to be decided here.
    waiting = {
        each.job_id: each
        for each in states.values()
        if not is_terminal(each.status) and (each.start_deadline_ms or now_ms + 1) > now_ms
    }
    core = PartitionCore(partition, settings.rules(), _Rows(waiting), seed=0)
    now = Now(wall_ms=now_ms, mono_ms=now_ms)
    core.load(waiting.values(), 0, now)
    core.tick(now)
    placed = core.explain(job_id, now)
    # The window adapts in the scheduler's memory: only what follows from the rows is told.
    return replace(placed, window=None) if isinstance(placed, Ready) else placed


def _states(settings: "Settings", partition: int) -> dict[str, JobState]:
    from mainspring.log.kafka import KafkaLog

    topology, codec = settings.topology(), settings.codec()
    topic = topology.scheduler_changelog
    states: dict[str, JobState] = {}
    with KafkaLog(connection_of(settings), topology) as log:
        for batch in log.read(topic, partition, log.spans([topic])[topic.name, partition]):
            for raw in batch:
                if raw.key is None or not raw.key.startswith(_STATE):
                    continue
                job_id = raw.key[1:].decode()
                if raw.value is None:
                    states.pop(job_id, None)
                    continue
                try:
                    record = codec.decode(raw.value)
                except UnreadableRecordError:
                    continue
                if isinstance(record, JobState):
                    states[job_id] = record
    return states
