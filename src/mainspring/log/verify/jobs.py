"""The jobs of one partition: their events are folded one by one, and each is checked against the state it follows."""

from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Final

from mainspring.log.source import Place, Raw
from mainspring.log.verify.digests import DigestTable
from mainspring.log.verify.findings import Check, Findings
from mainspring.log.verify.inputs import InputIndex
from mainspring.processors.core.errors import CoreError
from mainspring.processors.core.job.evolve import evolve
from mainspring.processors.core.job.transitions import TERMINAL
from mainspring.schemas.common import CauseSource, JobStatus
from mainspring.schemas.events import (
    CommandRejected,
    JobCancelRequested,
    JobCompleted,
    JobFailed,
    JobRescheduled,
    JobRetryScheduled,
    JobStarted,
    JobSubmitted,
    JobTimedOut,
    ReportRefused,
)
from mainspring.schemas.records import JobEvent
from mainspring.schemas.tables import JobState
from mainspring.topics import Topic, partition_for

__all__ = ["JobAuditor", "LiveJob", "state_digest"]

_folded: Final = attrgetter(*(each.name for each in fields(JobState) if each.name != "dispatch"))


def state_digest(state: JobState) -> int:
    """64 bits of what a fold gives: all columns but those of dispatch. Comparable within one process only."""
    return hash(_folded(state))


@dataclass(slots=True)
class LiveJob:
    """An unfinished job while its partition is read."""

    state: JobState
    max_retries: int
    max_lost: int


_ENDS_BESIDE_CANCEL = (JobRetryScheduled, JobFailed, JobTimedOut, JobRescheduled, JobStarted)
_REPORTED = (JobCompleted, JobFailed, JobTimedOut, JobRetryScheduled, JobCancelRequested)


class JobAuditor:
    """Folds one partition of `events`. A finished job is kept as a digest, so memory grows with the unfinished ones.

    After a fault the event's revision is taken as right and the fold goes on: one fault is not told a hundred times.
    """

    def __init__(
        self,
        topic: Topic,
        partition: int,
        inputs: dict[CauseSource, InputIndex],
        findings: Findings,
        *,
        tolerance_ms: int,
        from_start: bool,
    ) -> None:
        self.live: dict[str, LiveJob] = {}
        self.finished = DigestTable()
        self.specs = DigestTable()
        self.resubmitted = 0
        self.unverifiable_causes = 0
        self.headless_events = 0
        self.outcomes: dict[JobStatus, int] = {}
        self._topic = topic
        self._partition = partition
        self._inputs = inputs
        self._findings = findings
        self._tolerance_ms = tolerance_ms
        self._from_start = from_start
        self._last_seq = -1

    def see(self, raw: Raw, event: JobEvent) -> None:
        """Checks one event and folds it."""
        job_id = event.job_id
        live = self.live.get(job_id)
        if type(event) is JobSubmitted:
            self._submitted(raw, event, live)
        elif type(event) is CommandRejected or type(event) is ReportRefused:
            self._refused(raw, event, live)
        elif live is not None:
            self._changed(raw, event, live)
        else:
            self._without_job(raw, event)
        if event.cause.source is not CauseSource.TIMER:
            self._check_cause(raw, event)
        elif event.cause.partition != self._partition:
            self._fault(Check.CAUSE_FOREIGN, raw, event, f"a timer of partition {event.cause.partition} decided it")

    def _submitted(self, raw: Raw, event: JobSubmitted, live: LiveJob | None) -> None:
        job_id = event.job_id
        self._check_key(raw, event)
        if live is not None:
            self._fault(Check.ILLEGAL_TRANSITION, raw, event, f"submitted while it is {live.state.status.name}")
        elif self.finished.get(hash(job_id)) is not None:
            # Allowed: the scheduler forgets finished jobs by its history limit, and then the id is free again.
            self.resubmitted += 1
            self.finished.put(hash(job_id), 0)
        if event.revision != 1:
            self._fault(Check.REVISION_GAP, raw, event, f"a job begins with revision 1, not {event.revision}")
        if event.seq <= self._last_seq:
            self._fault(Check.SEQ_ORDER, raw, event, f"seq {event.seq} follows {self._last_seq}")
        self._last_seq = max(self._last_seq, event.seq)
        state = evolve(None, event if event.revision == 1 else replace(event, revision=1))
        assert state is not None
        spec = event.spec
        self.live[job_id] = LiveJob(state, spec.max_retries, spec.max_lost)
        self.specs.put(hash(job_id), hash(spec))

    def _refused(self, raw: Raw, event: CommandRejected | ReportRefused, live: LiveJob | None) -> None:
        self._check_key(raw, event)
        if live is not None and event.revision != live.state.revision:
            self._fault(
                Check.REVISION_GAP,
                raw,
                event,
                f"{type(event).__name__} says revision {event.revision} and the job has {live.state.revision}",
            )

    def _changed(self, raw: Raw, event: JobEvent, live: LiveJob) -> None:
        state = live.state
        if raw.key != event.job_id.encode():
            self._check_key(raw, event)
        if type(event) is JobStarted:
            self._check_start(raw, event, state)
        elif isinstance(event, _REPORTED) and event.attempt != state.attempt:
            self._fault(
                Check.STALE_REPORT, raw, event, f"attempt {event.attempt} ended the job's attempt {state.attempt}"
            )
        elif type(event) is JobCompleted and event.worker_id != state.worker_id:
            self._fault(
                Check.STALE_REPORT,
                raw,
                event,
                f"worker {event.worker_id!r} completed what {state.worker_id!r} was confirmed for",
            )
        if type(event) is JobRetryScheduled:
            self._check_limits(raw, event, live)
        if type(event) is JobRescheduled and event.command_id is None:
            self._check_move(raw, event, state)
        if state.cancel is not None and isinstance(event, _ENDS_BESIDE_CANCEL):
            self._fault(
                Check.CANCEL_IGNORED,
                raw,
                event,
                f"{type(event).__name__} after the cancel {state.cancel.command_id!r} was accepted",
            )
        after = self._evolve(raw, event, state)
        if after.status in TERMINAL:
            del self.live[event.job_id]
            self.finished.put(hash(event.job_id), state_digest(after) or 1)
            self.outcomes[after.status] = self.outcomes.get(after.status, 0) + 1
        else:
            live.state = after

    def _evolve(self, raw: Raw, event: JobEvent, state: JobState) -> JobState:
        if event.revision != state.revision + 1:
            self._fault(Check.REVISION_GAP, raw, event, f"revision {event.revision} where {state.revision + 1} is next")
            state = replace(state, revision=event.revision - 1)
        try:
            after = evolve(state, event)
        except CoreError as error:
            if not (type(event) is JobStarted and state.status is JobStatus.RUNNING):
                self._fault(Check.ILLEGAL_TRANSITION, raw, event, str(error))
            return replace(state, revision=event.revision)
        return state if after is None else after

    def _check_start(self, raw: Raw, event: JobStarted, state: JobState) -> None:
        if state.status is JobStatus.RUNNING:
            self._fault(
                Check.STARTED_TWICE,
                raw,
                event,
                f"attempt {event.attempt} started while attempt {state.attempt} on {state.worker_id!r} had the token",
            )
        if event.attempt != state.attempt + 1:
            self._fault(Check.ATTEMPT_GAP, raw, event, f"attempt {event.attempt} follows attempt {state.attempt}")
        early_ms = max(state.due_at_ms, event.due_at_ms) - event.decided_at_ms
        # What waits for no delay is due whatever the clock says: it may have been set back since.
        if early_ms > self._tolerance_ms and state.delay_ms != 0:
            self._fault(Check.STARTED_EARLY, raw, event, f"started {early_ms} ms before it was due")

    def _check_move(self, raw: Raw, event: JobRescheduled, state: JobState) -> None:
        """A clock that was set back moves the end of a delay, and only back, no further than it lasts."""
        if state.delay_ms is None:
            self._fault(Check.ILLEGAL_TRANSITION, raw, event, "moved by no command, and it waits for an instant")
        elif event.due_at_ms >= state.due_at_ms or event.due_at_ms > event.decided_at_ms + state.delay_ms:
            detail = f"a delay of {state.delay_ms} ms that ended at {state.due_at_ms} was moved to {event.due_at_ms}"
            self._fault(Check.ILLEGAL_TRANSITION, raw, event, detail)

    def _check_limits(self, raw: Raw, event: JobRetryScheduled, live: LiveJob) -> None:
        if event.retries > live.max_retries:
            self._fault(Check.LIMIT_EXCEEDED, raw, event, f"retry {event.retries} of {live.max_retries} allowed")
        if event.lost > live.max_lost:
            self._fault(Check.LIMIT_EXCEEDED, raw, event, f"lost {event.lost} times, {live.max_lost} allowed")
        if event.retries < live.state.retries or event.lost < live.state.lost:
            self._fault(
                Check.LIMIT_EXCEEDED,
                raw,
                event,
                f"retries and losses went back from {live.state.retries} and {live.state.lost} "
                f"to {event.retries} and {event.lost}",
            )

    def _without_job(self, raw: Raw, event: JobEvent) -> None:
        self._check_key(raw, event)
        if self.finished.get(hash(event.job_id)):
            self._fault(Check.AFTER_TERMINAL, raw, event, f"{type(event).__name__} after the job's end")
        elif self._from_start:
            self._fault(
                Check.ORPHAN_EVENT, raw, event, f"{type(event).__name__} of a job that was never submitted here"
            )
        else:
            self.headless_events += 1

    def _check_key(self, raw: Raw, event: JobEvent) -> None:
        key = event.job_id.encode()
        if raw.key != key:
            self._fault(Check.BAD_KEY, raw, event, f"the key is {raw.key!r} and the event is about {event.job_id!r}")
        home = partition_for(key, self._topic.partitions)
        if home != self._partition:
            self._fault(Check.WRONG_PARTITION, raw, event, f"{event.job_id!r} belongs on partition {home}")

    def _check_cause(self, raw: Raw, event: JobEvent) -> None:
        cause = event.cause
        index = self._inputs[cause.source]
        if cause.partition != self._partition:
            self._fault(
                Check.CAUSE_FOREIGN, raw, event, f"its cause is on partition {cause.partition} of {index.topic.name}"
            )
            return
        if cause.offset < index.span.start:
            self.unverifiable_causes += 1
            return
        if cause.offset >= index.span.end:
            self._fault(
                Check.CAUSE_ABSENT, raw, event, f"{index.place(cause.offset)} lies behind the end {index.span.end}"
            )
            return
        known = index.decide(cause.offset, event.job_id)
        if not known.is_there:
            self._fault(
                Check.CAUSE_ABSENT, raw, event, f"{index.place(cause.offset)} holds no record that was committed"
            )
        elif not known.is_about_job:
            self._fault(Check.CAUSE_FOREIGN, raw, event, f"{index.place(cause.offset)} is about another job")
        elif known.was_decided:
            self._fault(
                Check.DECIDED_TWICE, raw, event, f"another event was decided on {index.place(cause.offset)}, too"
            )

    def _fault(self, check: Check, raw: Raw, event: JobEvent, detail: str) -> None:
        place = Place(topic=self._topic.name, partition=self._partition, offset=raw.offset)
        self._findings.add(check, f"job {event.job_id!r}: {detail}", place=place, job_id=event.job_id)
