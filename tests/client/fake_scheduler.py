"""A scripted scheduler: answers commands with the events that the name of the job calls for."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field, replace
from typing import Any, Self

from confluent_kafka import Consumer, Producer, TopicPartition

from mainspring.schemas import (
    AttemptError,
    CancelJob,
    Cause,
    CauseSource,
    Codec,
    CommandRejected,
    JobCancelled,
    JobCancelRequested,
    JobCompleted,
    JobFailed,
    JobRescheduled,
    JobSpec,
    JobStarted,
    JobStatus,
    JobSubmitted,
    JobTimedOut,
    OccurrenceFired,
    RescheduleJob,
    RetryJob,
    SubmitJob,
    TriggerSchedule,
    Txn,
)
from mainspring.topics import Topology, partition_for

TXN = Txn(id=1, index=0, size=1)
NOW_MS = 1_800_000_000_000


@dataclass
class FakeJob:
    """What the script remembers of a job."""

    spec: JobSpec
    revision: int = 0
    status: JobStatus = JobStatus.PENDING


@dataclass
class FakeScheduler:
    """Reads `commands` in a thread and writes `events`.

    The name of a job says what becomes of it: `ok` (returns its payload), `fail`, `lost`, `timeout`, `hang` (runs until
    `finish` ends it), `wait` (never starts); `mute` is not answered at all, `refuse` is rejected.
    """

    bootstrap: str
    topology: Topology
    codec: Codec = field(default_factory=Codec.embedded)
    jobs: dict[str, FakeJob] = field(default_factory=dict)
    commands: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._lock = threading.RLock()
        self._producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 0, "enable.idempotence": True})
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.flush()

    def finish(self, job_id: str, result: object = None) -> None:
        """End a hanging job."""
        with self._lock:
            self._complete(self.jobs[job_id], job_id, json.dumps(result).encode())
        self._producer.flush()

    def _run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "fake",
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 50,
            }
        )
        topic = self.topology.commands.name
        consumer.assign([TopicPartition(topic, p, 0) for p in range(self.topology.partitions)])
        while not self._stop.is_set():
            for message in consumer.consume(1000, 0.02):
                if message.error() is not None:
                    continue
                command: Any = self.codec.decode(message.value() or b"")
                place = TopicPartition(topic, message.partition() or 0, message.offset() or 0)
                cause = Cause(source=CauseSource.COMMANDS, partition=place.partition, offset=place.offset)
                with self._lock:
                    self.commands.append(command)
                    self._answer(command, cause)
            self._producer.poll(0)
        consumer.close()

    def _answer(self, command: Any, cause: Cause) -> None:
        match command:
            case SubmitJob():
                self._submit(command, cause)
            case CancelJob():
                self._cancel(command, cause)
            case RescheduleJob():
                job = self.jobs[command.job_id]
                self._emit(job, command.job_id, JobRescheduled, cause, due_at_ms=command.run_at_ms, **_asked(command))
            case RetryJob():
                self._retry(command, cause)
            case TriggerSchedule():
                self._trigger(command, cause)

    def _trigger(self, command: TriggerSchedule, cause: Cause) -> None:
        """The name of the schedule says what becomes of its job."""
        schedule_id, revision = command.schedule_id, 7
        job_id = f"{schedule_id}@2027-01-15T08:00:00Z"
        asked = _asked(command)
        fired = OccurrenceFired(
            schedule_id=schedule_id, revision=revision, decided_at_ms=NOW_MS, cause=cause, nominal_ms=NOW_MS,
            fire_at_ms=NOW_MS, origin="TRIGGER", job_id=job_id, version=1, tzdata="2026a", txn=TXN, **asked,
        )  # fmt: skip
        self._produce(schedule_id, fired)
        spec = JobSpec(job_id=job_id, name=schedule_id, payload=b'"fired"', schedule_id=schedule_id)
        for submit in (f"{job_id}#3.{revision - 1}", f"{job_id}#3.{revision}"):
            # The first is another fire of the same time, which the job was refused for.
            name = "refuse" if submit.endswith(f".{revision - 1}") else spec.name
            asked_for = SubmitJob(
                command_id=submit, actor="schedule", requested_at_ms=NOW_MS, spec=replace(spec, name=name)
            )
            self._submit(asked_for, cause)

    def _submit(self, command: SubmitJob, cause: Cause) -> None:
        spec = command.spec
        if spec.name == "mute":
            return
        if spec.name == "refuse":
            self._reject(spec.job_id, command, cause, "UNKNOWN_QUEUE", None)
            return
        if spec.job_id in self.jobs:
            self._reject(spec.job_id, command, cause, "DUPLICATE_JOB", self.jobs[spec.job_id].status)
            return
        self._start(command, spec, cause)

    def _start(self, command: Any, spec: JobSpec, cause: Cause) -> None:
        job = self.jobs[spec.job_id] = FakeJob(spec)
        self._emit(
            job,
            spec.job_id,
            JobSubmitted,
            cause,
            requested_at_ms=command.requested_at_ms,
            seq=len(self.jobs),
            due_at_ms=spec.run_at_ms or NOW_MS,
            spec=spec,
            **_asked(command),
        )
        if spec.name == "wait":
            return
        started = {"attempt": 1, "worker_id": "w", "incarnation": "i", "due_at_ms": NOW_MS}
        self._emit(job, spec.job_id, JobStarted, cause, **started)
        job.status = JobStatus.RUNNING
        match spec.name:
            case "ok":
                self._complete(job, spec.job_id, spec.payload)
            case "fail":
                error = AttemptError(type="ValueError", message="no good")
                self._end(job, JobStatus.FAILED, JobFailed, cause, attempt=1, reason="FAILED", error=error)
            case "lost":
                self._end(job, JobStatus.FAILED, JobFailed, cause, attempt=3, reason="LOST")
            case "timeout":
                self._end(job, JobStatus.TIMED_OUT, JobTimedOut, cause, attempt=1, timeout_ms=50)

    def _complete(self, job: FakeJob, job_id: str, result: bytes) -> None:
        cause = Cause(source=CauseSource.ATTEMPTS, partition=0, offset=0)
        times = {"started_at_ms": NOW_MS, "finished_at_ms": NOW_MS + 5}
        self._end(
            job, JobStatus.COMPLETED, JobCompleted, cause, attempt=1, worker_id="w", result=result,
            content_type="application/json", **times,
        )  # fmt: skip

    def _cancel(self, command: CancelJob, cause: Cause) -> None:
        job = self.jobs.get(command.job_id)
        if job is None:
            self._reject(command.job_id, command, cause, "UNKNOWN_JOB", None)
        elif job.status is JobStatus.PENDING:
            ended = {"cancel_code": "REQUESTED", "attempt": 0}
            self._end(job, JobStatus.CANCELLED, JobCancelled, cause, **ended, **_asked(command))
        elif job.status is JobStatus.RUNNING:
            self._emit(job, command.job_id, JobCancelRequested, cause, attempt=1, **_asked(command))
            if "stubborn" not in job.spec.tags:
                ended = {"cancel_code": "REQUESTED", "attempt": 1}
                self._end(job, JobStatus.CANCELLED, JobCancelled, cause, **ended, **_asked(command))
        else:
            self._reject(command.job_id, command, cause, "ALREADY_TERMINAL", job.status)

    def _retry(self, command: RetryJob, cause: Cause) -> None:
        job = self.jobs[command.job_id]
        if job.status in (JobStatus.PENDING, JobStatus.RUNNING):
            self._reject(command.job_id, command, cause, "NOT_TERMINAL", job.status)
            return
        fields = {name: getattr(job.spec, name) for name in JobSpec.__dataclass_fields__}
        again = JobSpec(**{**fields, "job_id": command.new_job_id, "retry_of": command.job_id, "name": "ok"})
        self._start(command, again, cause)

    def _reject(self, job_id: str, command: Any, cause: Cause, code: str, status: JobStatus | None) -> None:
        event = CommandRejected(
            job_id=job_id, revision=0, decided_at_ms=NOW_MS, cause=cause, command_id=command.command_id,
            command=type(command).__name__, actor=command.actor, reject_code=code, message="the script says so",
            status=status.name if status is not None else None, txn=TXN,
        )  # fmt: skip
        self._produce(job_id, event)

    def _end(self, job: FakeJob, status: JobStatus, kind: Any, cause: Cause, **fields: Any) -> None:
        job.status = status
        self._emit(job, job.spec.job_id, kind, cause, **fields)

    def _emit(self, job: FakeJob, job_id: str, kind: Any, cause: Cause, **fields: Any) -> None:
        job.revision += 1
        self._produce(
            job_id, kind(job_id=job_id, revision=job.revision, decided_at_ms=NOW_MS, cause=cause, txn=TXN, **fields)
        )

    def _produce(self, job_id: str, event: Any) -> None:
        key = job_id.encode()
        partition = partition_for(key, self.topology.partitions)
        while True:
            try:
                self._producer.produce(self.topology.events.name, self.codec.encode(event), key, partition)
                return
            except BufferError:
                self._producer.poll(0.1)


def _asked(command: Any) -> dict[str, Any]:
    return {"command_id": command.command_id, "actor": command.actor, "reason": command.reason}
