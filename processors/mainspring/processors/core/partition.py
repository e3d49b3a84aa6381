"""`PartitionCore`: the fold of one partition, with the indexes and timers that follow from its rows.

The shell gives inputs and the time, and takes what was decided. Nothing here blocks, reads a clock, or knows Kafka.
After an aborted transaction the shell throws the core away and loads another from the committed rows, so there is
no undo.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from mainspring.processors.core.dispatcher import Dispatcher, QueueStats
from mainspring.processors.core.errors import UnexpectedRecordError
from mainspring.processors.core.explain import NoSuchJob, QueueNotDeclared, Ready, WhyNot, explain
from mainspring.processors.core.indexes import WINDOW_JOBS, JobIndexes
from mainspring.processors.core.instants import Now, Wake
from mainspring.processors.core.job.decide import decide
from mainspring.processors.core.job.decide_commands import reject
from mainspring.processors.core.job.decision import (
    ClockStepped,
    Context,
    Decision,
    JobInput,
    JobUnprocessable,
    LeaseExpired,
    StartDeadlinePassed,
    needs_spec,
)
from mainspring.processors.core.job.evolve import evolve, with_dispatch
from mainspring.processors.core.output import Outbox, Output
from mainspring.processors.core.ports import IndexRow, IndexStore, IsOver, Rows, never
from mainspring.processors.core.rules import Rules
from mainspring.processors.core.schedule.instances import finished, refused
from mainspring.processors.core.schedule.keeper import ScheduleKeeper
from mainspring.processors.core.schedule.rows import ScheduleRows, ScheduleRowsInMemory
from mainspring.processors.core.steps import STEP_MIN_MS, ClockSetBack, StepWatch, set_back_unseen
from mainspring.processors.core.sweeps import Sweeps
from mainspring.schemas.attempts import (
    AttemptCancelled,
    AttemptClaimed,
    AttemptFailed,
    AttemptHeartbeat,
    AttemptReleased,
    AttemptSucceeded,
    AttemptTimedOut,
    OfferDeclined,
)
from mainspring.schemas.codes import CancelSignal, DeclineReason, RejectCode
from mainspring.schemas.commands import CancelJob, RescheduleJob, RetryJob, SubmitJob
from mainspring.schemas.common import Cause, CauseSource, HeldAttempt, JobStatus
from mainspring.schemas.events import CommandRejected
from mainspring.schemas.followups import InstanceFinished, InstanceReplaced
from mainspring.schemas.job import JobSpec
from mainspring.schemas.records import Command, Record, ScheduleCommand
from mainspring.schemas.signals import CancelAttempt
from mainspring.schemas.tables import JobState, ScheduleState

__all__ = ["PartitionCore"]

_MOVES_PER_TICK: Final = 5_000
"""What one tick takes from each timer, so that a million jobs due at one instant hold up nothing: the rest is next."""

_OFFERED_BYTES_AT_ONCE: Final = 16 << 20
"""What all partitions together offer in one round, and renew, so that large payloads make no transaction that outlasts
its time-out."""


class PartitionCore:
    """All that is decided in one partition. Call `load` first; then inputs, ticks and dispatches in any order."""

    def __init__(
        self,
        partition: int,
        rules: Rules,
        rows: Rows,
        seed: int,
        schedules: ScheduleRows | None = None,
        *,
        index: IndexStore | None = None,
        window_jobs: int = WINDOW_JOBS,
    ) -> None:
        """`seed` spreads the jitter of retries; the same for every owner of the partition, so that replays agree.

        `schedules`: the rows of schedules; None: in memory, for as long as this core lives. `index`: where the indexes
        keep what does not fit into `window_jobs` jobs each; None: all of it is in memory.
        """
        self.next_seq = 0
        self._rules = rules
        self._rows = rows
        self._seed = seed
        self._timer = Cause(source=CauseSource.TIMER, partition=partition, offset=-1)
        self._outbox = Outbox()
        self._indexes = JobIndexes(rules, rows.state, index, window_jobs)
        self._dispatcher = Dispatcher(
            rows, self._indexes, self._outbox, max(1, _OFFERED_BYTES_AT_ONCE // rules.partitions)
        )
        schedule_rows = ScheduleRowsInMemory() if schedules is None else schedules
        self._schedules = ScheduleKeeper(schedule_rows, rules, self._outbox, self._timer)
        self._now = Now(0, 0)
        self._watch = StepWatch(self._now)
        self._sweeps = Sweeps(rules.partitions)
        self._lease_check_asked = False

    def load(
        self,
        states: Iterable[JobState],
        next_seq: int,
        now: Now,
        schedules: Iterable[ScheduleState] = (),
        clock_ms: int = 0,
    ) -> None:
        """Rebuilds the indexes. Running attempts get a fresh lease.

        `states`: all rows of the partition; with an index, those of the jobs that it has in flight. `clock_ms`: that of
        the owner before; where it is ahead of `now`, delays that began by it are seen to.
        """
        self._now = now
        self._watch = StepWatch(now)
        self.next_seq = next_seq
        self._indexes.load(states, now)
        if clock_ms > now.wall_ms + STEP_MIN_MS:
            self._begin_sweep(set_back_unseen(now.wall_ms), clock_ms)
        self._schedules.load(schedules, now)

    def apply(self, record: Record, cause: Cause, now: Now, raw: bytes = b"") -> None:
        """Takes one input of this partition. Raises UnexpectedRecordError.

        `raw`: the bytes of the record, kept as evidence where a report is refused.
        """
        self._look(now)
        match record:
            case AttemptClaimed():
                self._claim(record, cause, now)
            case AttemptSucceeded() | AttemptFailed() | AttemptTimedOut() | AttemptCancelled() | AttemptReleased():
                self._decide(record.job_id, record, cause, now, raw)
            case SubmitJob():
                self._submit(record, cause, now)
            case AttemptHeartbeat():
                self._heartbeat(record, now)
            case OfferDeclined():
                self._decline(record, cause, now)
            case CancelJob() | RescheduleJob() | RetryJob() | InstanceReplaced():
                self._decide(record.job_id, record, cause, now)
            case _ if isinstance(record, InstanceFinished | ScheduleCommand):
                self.next_seq += self._schedules.apply(record, cause, now, self.next_seq)
            case _:
                raise UnexpectedRecordError(type(record))

    def refuse(self, command: Command, code: RejectCode, message: str, cause: Cause, now: Now) -> None:
        """Answers a command in which the shell found something wrong, such as its key."""
        if isinstance(command, ScheduleCommand):
            self._schedules.refuse(command, code, message, cause, now)
            return
        job_id = command.spec.job_id if isinstance(command, SubmitJob) else command.job_id
        state = self._rows.state(job_id)
        self._carry_out(state, reject(state, command, code, message, self._context(cause, now)), now)

    def refuse_fired(self, command: SubmitJob, detail: str, cause: Cause, now: Now) -> None:
        """Answers a schedule's submit that cannot be applied, and tells the schedule; a job that is there ends."""
        state = self._rows.state(command.spec.job_id)
        if state is not None:
            self.close(state.job_id, detail, cause, now)
            return
        decision = reject(None, command, RejectCode.UNPROCESSABLE, detail, self._context(cause, now))
        self._carry_out(None, decision, now)
        self._tell_refused(command, decision)

    def close(self, job_id: str, detail: str, cause: Cause, now: Now) -> None:
        """Ends the job of a record that cannot be applied: UNPROCESSABLE, with `detail`; an ended job stays."""
        self._look(now)
        self._decide(job_id, JobUnprocessable(job_id=job_id, detail=detail), cause, now)

    def tick(self, now: Now, is_over: IsOver = never) -> None:
        """Does what is due: schedules, start deadlines, jobs whose time has come, renewals, old history.

        And, where the wall clock was set back, what follows for those who wait.

        Bounded, for schedules in time, too (`is_over`): where more is due, `wake_at` stays in the past.
        """
        self._look(now)
        if self._sweeps:
            self._sweep(now)
        self._schedules.tick(now, is_over)
        indexes = self._indexes
        for (_, _, job_id), _ in indexes.start_deadlines.pop_due(now.wall_ms, _MOVES_PER_TICK):
            self._decide(job_id, StartDeadlinePassed(job_id=job_id), self._timer, now)
        indexes.take_due(now.wall_ms)
        self._dispatcher.renew_due(now, _MOVES_PER_TICK)
        for job_id in indexes.history.evict(now.wall_ms, _MOVES_PER_TICK):
            self._rows.put_state(job_id, None)
            self._rows.put_spec(job_id, None)

    def overdue_leases(self, now: Now) -> bool:
        """Whether a lease has run out.

        A backlog is no death: read `attempts` up to its present end first, then call `expire_leases`.
        """
        expires_ms = self._indexes.leases.next_expiry_ms()
        overdue = expires_ms is not None and expires_ms <= now.mono_ms
        self._lease_check_asked = self._lease_check_asked or overdue
        return overdue

    def expire_leases(self, asked_at: Now, now: Now) -> frozenset[str]:
        """Takes the attempts whose lease had run out at `asked_at`; returns the incarnations of their workers.

        `asked_at`: when the end of `attempts` was asked for that has now been read past.
        """
        self._look(now)
        self._lease_check_asked = False
        expired = self._indexes.leases.expired(asked_at.mono_ms)
        for lease in expired:
            self._decide(lease.job_id, LeaseExpired(job_id=lease.job_id, attempt=lease.attempt), self._timer, now)
        return frozenset(lease.incarnation for lease in expired)

    def dispatch(self, now: Now, room: int) -> None:
        """Offers jobs, as many as their windows allow and at most `room`."""
        self._look(now)
        self._dispatcher.dispatch(now, room)

    def placed(self, job_id: str, work_partition: int) -> None:
        """Tells where the shell put the job's offer, so that the next goes elsewhere. In memory, until the start."""
        self._indexes.placed[job_id] = work_partition

    def drain(self) -> Output:
        """What was decided since the last call."""
        return self._outbox.drain()

    def drain_index(self) -> list[IndexRow]:
        """What the index has to be told, together with the rows that have changed since the last call."""
        return self._indexes.drain()

    def wake_at(self) -> Wake | None:
        """The earliest instants at which `tick`, `dispatch` or a lease has work (in the past: now), or None."""
        indexes = self._indexes
        wall_ms = _earliest(
            indexes.waiting.next_at(),
            indexes.start_deadlines.next_at(),
            indexes.history.next_at(),
            self._schedules.next_at(),
        )
        # A lease whose check is under way would wake the shell all the time; the end of the check is its own signal.
        lease_ms = None if self._lease_check_asked else indexes.leases.next_expiry_ms()
        sweep_ms = self._now.mono_ms if self._sweeps else None
        mono_ms = _earliest(indexes.renewals.next_at(), lease_ms, self._dispatcher.wake_mono_ms(self._now), sweep_ms)
        return None if wall_ms is None and mono_ms is None else Wake(wall_ms, mono_ms)

    def explain(self, job_id: str, now: Now) -> WhyNot:
        """Why the job is not running, with its place in the queue."""
        state = self._rows.state(job_id)
        if state is None:
            return NoSuchJob(job_id=job_id)
        why = explain(state, now.wall_ms)
        if not isinstance(why, Ready):
            return why
        queue = self._indexes.queue(state.queue)
        if not queue.declared:
            return QueueNotDeclared(queue=state.queue)
        ahead, is_exact = queue.ready.at_least_ahead_of(queue.order.ready_job(state))
        return Ready(
            queue=why.queue,
            ahead=ahead,
            is_at_least=not is_exact,
            in_flight=queue.window.in_flight,
            window=int(queue.window.size),
        )

    def stats(self) -> Mapping[str, QueueStats]:
        """Figures of each queue that is declared or has been used, for metrics."""
        return self._dispatcher.stats()

    @property
    def decided_bytes(self) -> int:
        """About how many bytes of specifications have been decided on since `load`, which input does not bound."""
        return self._outbox.spec_bytes

    @property
    def clock_ms(self) -> int:
        """What the wall clock shows, or has shown, where what waits by it has not all been looked at since."""
        return max(self._now.wall_ms, self._sweeps.clock_ms)

    @property
    def waiting(self) -> int:
        """Jobs that are not due yet, or parked."""
        return self._indexes.not_ready

    @property
    def terminal(self) -> int:
        """Finished jobs that are still in the table."""
        return len(self._indexes.history)

    @property
    def schedules(self) -> int:
        """Schedules in the table."""
        return len(self._schedules)

    def _look(self, now: Now) -> None:
        """Every call brings the clocks, and the first that shows a step lets it be dealt with by the ticks to come."""
        if now is self._now:
            return
        self._now = now
        step = self._watch.see(now)
        if step is not None:
            self._begin_sweep(step, step.before_ms)
            self._schedules.look_again()

    def _begin_sweep(self, step: ClockSetBack, clock_ms: int) -> None:
        in_memory, in_table = self._indexes.not_running()
        self._sweeps.begin(step, in_memory, in_table, clock_ms)

    def _sweep(self, now: Now) -> None:
        step, job_ids = self._sweeps.take()
        for job_id in job_ids:
            state = self._rows.state(job_id)
            decision = decide(state, None, ClockStepped(job_id=job_id, step=step), self._context(self._timer, now))
            self._carry_out(state, decision, now, is_swept=True)

    def _submit(self, command: SubmitJob, cause: Cause, now: Now) -> None:
        job_id = command.spec.job_id
        state = self._rows.state(job_id)
        decision = decide(state, None, command, self._context(cause, now))
        if state is None and self._carry_out(None, decision, now) is not None:
            self._rows.put_spec(job_id, command.spec)
            self.next_seq += 1
        elif state is not None:
            self._carry_out(state, decision, now)
        if command.spec.schedule_id is not None and cause.source is CauseSource.FOLLOWUPS:
            self._tell_refused(command, decision)

    def _tell_refused(self, command: SubmitJob, decision: Decision) -> None:
        """Lets the schedule know that what it fired has no job."""
        for event in decision.events:
            if isinstance(event, CommandRejected):
                self._outbox.followup(*refused(command, event))

    def _claim(self, claim: AttemptClaimed, cause: Cause, now: Now) -> None:
        before, after = self._decide(claim.job_id, claim, cause, now)
        if before is not None and after is not None and before is not after and after.status is JobStatus.RUNNING:
            self._dispatcher.started(before, now, free_slot=claim.free_slot)

    def _decline(self, decline: OfferDeclined, cause: Cause, now: Now) -> None:
        before, after = self._decide(decline.job_id, decline, cause, now)
        if before is not None and before is not after and decline.reason == DeclineReason.NO_SLOTS:
            self._indexes.queue(before.queue).window.declined_for_slots(now.mono_ms)

    def _heartbeat(self, heartbeat: AttemptHeartbeat, now: Now) -> None:
        gone, cancelled = self._indexes.leases.renew(heartbeat.attempts, heartbeat.incarnation, now.mono_ms)
        for held in gone:
            self._stop(heartbeat, held, CancelSignal.LEASE_LOST)
        for held in cancelled:
            self._stop(heartbeat, held, CancelSignal.CANCEL_REQUESTED)

    def _stop(self, heartbeat: AttemptHeartbeat, held: HeldAttempt, reason: CancelSignal) -> None:
        self._outbox.signal(
            CancelAttempt(
                worker_id=heartbeat.worker_id,
                incarnation=heartbeat.incarnation,
                job_id=held.job_id,
                attempt=held.attempt,
                reason=reason,
            )
        )

    def _decide(
        self, job_id: str, given: JobInput, cause: Cause, now: Now, raw: bytes = b""
    ) -> tuple[JobState | None, JobState | None]:
        """Decides, folds and files. Returns the row before and after."""
        state = self._rows.state(job_id)
        spec: JobSpec | None = self._rows.spec(job_id) if needs_spec(type(given)) else None
        decision = decide(state, spec, given, self._context(cause, now, raw))
        return state, self._carry_out(state, decision, now)

    def _context(self, cause: Cause, now: Now, raw: bytes = b"") -> Context:
        return Context(now.wall_ms, cause, self._rules, self.next_seq, self._seed, raw)

    def _carry_out(
        self, state: JobState | None, decision: Decision, now: Now, *, is_swept: bool = False
    ) -> JobState | None:
        after = state
        outbox = self._outbox
        for event in decision.events:
            after = evolve(after, event)
            outbox.events.append(event)
        if decision.dispatch is not None and after is not None:
            after = with_dispatch(after, decision.dispatch)
        if after is not state and after is not None:
            if self._sweeps and not is_swept:
                self._sweeps.changed(after, now.wall_ms, is_decided=bool(decision.events))
            self._rows.put_state(after.job_id, after)
            self._indexes.move(state, after, now)
            # Only a schedule makes ids with `@`, so jobs without one cost no more than a look at theirs.
            if after.status >= JobStatus.COMPLETED and "@" in after.job_id:
                self._outbox.followup(*finished(after, decision.events[-1]))
        for signal in decision.signals:
            outbox.signal(signal)
        for key, record in decision.followups:
            outbox.followup(key, record)
        return after


def _earliest(*instants: int | None) -> int | None:
    return min((each for each in instants if each is not None), default=None)
