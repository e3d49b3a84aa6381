"""Logs as a scheduler would write them, without one: to be read, folded, audited, and damaged one fault at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

from confluent_kafka import Producer

from mainspring.log.source import Raw, Span
from mainspring.processors.core.job.evolve import evolve
from mainspring.processors.core.job.transitions import is_terminal
from mainspring.schemas import (
    AttemptClaimed,
    AttemptError,
    AttemptFailed,
    AttemptReleased,
    AttemptSucceeded,
    AttemptTimedOut,
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
    JobRetryScheduled,
    JobSpec,
    JobStarted,
    JobState,
    JobSubmitted,
    JobTimedOut,
    PositionRow,
    ReportRefused,
    RescheduleJob,
    RetryJob,
    SubmitJob,
    Txn,
)
from mainspring.topics import Connection, Topic, Topology, partition_for

START_MS = 1_800_000_000_000
_NO_TXN = Txn(id=0, index=0, size=0)


class Sink(Protocol):
    """Where records go."""

    def append(self, topic: Topic, partition: int, key: bytes | None, value: bytes | None, time_ms: int) -> int: ...

    def begin(self) -> None: ...

    def commit(self) -> None: ...


class MemoryLog:
    """A log in memory with offsets as Kafka gives them: a control record ends each transaction on each partition."""

    is_live = False

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.records: dict[tuple[str, int], list[Raw | None]] = {}
        self.starts: dict[tuple[str, int], int] = {}
        self._touched: set[tuple[str, int]] | None = None

    def append(self, topic: Topic, partition: int, key: bytes | None, value: bytes | None, time_ms: int) -> int:
        records = self.records.setdefault((topic.name, partition), [])
        records.append(Raw(len(records), time_ms, key, value))
        if self._touched is not None:
            self._touched.add((topic.name, partition))
        return len(records) - 1

    def begin(self) -> None:
        self._touched = set()

    def commit(self) -> None:
        for place in self._touched or ():
            self.records[place].append(None)
        self._touched = None

    def spans(self, topics: Sequence[Topic]) -> dict[tuple[str, int], Span]:
        return {
            (topic.name, p): Span(
                start=self.starts.get((topic.name, p), 0), end=len(self.records.get((topic.name, p), ()))
            )
            for topic in topics
            for p in range(topic.partitions)
        }

    def read(self, topic: Topic, partition: int, span: Span) -> Iterator[Sequence[Raw]]:
        records = self.records.get((topic.name, partition), [])[span.start : span.end]
        batch = [raw for raw in records if raw is not None]
        if batch:
            yield batch

    def at_time(self, topic: Topic, time_ms: int) -> dict[int, int | None]:
        return {}

    def edit(self, codec: Codec, topic: Topic, partition: int, offset: int, **changes: Any) -> None:
        """Changes fields of one record where it stands."""
        raw = self.records[topic.name, partition][offset]
        assert raw is not None
        assert raw.value is not None
        record = replace(codec.decode(raw.value), **changes)
        self.records[topic.name, partition][offset] = raw._replace(value=codec.encode(record))

    def patch(self, topic: Topic, partition: int, offset: int, **changes: Any) -> None:
        """Changes key or value of one record where it stands."""
        raw = self.records[topic.name, partition][offset]
        assert raw is not None
        self.records[topic.name, partition][offset] = raw._replace(**changes)

    def drop(self, topic: Topic, partition: int, offset: int) -> None:
        """Makes one record invisible, as if it had been aborted."""
        self.records[topic.name, partition][offset] = None

    def find(self, codec: Codec, topic: Topic, kind: type[Any], nth: int = 0, **wanted: Any) -> tuple[int, int]:
        """Partition and offset of the nth record of a type with these field values."""
        found = [
            (partition, raw.offset)
            for (name, partition), records in sorted(self.records.items())
            if name == topic.name
            for raw in records
            if raw is not None and raw.value is not None and raw.value[:1] == b"\0"
            for record in [codec.decode(raw.value)]
            if type(record) is kind and all(getattr(record, field) == value for field, value in wanted.items())
        ]
        return found[nth]


class KafkaSink:
    """Writes to a real broker; what a scheduler writes goes through a transactional producer."""

    def __init__(self, connection: Connection, topology: Topology) -> None:
        plain = {"partitioner": "murmur2_random", "linger.ms": 0, "log_level": 0}
        self._plain = Producer(connection.producer_config(**plain))
        self._in_transaction = Producer(
            connection.producer_config(**plain, **{"transactional.id": topology.transactional_id("double")})
        )
        self._in_transaction.init_transactions(30)
        self._active = self._plain

    def append(self, topic: Topic, partition: int, key: bytes | None, value: bytes | None, time_ms: int) -> int:
        offsets: list[int] = []

        def delivered(error: Any, message: Any) -> None:
            assert error is None, error
            offsets.append(message.offset())

        self._active.produce(topic.name, value, key, partition, on_delivery=delivered)
        if self._active is self._plain:
            assert self._active.flush(30) == 0
            return offsets[0]
        return -1

    def begin(self) -> None:
        self._in_transaction.begin_transaction()
        self._active = self._in_transaction

    def commit(self) -> None:
        self._in_transaction.commit_transaction(30)
        self._active = self._plain

    def abort(self) -> None:
        assert self._in_transaction.flush(30) == 0
        self._in_transaction.abort_transaction(30)
        self._active = self._plain


class SchedulerDouble:
    """Writes inputs, and what a scheduler would decide on them: events, rows and positions, in transactions."""

    def __init__(self, topology: Topology, codec: Codec, sink: Sink) -> None:
        self.topology = topology
        self.codec = codec
        self.sink = sink
        self.now_ms = START_MS
        self.states: dict[str, JobState] = {}
        self.specs: dict[str, JobSpec] = {}
        self._seq = dict.fromkeys(range(topology.partitions), 0)
        self._read: dict[tuple[str, int], int] = {}
        self._txn_id = 1_000
        self._pending: list[Any] | None = None
        self._followups: list[tuple[str, Any]] = []
        self._ids = 0

    def tick(self, ms: int = 10) -> int:
        """Lets time pass."""
        self.now_ms += ms
        return self.now_ms

    def partition(self, job_id: str) -> int:
        """Where a job is at home."""
        return partition_for(job_id.encode(), self.topology.partitions)

    # Inputs.

    def put(self, topic: Topic, job_id: str, record: Any, partition: int | None = None) -> Cause:
        """Writes an input and notes it as read."""
        at = self.partition(job_id) if partition is None else partition
        offset = self.sink.append(topic, at, job_id.encode(), self.codec.encode(record), self.now_ms)
        self._read[topic.name, at] = offset + 1
        source = CauseSource.COMMANDS if topic is self.topology.commands else CauseSource.ATTEMPTS
        return Cause(source=source, partition=at, offset=offset)

    def reads(self, topic: Topic, partition: int, offset: int) -> None:
        """Notes that everything before an offset has been read."""
        self._read[topic.name, partition] = offset

    def command_id(self) -> str:
        self._ids += 1
        return f"c{self._ids}"

    def _asked(self, job_id: str) -> dict[str, Any]:
        return {"job_id": job_id, "command_id": self.command_id(), "actor": "tester", "requested_at_ms": self.tick()}

    def _report(self, job_id: str) -> dict[str, Any]:
        state = self.states[job_id]
        return {
            "job_id": job_id,
            "attempt": state.attempt,
            "worker_id": state.worker_id,
            "incarnation": state.incarnation,
            "reported_at_ms": self.tick(),
        }

    # Transactions.

    @contextmanager
    def transaction(self, end: Callable[[], None] | None = None) -> Iterator[None]:
        """What is decided inside is one transaction; `end` instead of the commit."""
        if self._pending is not None:
            yield
            return
        self._pending, self._followups = [], []
        yield
        events, self._pending = self._pending, None
        self._txn_id += 1
        self.sink.begin()
        touched: dict[str, None] = {}
        for index, event in enumerate(events):
            numbered = replace(event, txn=Txn(id=self._txn_id, index=index, size=len(events)))
            home = self.partition(event.job_id)
            self.sink.append(
                self.topology.events, home, event.job_id.encode(), self.codec.encode(numbered), self.now_ms
            )
            if not isinstance(event, CommandRejected | ReportRefused):
                touched[event.job_id] = None
        for key, record in self._followups:
            self.sink.append(
                self.topology.followups, self.partition(key), key.encode(), self.codec.encode(record), self.now_ms
            )
        self._write_rows(touched)
        (end or self.sink.commit)()

    def _write_rows(self, touched: dict[str, None]) -> None:
        changelog = self.topology.scheduler_changelog
        for job_id in touched:
            state = self.states.get(job_id)
            if state is None:
                continue
            home = self.partition(job_id)
            if state.revision == 1:
                spec = self.codec.encode(self.specs[job_id])
                self.sink.append(changelog, home, b"S" + job_id.encode(), spec, self.now_ms)
            row = self.codec.encode(state)
            self.sink.append(changelog, home, b"J" + job_id.encode(), row, self.now_ms)
        for partition in range(self.topology.partitions):
            self.sink.append(
                changelog, partition, b"!position", self.codec.encode(self._position(partition)), self.now_ms
            )

    def _position(self, partition: int) -> PositionRow:
        topology = self.topology
        return PositionRow(
            next_seq=self._seq[partition],
            txn_id=self._txn_id,
            commands_offset=self._read.get((topology.commands.name, partition), 0),
            followups_offset=self._read.get((topology.followups.name, partition), 0),
            attempts_offset=self._read.get((topology.attempts.name, partition), 0),
            owner="double",
            written_at_ms=self.now_ms,
        )

    def emit(self, event: Any) -> None:
        """Decides one event: folds it and writes it with the transaction that is open, or in one of its own."""
        with self.transaction():
            assert self._pending is not None
            self._pending.append(event)
            before = self.states.get(event.job_id)
            if type(event) is JobSubmitted:
                before = None
                self.specs[event.job_id] = event.spec
            after = evolve(before, event)
            if after is not None:
                self.states[event.job_id] = after

    def _decided(self, job_id: str, cause: Cause) -> dict[str, Any]:
        state = self.states.get(job_id)
        return {
            "job_id": job_id,
            "revision": (0 if state is None else state.revision) + 1,
            "decided_at_ms": self.tick(1),
            "cause": cause,
            "txn": _NO_TXN,
        }

    def timer(self, job_id: str) -> Cause:
        return Cause(source=CauseSource.TIMER, partition=self.partition(job_id), offset=-1)

    # A job's life.

    def submit(self, job_id: str, *, delay_ms: int = 0, name: str = "add", **spec: Any) -> str:
        """Submits a job and accepts it; returns the command's id."""
        command = SubmitJob(
            command_id=self.command_id(),
            actor="tester",
            requested_at_ms=self.tick(),
            spec=JobSpec(job_id=job_id, name=name, payload=b'{"x": 1}', delay_ms=delay_ms or None, **spec),
        )
        self.accept(command, self.put(self.topology.commands, job_id, command))
        return command.command_id

    def accept(self, command: SubmitJob, cause: Cause) -> None:
        """Decides that a submit is accepted."""
        job_id = command.spec.job_id
        home = self.partition(job_id)
        self._seq[home] += 1
        decided = self._decided(job_id, cause) | {"revision": 1}
        self.emit(
            JobSubmitted(
                **decided,
                command_id=command.command_id,
                actor=command.actor,
                reason=command.reason,
                requested_at_ms=command.requested_at_ms,
                seq=self._seq[home],
                due_at_ms=decided["decided_at_ms"] + (command.spec.delay_ms or 0),
                spec=command.spec,
            )
        )

    def start(self, job_id: str, worker_id: str = "worker-1") -> None:
        """A worker claims the job and is confirmed; time passes until the job is due."""
        state = self.states[job_id]
        self.now_ms = max(self.now_ms, state.due_at_ms)
        claim = AttemptClaimed(
            job_id=job_id,
            attempt=state.attempt + 1,
            worker_id=worker_id,
            incarnation=f"{worker_id}.1",
            reported_at_ms=self.tick(),
            free_slot=True,
        )
        cause = self.put(self.topology.attempts, job_id, claim)
        self.emit(
            JobStarted(
                **self._decided(job_id, cause),
                attempt=claim.attempt,
                worker_id=worker_id,
                incarnation=claim.incarnation,
                due_at_ms=state.due_at_ms,
            )
        )

    def succeed(self, job_id: str, result: bytes | None = b"42") -> None:
        """The running attempt returns."""
        report = AttemptSucceeded(**self._report(job_id), started_at_ms=self.now_ms - 5, result=result)
        cause = self.put(self.topology.attempts, job_id, report)
        self.emit(
            JobCompleted(
                **self._decided(job_id, cause),
                attempt=report.attempt,
                worker_id=report.worker_id,
                started_at_ms=report.started_at_ms,
                finished_at_ms=report.reported_at_ms,
                result=result,
                content_type="application/json",
            )
        )

    def fail(self, job_id: str, *, retry_in_ms: int | None = None) -> None:
        """The running attempt raises; the job is tried again when a delay is given."""
        error = AttemptError(type="ValueError", message="no such thing", traceback="Traceback …")
        report = AttemptFailed(**self._report(job_id), started_at_ms=self.now_ms - 5, error=error)
        cause = self.put(self.topology.attempts, job_id, report)
        if retry_in_ms is None:
            self.emit(JobFailed(**self._decided(job_id, cause), attempt=report.attempt, reason="FAILED", error=error))
        else:
            self._retry(job_id, cause, "FAILED", retry_in_ms, error)

    def _retry(self, job_id: str, cause: Cause, reason: str, delay_ms: int, error: AttemptError | None = None) -> None:
        state = self.states[job_id]
        decided = self._decided(job_id, cause)
        self.emit(
            JobRetryScheduled(
                **decided,
                attempt=state.attempt,
                reason=reason,
                delay_ms=delay_ms,
                due_at_ms=decided["decided_at_ms"] + delay_ms,
                retries=state.retries + (reason in {"FAILED", "TIMED_OUT"}),
                lost=state.lost + (reason == "LOST"),
                error=error,
            )
        )

    def time_out(self, job_id: str) -> None:
        """The running attempt takes too long, for the last time."""
        report = AttemptTimedOut(**self._report(job_id), started_at_ms=self.now_ms - 5, timeout_ms=5)
        cause = self.put(self.topology.attempts, job_id, report)
        self.emit(JobTimedOut(**self._decided(job_id, cause), attempt=report.attempt, timeout_ms=5))

    def lose(self, job_id: str) -> None:
        """The worker dies and the lease runs out."""
        self.tick(10_000)
        self._retry(job_id, self.timer(job_id), "LOST", 0)

    def release(self, job_id: str) -> None:
        """The worker drains."""
        report = AttemptReleased(**self._report(job_id), reason="DRAINING")
        self._retry(job_id, self.put(self.topology.attempts, job_id, report), "RELEASED", 0)

    def report_late(self, job_id: str) -> None:
        """A success arrives from an attempt that is no longer the job's."""
        report = replace(
            AttemptSucceeded(**self._report(job_id), started_at_ms=self.now_ms - 5),
            worker_id="ghost",
            incarnation="ghost.1",
        )
        cause = self.put(self.topology.attempts, job_id, report)
        self.emit(
            ReportRefused(
                **self._decided(job_id, cause) | {"revision": self.states[job_id].revision},
                attempt=report.attempt,
                report="AttemptSucceeded",
                worker_id=report.worker_id,
                incarnation=report.incarnation,
                reported_at_ms=report.reported_at_ms,
                refusal="OTHER_INCARNATION",
                evidence=self.codec.encode(report),
            )
        )

    def cancel(self, job_id: str) -> str:
        """Cancels a job: at once while it waits, else it is asked to stop. Returns the command's id."""
        command = CancelJob(**self._asked(job_id), reason="no longer needed")
        cause = self.put(self.topology.commands, job_id, command)
        asked: dict[str, Any] = {"command_id": command.command_id, "actor": command.actor, "reason": command.reason}
        state = self.states[job_id]
        if state.status.name == "RUNNING":
            self.emit(JobCancelRequested(**self._decided(job_id, cause), **asked, attempt=state.attempt))
        else:
            self.emit(
                JobCancelled(**self._decided(job_id, cause), **asked, cancel_code="REQUESTED", attempt=state.attempt)
            )
        return command.command_id

    def stop(self, job_id: str) -> None:
        """The attempt that was asked to stop has stopped."""
        state = self.states[job_id]
        assert state.cancel is not None
        report = AttemptReleased(**self._report(job_id), reason="DRAINING")
        cause = self.put(self.topology.attempts, job_id, report)
        self.emit(
            JobCancelled(
                **self._decided(job_id, cause),
                cancel_code="REQUESTED",
                command_id=state.cancel.command_id,
                actor=state.cancel.actor,
                reason=state.cancel.reason,
                attempt=state.attempt,
            )
        )

    def reschedule(self, job_id: str, in_ms: int) -> None:
        """Gives a waiting job another time."""
        command = RescheduleJob(**self._asked(job_id), run_at_ms=self.now_ms + in_ms)
        cause = self.put(self.topology.commands, job_id, command)
        self.emit(
            JobRescheduled(
                **self._decided(job_id, cause),
                command_id=command.command_id,
                actor=command.actor,
                reason=command.reason,
                due_at_ms=command.run_at_ms,
            )
        )

    def reject(self, job_id: str) -> str:
        """Refuses a cancel. Returns the command's id."""
        command = CancelJob(**self._asked(job_id))
        cause = self.put(self.topology.commands, job_id, command)
        state = self.states.get(job_id)
        self.emit(
            CommandRejected(
                **self._decided(job_id, cause) | {"revision": 0 if state is None else state.revision},
                command_id=command.command_id,
                command="CancelJob",
                actor=command.actor,
                reject_code="UNKNOWN_JOB" if state is None else "ALREADY_TERMINAL",
                message="there is nothing to cancel",
                status=None if state is None else state.status.name,
            )
        )
        return command.command_id

    def retry(self, job_id: str, new_job_id: str) -> None:
        """Submits a finished job again under another id, by a follow-up to that id's partition."""
        command = RetryJob(**self._asked(job_id), new_job_id=new_job_id)
        self.put(self.topology.commands, job_id, command)
        submit = SubmitJob(
            command_id=command.command_id,
            actor=command.actor,
            requested_at_ms=command.requested_at_ms,
            spec=replace(self.specs[job_id], job_id=new_job_id, retry_of=job_id, delay_ms=None),
        )
        with self.transaction():
            self._followups.append((new_job_id, submit))
        home = self.partition(new_job_id)
        offset = self._read.get((self.topology.followups.name, home), 0)
        self._read[self.topology.followups.name, home] = offset + 2  # the record and the marker behind it
        self.accept(submit, Cause(source=CauseSource.FOLLOWUPS, partition=home, offset=offset))

    def evict(self, job_id: str) -> None:
        """The scheduler forgets a finished job."""
        assert is_terminal(self.states[job_id].status)
        self.sink.begin()
        for prefix in (b"J", b"S"):
            self.sink.append(
                self.topology.scheduler_changelog,
                self.partition(job_id),
                prefix + job_id.encode(),
                None,
                self.now_ms,
            )
        self.sink.commit()
        del self.states[job_id], self.specs[job_id]


def every_life(double: SchedulerDouble) -> None:
    """One job of every kind of life, interleaved as on a real log; ids say what becomes of each."""
    for job_id in ("done", "retried", "failed", "timed-out", "lost", "released", "gone"):
        double.submit(job_id, max_retries=2, tags=("red", "blue"), tenant="acme" if job_id == "done" else "")
    double.submit("waits", delay_ms=3_600_000)
    double.submit("moved", delay_ms=3_600_000)
    double.submit("cancelled", delay_ms=3_600_000)
    double.submit("stopped")
    double.submit("runs", name="slow", queue="bulk")
    double.submit("stopping")
    with double.transaction():
        for job_id in (
            "done",
            "retried",
            "failed",
            "timed-out",
            "lost",
            "released",
            "stopped",
            "runs",
            "stopping",
            "gone",
        ):
            double.start(job_id)
    with double.transaction():
        double.fail("retried", retry_in_ms=500)
        double.succeed("done")
        double.succeed("gone", result=None)
    double.fail("failed")
    double.time_out("timed-out")
    double.lose("lost")
    double.release("released")
    double.cancel("cancelled")
    double.cancel("stopped")
    double.cancel("stopping")
    double.reschedule("moved", 7_200_000)
    double.stop("stopped")
    double.report_late("runs")
    double.reject("never-there")
    double.reject("done")
    double.start("retried", "worker-2")
    double.succeed("retried")
    double.start("lost", "worker-2")
    double.succeed("lost")
    double.start("released")
    double.succeed("released")
    double.retry("failed", "failed-again")
    double.evict("gone")
