"""A scheduler that decides nothing by itself: the test says what becomes of each job."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
    CommandRejected,
    ForwardedCommand,
    JobCancelled,
    JobCancelRequested,
    JobCompleted,
    JobFailed,
    JobRescheduled,
    JobRetryScheduled,
    JobSpec,
    JobStarted,
    JobSubmitted,
    JobTimedOut,
    ReportRefused,
    RescheduleJob,
    RetryJob,
    SubmitJob,
)
from tests.support.log_writer import LogWriter


class SchedulerDouble(LogWriter):
    """Writes what a scheduler would decide on the commands and reports of which the lives of jobs consist."""

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

    def cancel_astray(self, job_id: str) -> Cause:
        """A cancel of a waiting job comes on another partition, is sent on and carried out; returns where it came."""
        topology, home = self.topology, self.partition(job_id)
        command = CancelJob(**self._asked(job_id))
        cause = self.put(topology.commands, job_id, command, partition=(home + 1) % topology.partitions)
        forwarded = ForwardedCommand(
            key="another-key",
            topic=topology.commands.name,
            partition=cause.partition,
            offset=cause.offset,
            value=self.codec.encode(command),
        )
        offset = self.sink.append(topology.followups, home, job_id.encode(), self.codec.encode(forwarded), self.tick())
        self.emit(
            JobCancelled(
                **self._decided(job_id, Cause(source=CauseSource.FOLLOWUPS, partition=home, offset=offset)),
                cancel_code="REQUESTED",
                command_id=command.command_id,
                actor=command.actor,
                reason=command.reason,
                attempt=self.states[job_id].attempt,
            )
        )
        return cause

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

    # What all commands and all reports have.

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
