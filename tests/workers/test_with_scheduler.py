"""A worker and the real scheduler: the life of jobs on a real broker, told by the events."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self, TypeVar

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from mainspring.jobs import JobOptions, RetryPolicy, to_spec
from mainspring.processors.core import QueueRules, Rules
from mainspring.processors.core.strategies import PriorityStrategy
from mainspring.processors.scheduler import Scheduler, SchedulerConfig
from mainspring.schemas import Codec
from mainspring.schemas.commands import CancelJob, SubmitJob
from mainspring.schemas.events import JobCancelled, JobCompleted, JobFailed, JobRetryScheduled, JobStarted, JobTimedOut
from mainspring.topics import Connection, Topology
from mainspring.topics.admin import apply
from mainspring.workers import Registry, Worker, WorkerConfig
from tests.support import worker_jobs

pytestmark = pytest.mark.broker

R = TypeVar("R")
CODEC = Codec.embedded()
PARTITIONS = 2
PATIENCE_S = 40.0


class Cluster:
    """One scheduler, one worker, and a reader of the events."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.connection = Connection(bootstrap)
        self.topology = Topology(prefix=prefix, partitions=PARTITIONS, work_partitions=PARTITIONS)
        apply(self.connection, self.topology)
        rules = Rules(queues={"default": QueueRules(strategy=PriorityStrategy())}, partitions=PARTITIONS)
        self.scheduler = Scheduler(
            SchedulerConfig(connection=self.connection, topology=self.topology, codec=CODEC, rules=rules, slot=prefix)
        )
        self.worker = Worker(
            WorkerConfig(connection=self.connection, topology=self.topology, codec=CODEC, slots=4),
            Registry(worker_jobs.app),
        )
        self._producer = Producer(self.connection.producer_config(**{"linger.ms": 0}))
        self._stop = threading.Event()
        self.seen: list[Any] = []
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=self._run, args=(life,))
            for life in (self.scheduler.run, self.worker.run, self._read)
        ]
        self._errors: list[BaseException] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        worker_jobs.gate.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        assert not any(thread.is_alive() for thread in self._threads)
        assert self._errors == []

    def submit(self, name: str, job_id: str, options: JobOptions | None = None, **args: Any) -> None:
        spec = replace(to_spec(name, args, options=options), job_id=job_id)
        self._command(SubmitJob(command_id=f"submit-{job_id}", actor="test", requested_at_ms=0, spec=spec), job_id)

    def cancel(self, job_id: str) -> None:
        self._command(CancelJob(job_id=job_id, command_id=f"cancel-{job_id}", actor="test", requested_at_ms=0), job_id)

    def wait(self, kind: type[R], job_id: str, count: int = 1) -> R:
        """The count-th event of a kind, once it is there."""

        def found() -> list[R]:
            return [event for event in self.seen if isinstance(event, kind) and getattr(event, "job_id", "") == job_id]

        with self._changed:
            met = self._changed.wait_for(lambda: len(found()) >= count, PATIENCE_S)
            about = [event for event in self.seen if event.job_id == job_id]
            assert met, f"no {kind.__name__} of {job_id}: {about}, {self._errors}"
            return found()[count - 1]

    def _command(self, command: Any, job_id: str) -> None:
        self._producer.produce(self.topology.commands.name, CODEC.encode(command), job_id.encode())
        self._producer.flush(10)

    def _run(self, life: Any) -> None:
        try:
            life(self._stop)
        except BaseException as error:
            self._errors.append(error)
            raise

    def _read(self, stop: threading.Event) -> None:
        options = {"group.id": "unused", "auto.offset.reset": "earliest"}
        consumer = Consumer(self.connection.consumer_config(**options))
        consumer.assign([TopicPartition(self.topology.events.name, p, 0) for p in range(PARTITIONS)])
        while not stop.is_set():
            for message in consumer.consume(100, 0.05):
                assert message.error() is None, message.error()
                with self._changed:
                    self.seen.append(CODEC.decode(message.value() or b""))
                    self._changed.notify_all()
        consumer.close()


@contextmanager
def a_cluster(bootstrap: str, prefix: str) -> Iterator[Cluster]:
    worker_jobs.gate.clear()
    with Cluster(bootstrap, prefix) as cluster:
        yield cluster


def test_jobs_of_every_model_reach_their_right_end(kafka: str, prefix: str) -> None:
    with a_cluster(kafka, prefix) as cluster:
        for model in "atp":
            cluster.submit(f"{model}_echo", f"echo-{model}", value=model)
            cluster.submit(f"{model}_raise", f"final-{model}", kind="final")
            cluster.submit(
                f"{model}_raise",
                f"retried-{model}",
                JobOptions(retry=RetryPolicy(max_retries=1, base_delay=0.05)),
                kind="value",
            )
        for model in "atp":
            assert cluster.wait(JobCompleted, f"echo-{model}").result == f'"{model}"'.encode()
            failed = cluster.wait(JobFailed, f"final-{model}")
            assert failed.attempt == 1
            assert failed.error is not None
            assert failed.error.message == "give up"
            assert cluster.wait(JobFailed, f"retried-{model}").attempt == 2


def test_a_time_out_is_no_cancel_and_waits_for_its_back_off(kafka: str, prefix: str) -> None:
    with a_cluster(kafka, prefix) as cluster:
        retry = RetryPolicy(max_retries=1, base_delay=1.0, jitter=False)
        cluster.submit("a_wait", "j", JobOptions(timeout=0.3, retry=retry))
        first = cluster.wait(JobStarted, "j")
        assert cluster.wait(JobRetryScheduled, "j").reason == "TIMED_OUT"
        second = cluster.wait(JobStarted, "j", count=2)
        assert second.decided_at_ms - first.decided_at_ms >= 1_300
        assert cluster.wait(JobTimedOut, "j").attempt == 2


@pytest.mark.parametrize("name", ["a_wait", "t_wait", "p_wait"])
def test_a_cancel_while_running_ends_cancelled(kafka: str, prefix: str, name: str) -> None:
    with a_cluster(kafka, prefix) as cluster:
        cluster.submit(name, "j", JobOptions(retry=RetryPolicy(max_retries=5)))
        cluster.wait(JobStarted, "j")
        cluster.cancel("j")
        assert cluster.wait(JobCancelled, "j").attempt == 1


def test_a_result_that_is_too_large_fails_the_job_with_that_reason(kafka: str, prefix: str) -> None:
    with a_cluster(kafka, prefix) as cluster:
        cluster.submit("a_raise", "j", JobOptions(retry=RetryPolicy(max_retries=5)), kind="large")
        failed = cluster.wait(JobFailed, "j")
        assert (failed.attempt, failed.reason) == (1, "RESULT_TOO_LARGE")


def test_a_child_killed_from_outside_fails_after_exactly_its_attempts(kafka: str, prefix: str) -> None:
    with a_cluster(kafka, prefix) as cluster:
        cluster.submit("p_kill_self", "j", JobOptions(retry=RetryPolicy(max_retries=1, base_delay=0.01)))
        failed = cluster.wait(JobFailed, "j")
        assert failed.attempt == 2
        assert failed.error is not None
        assert failed.error.type.endswith("ProcessDiedError")


def test_many_short_jobs_all_complete(kafka: str, prefix: str) -> None:
    with a_cluster(kafka, prefix) as cluster:
        for n in range(500):
            cluster.submit("a_echo", f"j{n}", value=n)
        for n in range(500):
            assert cluster.wait(JobCompleted, f"j{n}").attempt == 1
