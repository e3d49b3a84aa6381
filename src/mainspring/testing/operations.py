"""What a client may ask, answered by the simulation: commands in, verdicts and ends out."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar, cast

from mainspring.client.commands import CommandMaker, Submission, check_reason
from mainspring.client.config import ClientConfig
from mainspring.client.core import NO_EFFECT
from mainspring.client.errors import JobNotFoundError, ResultTimeoutError
from mainspring.client.info import JobInfo, aware
from mainspring.client.outcomes import Acceptance, CancelOutcome, rejected, result_of
from mainspring.client.progress import Progress, Terminal, status_of
from mainspring.client.queries import HistoryEntry
from mainspring.jobs.app import JobCall
from mainspring.jobs.base import Job
from mainspring.jobs.errors import InvalidJobError
from mainspring.jobs.models import JobStatus
from mainspring.jobs.options import JobOptions
from mainspring.jobs.spec import Submittable
from mainspring.schemas import Command, JobEvent
from mainspring.schemas.bounds import ID_MAX_CHARS
from mainspring.schemas.codes import RejectCode
from mainspring.schemas.commands import CancelJob, RescheduleJob, RetryJob, SubmitJob
from mainspring.schemas.common import CauseSource
from mainspring.schemas.errors import UnwritableRecordError
from mainspring.schemas.events import (
    CommandRejected,
    JobCancelled,
    JobCompleted,
    JobRescheduled,
    JobSubmitted,
)
from mainspring.schemas.logs import LogCaptured
from mainspring.schemas.records import SCHEDULE_EVENT_TYPES, ScheduleCommand, ScheduleEvent
from mainspring.schemas.schedule_limits import schedule_of
from mainspring.testing.errors import StandstillError
from mainspring.testing.simulation import Simulation
from mainspring.testing.story import story

__all__ = ["Operations"]

C = TypeVar("C", SubmitJob, CancelJob, RescheduleJob, RetryJob)
_NUMBER_CHARS: Final = 12


class Operations:
    """The operations of the real client, each at one instant of virtual time or for as long as it waits."""

    def __init__(self, simulation: Simulation, config: ClientConfig) -> None:
        self._simulation = simulation
        self._scheduler = simulation.scheduler
        self._maker = CommandMaker(config, lambda: simulation.clock.wall_ms)
        self._drawn: Counter[str] = Counter()
        self._encode = config.codec.encode
        self._given: set[str] = set()
        self._commands = 0
        self.decode_result: Callable[[bytes, str], Any] = config.decode_result

    # Commands.

    def submit(self, submission: Submission, terms: JobOptions, reason: str) -> tuple[str, str]:
        """Puts a job into the log. Returns its id and the command's. Raises `InvalidJobError`."""
        command = self.make_submit(submission, terms, reason)
        self._give(command)
        return command.spec.job_id, command.command_id

    def make_submit(self, submission: Submission, terms: JobOptions, reason: str) -> SubmitJob:
        """A checked command. Ids that nobody gives are drawn in order: `<name>-1`, `<name>-2`."""
        check_reason(reason)
        command = self._maker.submit(submission, terms, reason)
        if _own_id(submission, terms) is None:
            command = replace(command, spec=replace(command.spec, job_id=self._draw(command.spec.name)))
        return self._named(command)

    def give_all(self, commands: Sequence[SubmitJob]) -> None:
        """Puts many jobs into the log."""
        for command in commands:
            self._give(command)

    def send(self, command: Command) -> None:
        """Puts a ready command into the log. Raises `InvalidJobError` for what no record can hold."""
        self._give(command)

    def cancel(self, job_id: str, reason: str, timeout_s: float | None, *, wait: bool) -> CancelOutcome:
        """As `Client.cancel`."""
        command = self._named(self._maker.cancel(job_id, reason))
        self._give(command)
        verdict = self._verdict(command)
        if isinstance(verdict, CommandRejected):
            refusal = rejected(verdict)
            if verdict.reject_code not in NO_EFFECT:
                raise refusal
            status = JobStatus.__members__.get(verdict.status or "")
            return CancelOutcome(job_id=job_id, took_effect=False, status=status, code=verdict.reject_code)
        if isinstance(verdict, JobCancelled):
            return CancelOutcome(job_id=job_id, took_effect=True, status=JobStatus.CANCELLED)
        progress = self._scheduler.progress[job_id]
        patient = wait and not self._simulation.is_driving  # a job that cancels another cannot wait for its end
        if not patient or not self._wait(lambda: progress.terminal is not None, timeout_s, job_id):
            return CancelOutcome(job_id=job_id, took_effect=False, pending=True, status=JobStatus.RUNNING)
        end = progress.terminal
        assert end is not None  # it was waited for
        return CancelOutcome(job_id=job_id, took_effect=isinstance(end, JobCancelled), status=status_of(end))

    def reschedule(
        self, job_id: str, run_at: datetime | None, delay: float | timedelta | None, reason: str
    ) -> datetime:
        """As `Client.reschedule`."""
        command = self._named(self._maker.reschedule(job_id, run_at, delay, reason))
        self._give(command)
        verdict = self._verdict(command)
        if isinstance(verdict, CommandRejected):
            raise rejected(verdict)
        due_at = aware(verdict.due_at_ms if isinstance(verdict, JobRescheduled) else command.run_at_ms)
        assert due_at is not None  # neither is None
        return due_at

    def retry(self, job_id: str, reason: str, new_job_id: str | None) -> tuple[str, str]:
        """As `Client.retry`; returns the id of the new job and the command's."""
        known = self._scheduler.progress[job_id].spec
        drawn = self._draw(job_id if known is None else known.name) if new_job_id is None else new_job_id
        command = self._named(self._maker.retry(job_id, drawn, reason))
        self._give(command)
        self._scheduler.decide()
        self._given.add(drawn)
        for key in (job_id, drawn):
            verdict = self._answer(key, command.command_id)
            if isinstance(verdict, CommandRejected):
                raise rejected(verdict)
        return drawn, command.command_id

    # Schedules.

    @property
    def now_ms(self) -> int:
        """The present, epoch milliseconds UTC."""
        return self._simulation.clock.wall_ms

    def about_schedule(self, kind: type[Any], reason: str, **fields: Any) -> Any:
        """A checked command. Raises `InvalidScheduleError`."""
        command = self._maker.about_schedule(kind, reason, **fields)
        self._commands += 1
        return replace(command, command_id=f"command-{self._commands}")

    def decide_schedule(self, command: ScheduleCommand) -> ScheduleEvent:
        """Puts the command into the log, and returns what answers it."""
        self._give(command)
        self._scheduler.decide()
        of_schedule = (event for _, event in self.schedule_events(schedule_of(command)))
        return next(event for event in of_schedule if getattr(event, "command_id", None) == command.command_id)

    def schedule_events(self, schedule_id: str) -> list[tuple[int, ScheduleEvent]]:
        """What was decided about a schedule, and where it stands among all events."""
        self._scheduler.decide()
        return [
            (offset, cast(ScheduleEvent, event))
            for offset, event in enumerate(self._scheduler.events)
            if type(event) in SCHEDULE_EVENT_TYPES and getattr(event, "schedule_id", None) == schedule_id
        ]

    # What came of them.

    def check_accepted(self, job_id: str, command_id: str | None, *, adopt: bool) -> JobSubmitted | None:
        """The acceptance of a submit; None where an earlier job is followed. Raises `CommandRejectedError`."""
        self._scheduler.decide()
        verdict = None if command_id is None else self._answer(job_id, command_id)
        if isinstance(verdict, CommandRejected):
            if adopt and verdict.reject_code == RejectCode.DUPLICATE_JOB:
                return None
            raise rejected(verdict)
        return verdict if isinstance(verdict, JobSubmitted) else None

    def accepted(self, job_id: str, command_id: str | None, *, adopt: bool) -> Acceptance:
        """As `JobHandle.accepted`."""
        event = self.check_accepted(job_id, command_id, adopt=adopt)
        if event is None:
            return Acceptance(job_id=job_id, existing=True)
        accepted_at, due_at = aware(event.decided_at_ms), aware(event.due_at_ms)
        return Acceptance(job_id=job_id, accepted_at=accepted_at, due_at=due_at, seq=event.seq)

    def end(self, job_id: str, command_id: str | None, timeout_s: float | None, *, adopt: bool) -> Terminal:
        """The end of a job; moves time. Raises `CommandRejectedError`, `ResultTimeoutError`, `StandstillError`."""
        self.check_accepted(job_id, command_id, adopt=adopt)
        progress = self._scheduler.progress[job_id]
        if progress.terminal is None and not self._wait(lambda: progress.terminal is not None, timeout_s, job_id):
            raise ResultTimeoutError(job_id, timeout_s or 0.0, progress.status)
        assert progress.terminal is not None  # it was waited for
        return progress.terminal

    def get(self, job_id: str) -> JobInfo:
        """All about one job. Raises `JobNotFoundError`."""
        self._scheduler.decide()
        progress = self._scheduler.progress[job_id]
        if progress.spec is None:
            raise JobNotFoundError(job_id, "this test's scheduler")
        end = progress.terminal
        result = result_of(end, self.decode_result) if isinstance(end, JobCompleted) else None
        return JobInfo.of_events(progress, result)

    def history(self, job_id: str) -> list[HistoryEntry]:
        """The events of a job as the client gives them."""
        self._scheduler.decide()
        places = {id(event): offset for offset, event in enumerate(self._scheduler.events)}
        return [HistoryEntry(0, places[id(event)], event) for event in self._scheduler.events_of[job_id]]

    # What the log of the kit knows.

    def events(self, job_id: str) -> tuple[JobEvent, ...]:
        """What was decided about a job."""
        return tuple(self._scheduler.events_of[job_id])

    def progress(self, job_id: str) -> Progress:
        """The fold of a job's events."""
        return self._scheduler.progress[job_id]

    def reported_progress(self, job_id: str) -> tuple[float | None, str | None]:
        """What the latest attempt told."""
        context = self._simulation.stage.contexts.get(job_id)
        return (None, None) if context is None else (context.progress_fraction, context.note)

    def logs(self, job_id: str) -> tuple[LogCaptured, ...]:
        """What its attempts wrote."""
        return tuple(log for log in self._simulation.logs if log.job_id == job_id)

    def story(self, job_id: str) -> str:
        """Its history in words."""
        progress = self.progress(job_id)
        return story(
            job_id,
            progress=progress,
            events=self.events(job_id),
            logs=self.logs(job_id),
            start_ms=self._simulation.clock.start_us // 1000,
            why=self._scheduler.explain(job_id) if progress.spec is not None else None,
        )

    # Steps of these.

    def _wait(self, done: Callable[[], bool], timeout_s: float | None, job_id: str) -> bool:
        timeout_us = None if timeout_s is None else round(timeout_s * 1_000_000)
        if self._simulation.run_until(done, timeout_us):
            return True
        if timeout_s is None:
            raise StandstillError(f"the end of job {job_id!r}", self.story(job_id))
        return False

    def _verdict(self, command: CancelJob | RescheduleJob) -> JobEvent | None:
        self._scheduler.decide()
        return self._answer(command.job_id, command.command_id)

    def _answer(self, job_id: str, command_id: str) -> JobEvent | None:
        of_job = self._scheduler.events_of[job_id]
        return next((event for event in of_job if getattr(event, "command_id", None) == command_id), None)

    def _give(self, command: Command) -> None:
        if isinstance(command, SubmitJob):
            self._given.add(command.spec.job_id)
        try:
            self._encode(command)
        except UnwritableRecordError as error:
            raise InvalidJobError(RejectCode.INVALID_FIELD, error.field, error.why) from error
        self._scheduler.give(command, CauseSource.COMMANDS)

    def _named(self, command: C) -> C:
        self._commands += 1
        return replace(command, command_id=f"command-{self._commands}")

    def _draw(self, name: str) -> str:
        stem = name.replace("@", "-")[: ID_MAX_CHARS - _NUMBER_CHARS]
        while True:
            self._drawn[stem] += 1
            job_id = f"{stem}-{self._drawn[stem]}"
            if job_id not in self._given:
                return job_id


def _own_id(submission: Submission, terms: JobOptions) -> str | None:
    job: Submittable = submission.job
    own = job.options.job_id if isinstance(job, JobCall) else job.job_id if isinstance(job, Job) else None
    return terms.job_id or (submission.options and submission.options.job_id) or own
