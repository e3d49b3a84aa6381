"""The events as they come in, read committed in a thread, so that a test can wait for what it wants to see."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, TopicPartition

from mainspring.schemas import (
    SCHEDULE_EVENT_TYPES,
    Codec,
    JobCancelled,
    JobCompleted,
    JobFailed,
    JobRetryScheduled,
    JobStarted,
    JobTimedOut,
    ReportRefused,
)
from mainspring.topics import Connection, Topology

PATIENCE_S = 60.0
TERMINAL = (JobCompleted, JobFailed, JobTimedOut, JobCancelled)
_ENDS_A_RUN = (*TERMINAL, JobRetryScheduled)


class Board:
    """Every event, by kind, and by job or schedule."""

    def __init__(self, connection: Connection, topology: Topology) -> None:
        self.lives: dict[str, list[Any]] = defaultdict(list)
        self.schedules: dict[str, list[Any]] = defaultdict(list)
        self.kinds: dict[type, list[Any]] = defaultdict(list)
        self.running: dict[str, JobStarted] = {}
        self.unreadable = 0
        self._codec = Codec.embedded()
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        options = {"group.id": topology.group("client.proof"), "auto.offset.reset": "earliest"}
        self._consumer = Consumer(connection.consumer_config(**options))
        name = topology.events.name
        self._consumer.assign([TopicPartition(name, number, 0) for number in range(topology.events.partitions)])
        self._next: dict[int, int] = defaultdict(int)
        self._thread = threading.Thread(target=self._read, name="proof-board", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_S)
        self._consumer.close()

    @property
    def completed(self) -> int:
        """Jobs that have reached COMPLETED."""
        return len(self.kinds[JobCompleted])

    def of(self, kind: type, job_id: str) -> list[Any]:
        """The events of a kind that a job has had."""
        return [event for event in self.lives.get(job_id, ()) if isinstance(event, kind)]

    def has(self, kind: type, job_id: str, count: int = 1) -> bool:
        """Whether a job has had so many events of a kind."""
        return len(self.of(kind, job_id)) >= count

    def has_ended(self, job_id: str) -> bool:
        """Whether a job is terminal."""
        return any(isinstance(event, TERMINAL) for event in self.lives.get(job_id, ()))

    def until(
        self,
        condition: Callable[[], bool],
        what: str,
        *,
        patience_s: float = PATIENCE_S,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Waits until the condition, which looks at this board or at the world, holds; `check` may raise meanwhile."""
        deadline_s = time.monotonic() + patience_s
        with self._changed:
            while not condition():
                if self._error is not None:
                    raise self._error
                if time.monotonic() > deadline_s:
                    raise AssertionError(f"waited {patience_s:g} s for {what}, in vain: {self.summary()}")
                check()
                self._changed.wait(0.05)

    def wait(self) -> None:
        """Waits for something to come in, for a moment."""
        with self._changed:
            self._changed.wait(0.05)

    def summary(self) -> str:
        """How far everything is, in a line."""
        counts = {kind.__name__: len(events) for kind, events in self.kinds.items()}
        unended = [job_id for job_id in self.lives if not self.has_ended(job_id)]
        named = {job_id: [type(event).__name__ for event in self.lives[job_id]] for job_id in unended[:5]}
        return f"{counts}; {len(unended)} have not ended, such as {named}"

    def _read(self) -> None:
        try:
            while not self._stop.is_set():
                messages = self._consumer.consume(2_000, 0.05)
                if messages:
                    self._take(messages)
        except BaseException as error:  # noqa: BLE001  # raised where the test waits
            self._error = error

    def _take(self, messages: list[Any]) -> None:
        events: list[Any] = []
        for message in messages:
            if message.error() is not None or message.offset() < self._next[message.partition()]:
                # A broker that is down, or one that is back and has lost sight of where this reader was.
                continue
            self._next[message.partition()] = message.offset() + 1
            try:
                events.append(self._codec.decode(message.value() or b""))
            except Exception:  # noqa: BLE001  # poison that a test put there
                self.unreadable += 1
        with self._changed:
            for event in events:
                self.kinds[type(event)].append(event)
                if type(event) in SCHEDULE_EVENT_TYPES:
                    self.schedules[event.schedule_id].append(event)
                    continue
                self.lives[event.job_id].append(event)
                if isinstance(event, JobStarted):
                    self.running[event.job_id] = event
                elif isinstance(event, _ENDS_A_RUN):
                    self.running.pop(event.job_id, None)
            self._changed.notify_all()


def refusals(board: Board, job_id: str, attempt: int) -> list[ReportRefused]:
    """What was refused of one attempt."""
    return [refused for refused in board.of(ReportRefused, job_id) if refused.attempt == attempt]
