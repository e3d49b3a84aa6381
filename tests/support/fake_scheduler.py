"""A scheduler without a core: it offers, confirms and listens, as a test tells it to, on a real broker."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from confluent_kafka import Consumer, Producer, TopicPartition

from mainspring.jobs.spec import to_spec
from mainspring.schemas.attempts import AttemptClaimed, AttemptHeartbeat
from mainspring.schemas.codec import Codec
from mainspring.schemas.common import ConfirmedStart, Priority
from mainspring.schemas.signals import CancelAttempt, ClaimRefused, StartConfirmed
from mainspring.schemas.work import WorkOffered
from mainspring.topics import Connection, Topology
from mainspring.topics.admin import apply

R = TypeVar("R")
PATIENCE_S = 60.0
CODEC = Codec.embedded()


class FakeScheduler:
    """Reads what workers report and answers claims at once, unless `answer` says otherwise."""

    def __init__(self, bootstrap: str, prefix: str, *, partitions: int = 2) -> None:
        self.connection = Connection(bootstrap)
        self.topology = Topology(prefix=prefix, partitions=partitions, work_partitions=partitions)
        apply(self.connection, self.topology)
        self.answer: Callable[[AttemptClaimed], bool | None] = lambda claim: True
        self.seen: list[Any] = []
        self._changed = threading.Condition()
        self._ending = threading.Event()
        self._producer = Producer(self.connection.producer_config(**{"linger.ms": 0}))
        config = self.connection.consumer_config(**{"group.id": f"{prefix}fake", "auto.offset.reset": "earliest"})
        self._consumer = Consumer(config)
        self._consumer.assign(
            [TopicPartition(self.topology.attempts.name, p, 0) for p in range(partitions)]
            + [TopicPartition(self.topology.logs.name, p, 0) for p in range(self.topology.logs.partitions)]
            + [TopicPartition(self.topology.dead_letters.name, 0, 0)]
        )
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops listening."""
        self._ending.set()
        self._thread.join()
        self._consumer.close()
        self._producer.flush(5)

    def offer(
        self,
        name: str,
        *,
        job_id: str,
        attempt: int = 1,
        lane: Priority = Priority.MEDIUM,
        age_ms: int = 0,
        **args: Any,
    ) -> None:
        """Offers an attempt; `timeout_ms`, `max_retries` and the like are fields of the specification."""
        from dataclasses import replace

        fields = {key: args.pop(key) for key in ("timeout_ms", "max_retries") if key in args}
        spec = replace(to_spec(name, args), job_id=job_id, priority=lane, **fields)
        now = int(time.time() * 1000) - age_ms
        offer = WorkOffered(job_id=job_id, attempt=attempt, offer=1, offered_at_ms=now, due_at_ms=now, spec=spec)
        self.put(self.topology.work("default", lane).name, job_id, CODEC.encode(offer))

    def put(self, topic: str, key: str, value: bytes) -> None:
        """Writes any record."""
        self._producer.produce(topic, value, key.encode())
        self._producer.flush(10)

    def confirm(self, claim: AttemptClaimed) -> None:
        """Lets a claim win."""
        start = ConfirmedStart(job_id=claim.job_id, attempt=claim.attempt)
        self._signal(
            claim,
            StartConfirmed(
                worker_id=claim.worker_id,
                incarnation=claim.incarnation,
                confirmed_at_ms=int(time.time() * 1000),
                starts=(start,),
            ),
        )

    def refuse(self, claim: AttemptClaimed) -> None:
        """Lets a claim lose."""
        self._signal(
            claim,
            ClaimRefused(
                worker_id=claim.worker_id,
                incarnation=claim.incarnation,
                job_id=claim.job_id,
                attempt=claim.attempt,
                refusal="NOT_OFFERED",
            ),
        )

    def cancel(self, claim: AttemptClaimed, reason: str) -> None:
        """Tells the worker to stop."""
        self._signal(
            claim,
            CancelAttempt(
                worker_id=claim.worker_id,
                incarnation=claim.incarnation,
                job_id=claim.job_id,
                attempt=claim.attempt,
                reason=reason,
            ),
        )

    def all(self, kind: type[R], job_id: str | None = None) -> list[R]:
        """What was reported so far."""
        with self._changed:
            return [r for r in self.seen if isinstance(r, kind) and (job_id is None or _is_about(r, job_id))]

    def wait(self, kind: type[R], job_id: str | None = None, count: int = 1) -> R:
        """The count-th report of a kind, once it is there."""
        with self._changed:
            met = self._changed.wait_for(lambda: len(self.all(kind, job_id)) >= count, PATIENCE_S)
            assert met, f"no {kind.__name__} of {job_id} among {self.seen}"
            return self.all(kind, job_id)[count - 1]

    def _signal(self, claim: AttemptClaimed, record: Any) -> None:
        self.put(self.topology.signals.name, claim.worker_id, CODEC.encode(record))

    def _listen(self) -> None:
        while not self._ending.is_set():
            for message in self._consumer.consume(100, 0.02):
                assert message.error() is None, message.error()
                record = CODEC.decode(message.value() or b"")
                with self._changed:
                    self.seen.append(record)
                    self._changed.notify_all()
                if isinstance(record, AttemptClaimed):
                    verdict = self.answer(record)
                    if verdict is not None:
                        (self.confirm if verdict else self.refuse)(record)


def _is_about(record: Any, job_id: str) -> bool:
    if isinstance(record, AttemptHeartbeat):
        return any(held.job_id == job_id for held in record.attempts)
    return getattr(record, "job_id", None) == job_id


@contextmanager
def fake_scheduler(bootstrap: str, prefix: str) -> Iterator[FakeScheduler]:
    """A fake scheduler for the length of a test."""
    fake = FakeScheduler(bootstrap, prefix)
    try:
        yield fake
    finally:
        fake.close()
