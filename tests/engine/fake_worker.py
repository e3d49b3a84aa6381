"""A worker in a few lines: it speaks the records and runs nothing. A claim, a confirmed start, a report."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from mainspring.schemas import (
    AttemptClaimed,
    AttemptSucceeded,
    ClaimRefused,
    Codec,
    Priority,
    Record,
    StartConfirmed,
    WorkOffered,
)
from mainspring.topics import Connection, Topology

Outcome = Callable[[WorkOffered], Record | None]


@dataclass(slots=True)
class Seen:
    """What the worker has come across, by job."""

    offered: list[str] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    signals: list[Record] = field(default_factory=list)


class FakeWorker:
    """Claims every offer and reports success once its start is confirmed, unless told otherwise."""

    def __init__(
        self,
        connection: Connection,
        topology: Topology,
        *,
        worker_id: str = "w1",
        partitions: Iterable[int] | None = None,
        report: bool = True,
        claim: bool = True,
    ) -> None:
        self.worker_id = worker_id
        self.incarnation = f"{worker_id}-1"
        self.seen = Seen()
        self.report = report
        self.claim = claim
        self.running: dict[str, int] = {}
        self._claimed: set[tuple[str, int]] = set()
        self._codec = Codec.embedded()
        self._topology = topology
        self._signals = topology.signals.name
        places = [
            TopicPartition(topology.work(queue, lane).name, number, 0)
            for queue in topology.queues
            for lane in Priority
            for number in (range(topology.work_partitions) if partitions is None else partitions)
        ]
        places += [TopicPartition(self._signals, number, 0) for number in range(topology.signals.partitions)]
        self._consumer = Consumer(connection.consumer_config(**{"group.id": f"{topology.prefix}fake-{worker_id}"}))
        self._consumer.assign(places)
        self._producer = Producer(connection.producer_config(**{"linger.ms": 1}))

    def step(self, wait_s: float = 0.02) -> None:
        """Reads what there is and answers it."""
        for message in self._consumer.consume(5_000, wait_s):
            assert message.error() is None, message.error()
            record = self._codec.decode(message.value() or b"")
            if isinstance(record, WorkOffered):
                self.seen.offered.append(record.job_id)
                # A worker never claims what it awaits or runs: the scheduler would confirm the same start once more.
                known = (record.job_id, record.attempt)
                if self.claim and known not in self._claimed:
                    self._claimed.add(known)
                    self.send(
                        AttemptClaimed(
                            job_id=record.job_id,
                            attempt=record.attempt,
                            worker_id=self.worker_id,
                            incarnation=self.incarnation,
                            reported_at_ms=0,
                            free_slot=True,
                        )
                    )
            elif getattr(record, "worker_id", None) == self.worker_id:
                self._hear(record)
        self._producer.poll(0)

    def _hear(self, record: Any) -> None:
        self.seen.signals.append(record)
        if isinstance(record, ClaimRefused):
            self._claimed.discard((record.job_id, record.attempt))
        if not isinstance(record, StartConfirmed):
            return
        for start in record.starts:
            self.seen.started.append(start.job_id)
            self.running[start.job_id] = start.attempt
            if self.report:
                self.succeed(start.job_id)

    def succeed(self, job_id: str) -> None:
        """Reports success of a job that was started here."""
        self.send(
            AttemptSucceeded(
                job_id=job_id,
                attempt=self.running.pop(job_id),
                worker_id=self.worker_id,
                incarnation=self.incarnation,
                reported_at_ms=0,
                started_at_ms=0,
            )
        )

    def send(self, record: Any, partition: int = -1) -> None:
        """Produces a report."""
        key = getattr(record, "job_id", self.worker_id).encode()
        self._producer.produce(self._topology.attempts.name, self._codec.encode(record), key, partition)

    def flush(self) -> None:
        self._producer.flush()

    def close(self) -> None:
        self._producer.flush()
        self._consumer.close()
