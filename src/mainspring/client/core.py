"""What every client does, whether its caller blocks or awaits: the operations, as steps."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from mainspring.client.commands import CommandMaker, Submission, check_reason
from mainspring.client.config import ClientConfig
from mainspring.client.errors import (
    CommandRejectedError,
    ResultTimeoutError,
    ScheduleNotFoundError,
    ScheduleRejectedError,
    VerdictTimeoutError,
)
from mainspring.client.info import aware, epoch_ms
from mainspring.client.outbox import Envelope
from mainspring.client.outcomes import Acceptance, CancelOutcome, rejected, result_of
from mainspring.client.progress import Terminal, Verdict, status_of
from mainspring.client.steps import Steps, drive, fail, fulfil, wait
from mainspring.client.watch import Start, Watch
from mainspring.client.wire import Deadline, Wire
from mainspring.jobs.options import JobOptions
from mainspring.jobs.spec import Submittable
from mainspring.schemas.codes import RejectCode
from mainspring.schemas.common import JobStatus
from mainspring.schemas.events import JobCancelled, JobRescheduled, JobSubmitted
from mainspring.schemas.records import JobCommand

__all__ = ["ClientCore"]

T = TypeVar("T")

NO_EFFECT = frozenset({RejectCode.ALREADY_TERMINAL, RejectCode.UNKNOWN_JOB})


class ClientCore:
    """The operations of a client. Safe to share between threads, useless in a forked child."""

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self.wire = Wire(config)
        self.maker = CommandMaker(config)

    # -- commands ----------------------------------------------------------------------------------------------------

    def submit(
        self,
        submission: Submission,
        terms: JobOptions,
        reason: str,
        *,
        adopt: bool,
        about_to_send: Callable[[Watch], None] | None = None,
    ) -> Steps[Watch]:
        """Returns once the command is in the log. `adopt`: if the id is known, follow the earlier job instead."""
        self.wire.check_usable()
        check_reason(reason)
        command = self.maker.submit(submission, terms, reason)
        return (yield from self._send(command, command.spec.job_id, adopt=adopt, about_to_send=about_to_send))

    def submit_many(
        self, jobs: Iterable[Submission | Submittable], terms: JobOptions, reason: str, *, adopt: bool
    ) -> list[Watch]:
        """Blocks until every command is in the log. All are checked before the first is sent."""
        self.wire.check_usable()
        check_reason(reason)
        starts = drive(self.wire.starts())
        watches: list[Watch] = []
        envelopes: list[Envelope] = []
        for job in jobs:
            command = self.maker.submit(job if isinstance(job, Submission) else Submission(job), terms, reason)
            envelopes.append(self.maker.envelope(command))
            watches.append(self.wire.watch(command.spec.job_id, command.command_id, starts, adopt=adopt))
        self.wire.bulk().send(envelopes)
        self.wire.last.update({watch.partition: watch for watch in watches})
        return watches

    def cancel(
        self, job_id: str, reason: str, deadline: Deadline, *, wait_for_end: bool = True
    ) -> Steps[CancelOutcome]:
        """Returns what came of it, at the latest when the running attempt has ended."""
        self.wire.check_usable()
        watch = yield from self._send(self.maker.cancel(job_id, reason), job_id)
        try:
            verdict = yield from self.verdict(watch, deadline)
        except CommandRejectedError as refusal:
            if refusal.code not in NO_EFFECT:
                raise
            return CancelOutcome(job_id=job_id, took_effect=False, status=refusal.status, code=refusal.code)
        if verdict is not None and isinstance(verdict.event, JobCancelled):
            return CancelOutcome(job_id=job_id, took_effect=True, status=JobStatus.CANCELLED)
        pending = CancelOutcome(job_id=job_id, took_effect=False, pending=True, status=JobStatus.RUNNING)
        if not wait_for_end:
            return pending
        try:
            end = yield from self._end(watch, deadline)
        except ResultTimeoutError:
            return pending
        return CancelOutcome(job_id=job_id, took_effect=isinstance(end, JobCancelled), status=status_of(end))

    def reschedule(
        self,
        job_id: str,
        run_at: datetime | None,
        delay: float | timedelta | None,
        reason: str,
        deadline: Deadline,
    ) -> Steps[datetime]:
        """Returns when the job is due now. Raises `CommandRejectedError`, `VerdictTimeoutError`."""
        self.wire.check_usable()
        command = self.maker.reschedule(job_id, run_at, delay, reason)
        watch = yield from self._send(command, job_id)
        verdict = yield from self.verdict(watch, deadline)
        event = None if verdict is None else verdict.event
        due_at_ms = event.due_at_ms if isinstance(event, JobRescheduled) else command.run_at_ms
        return cast(datetime, aware(due_at_ms))

    def retry(self, job_id: str, new_job_id: str | None, reason: str, deadline: Deadline) -> Steps[Watch]:
        """Returns the accepted new job. Raises `CommandRejectedError`, `VerdictTimeoutError`."""
        self.wire.check_usable()
        command = self.maker.retry(job_id, new_job_id, reason)
        starts = yield from self.wire.starts()
        # A refusal comes under the old id, the acceptance under the new one.
        both = [self.wire.watch(name, command.command_id, starts) for name in (job_id, command.new_job_id)]
        yield from self.wire.send(self.maker.envelope(command))
        answers = [self.wire.tail.wait_verdict(watch) for watch in both]
        try:
            for watch in both:
                yield from self.wire.join(watch, deadline)
            verdict = yield from wait(_first_of(answers), deadline.left())
        except TimeoutError:
            raise VerdictTimeoutError(job_id, deadline.timeout_s or 0.0) from None
        finally:
            for answer in answers:
                answer.cancel()
        if (refusal := verdict.rejection) is not None:
            raise rejected(refusal)
        self.wire.last[both[1].partition] = both[1]
        return both[1]

    # -- what came of them -------------------------------------------------------------------------------------------

    def known(self, job_id: str, since: datetime | None = None) -> Watch:
        """A watch of a job that someone else submitted, or this client earlier."""
        self.wire.check_usable()
        start = self.wire.hint(job_id) if since is None else Start(time_ms=epoch_ms(since))
        watch = Watch(job_id, self.wire.partition_of(job_id), start, None)
        self.wire.tail.register(watch, fresh=False)
        return watch

    def accepted(self, watch: Watch, deadline: Deadline) -> Steps[Acceptance]:
        """The verdict on a submit. Raises `CommandRejectedError`, `VerdictTimeoutError`."""
        verdict = None if watch.command_id is None else (yield from self.verdict(watch, deadline))
        event = None if verdict is None else verdict.event
        if not isinstance(event, JobSubmitted):
            return Acceptance(job_id=watch.job_id, existing=True)
        accepted_at, due_at = aware(event.decided_at_ms), aware(event.due_at_ms)
        return Acceptance(job_id=watch.job_id, accepted_at=accepted_at, due_at=due_at, seq=event.seq)

    def result(self, watch: Watch, deadline: Deadline) -> Steps[Any]:
        """The decoded result; raises how the job ended otherwise, `CommandRejectedError` or `ResultTimeoutError`."""
        end = yield from self._end(watch, deadline)
        return result_of(end, self.config.decode_result)

    def end(self, watch: Watch, deadline: Deadline) -> Steps[JobStatus]:
        """The terminal status. Raises `CommandRejectedError`, `ResultTimeoutError`."""
        return status_of((yield from self._end(watch, deadline)))

    def status(self, watch: Watch, deadline: Deadline) -> Steps[JobStatus | None]:
        """The status by everything committed until now; None while the submit is not decided."""
        self.wire.check_usable()
        try:
            while not watch.ended:
                end = yield from self.wire.ends.committed(watch.partition)
                yield from self.wire.join(watch, deadline)
                reached = self.wire.tail.reach(watch, end)
                if reached is not None:
                    yield from wait(reached, deadline.left())
                    break
        except TimeoutError:
            raise ResultTimeoutError(watch.job_id, deadline.timeout_s or 0.0, watch.status) from None
        if watch.verdict is not None and (refusal := watch.verdict.rejection) is not None:
            if not self._adopted(watch, refusal.reject_code):
                raise rejected(refusal)
            return (yield from self.status(watch, deadline))
        return watch.status

    def own_commands_decided(self, partitions: Iterable[int], deadline: Deadline) -> Steps[None]:
        """Returns when everything that this client has sent to these partitions is decided."""
        for partition in partitions:
            watch = self.wire.last.get(partition)
            if watch is not None and watch.verdict is None and watch.command_id is not None:
                with suppress(CommandRejectedError, ScheduleRejectedError, ScheduleNotFoundError):
                    yield from self.verdict(watch, deadline)

    def close(self) -> None:
        """Wait for commands on their way, tell those who wait, end all threads."""
        self.wire.close()

    # -- steps of steps ----------------------------------------------------------------------------------------------

    def _send(
        self,
        command: JobCommand,
        job_id: str,
        *,
        adopt: bool = False,
        about_to_send: Callable[[Watch], None] | None = None,
    ) -> Steps[Watch]:
        envelope = self.maker.envelope(command)
        starts = yield from self.wire.starts()
        watch = self.wire.watch(job_id, command.command_id, starts, adopt=adopt)
        if about_to_send is not None:
            about_to_send(watch)
        yield from self.wire.send(envelope)
        self.wire.last[watch.partition] = watch
        return watch

    def verdict(self, watch: Watch, deadline: Deadline) -> Steps[Verdict | None]:
        """The acceptance of a command; None when an earlier job was adopted."""
        self.wire.check_usable()
        answer = self.wire.tail.wait_verdict(watch)
        try:
            yield from self.wire.join(watch, deadline)
            verdict = yield from wait(answer, deadline.left())
        except TimeoutError:
            raise VerdictTimeoutError(watch.job_id, deadline.timeout_s or 0.0, watch.kind) from None
        finally:
            answer.cancel()
        if (refusal := verdict.rejection) is not None:
            if self._adopted(watch, refusal.reject_code):
                return None
            raise rejected(refusal)
        return verdict

    def _end(self, watch: Watch, deadline: Deadline) -> Steps[Terminal]:
        self.wire.check_usable()
        if (known := watch.terminal) is not None:
            return known
        answer = self.wire.tail.wait_end(watch)
        try:
            yield from self.wire.join(watch, deadline)
            end = yield from wait(answer, deadline.left())
        except TimeoutError:
            raise ResultTimeoutError(watch.job_id, deadline.timeout_s or 0.0, watch.status) from None
        finally:
            answer.cancel()
        if end is not None:
            return end
        refusal = watch.verdict.rejection if watch.verdict is not None else None
        if refusal is None or self._adopted(watch, refusal.reject_code):
            return (yield from self._end(watch, deadline))
        raise rejected(refusal)

    def _adopted(self, watch: Watch, code: str) -> bool:
        if watch.adopt and code == RejectCode.DUPLICATE_JOB:
            self.wire.tail.adopt(watch, self.wire.hint(watch.job_id))
            return True
        return False


def _first_of(futures: list[Future[T]]) -> Future[T]:
    first: Future[T] = Future()

    def done(future: Future[T]) -> None:
        if future.cancelled():
            return
        error = future.exception()
        if error is not None:
            fail(first, error)
        else:
            fulfil(first, future.result())

    for future in futures:
        future.add_done_callback(done)
    return first
