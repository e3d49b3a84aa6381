"""Where each job of a partition stands: every unfinished job is in exactly one index, derived from its row.

waiting    not due yet, or parked      by wall time
ready      due, per queue              by the queue's order
offered    on offer                    by the monotonic time of its renewal
running    a confirmed attempt         by its lease
"""

from collections.abc import Iterable

from mainspring.processors.core.due import DueIndex
from mainspring.processors.core.history import History
from mainspring.processors.core.instants import Now
from mainspring.processors.core.job.transitions import TERMINAL
from mainspring.processors.core.leases import LeaseTable
from mainspring.processors.core.ready import ReadyJob, ReadyQueue
from mainspring.processors.core.rules import QueueRules, Rules
from mainspring.processors.core.window import DispatchWindow
from mainspring.schemas.common import JobStatus
from mainspring.schemas.tables import JobState

__all__ = ["JobIndexes", "QueueIndex"]


class QueueIndex:
    """The ready jobs and the window of one queue."""

    __slots__ = ("by_priority", "declared", "name", "ready", "strategy", "window")

    def __init__(self, name: str, rules: Rules) -> None:
        declared = rules.queues.get(name)
        queue = declared or QueueRules()
        self.name = name
        self.declared = declared is not None
        self.strategy = queue.strategy
        self.by_priority = queue.strategy.by_priority
        self.ready = ReadyQueue(queue.tenant_weights)
        self.window = DispatchWindow(rules)

    def ready_job(self, state: JobState) -> ReadyJob:
        """The job's place in the order of the queue."""
        band = state.priority if self.by_priority else 0
        return ReadyJob(self.strategy.key(state), state.seq, state.job_id, band, state.tenant)


class JobIndexes:
    """All indexes of a partition, kept in step with its rows by `move`."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.queues: dict[str, QueueIndex] = {}
        self.waiting: DueIndex[tuple[QueueIndex, ReadyJob]] = DueIndex()
        self.renewals: DueIndex[None] = DueIndex()
        self.start_deadlines: DueIndex[None] = DueIndex()
        self.leases = LeaseTable(rules.lease_ms)
        self.placed: dict[str, int] = {}
        """Work partition of the last offer of jobs that have not started, where the shell has told it."""
        self.history = History(rules.history_share, rules.history_max_age_ms)

    def queue(self, name: str) -> QueueIndex:
        """The index of a queue, made when first asked for."""
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = QueueIndex(name, self._rules)
        return queue

    def load(self, states: Iterable[JobState], now: Now) -> None:
        """Builds all indexes from rows: fresh leases, and windows of the starting size around what is in flight."""
        waiting: list[tuple[str, int, tuple[QueueIndex, ReadyJob]]] = []
        finished: list[tuple[int, str]] = []
        for state in states:
            if state.status in TERMINAL:
                finished.append((state.finished_at_ms or 0, state.job_id))
            elif state.status is JobStatus.RUNNING or state.dispatch.offered_attempt:
                self.enter(state, now)
            else:
                # What is due goes the same way: ticks take it to the ready queues in slices, whatever their number.
                queue = self.queue(state.queue)
                waiting.append((state.job_id, _waits_until(state), (queue, queue.ready_job(state))))
                self._watch_start_deadline(state)
        self.waiting.load(waiting)
        self.history.load(finished)

    def move(self, before: JobState | None, after: JobState, now: Now) -> None:
        """A job's row has changed: takes it from where it stood to where it stands."""
        if before is not None:
            if before.status is JobStatus.RUNNING and after.status is JobStatus.RUNNING:
                if after.cancel is not None:
                    self.leases.cancel_requested(after.job_id)
                return
            self.leave(before)
        self.enter(after, now)

    def enter(self, state: JobState, now: Now) -> None:
        """Puts a job that is nowhere into its index."""
        status = state.status
        if status is JobStatus.RUNNING:
            self.queue(state.queue).window.running += 1
            self.placed.pop(state.job_id, None)
            cancelled = state.cancel is not None
            self.leases.grant(state.job_id, state.attempt, state.incarnation or "", now.mono_ms, cancelled=cancelled)
        elif status in TERMINAL:
            self.placed.pop(state.job_id, None)
            self.history.add(state.job_id, state.finished_at_ms or 0)
        elif state.dispatch.offered_attempt:
            self.offered(state, now)
            self._watch_start_deadline(state)
        else:
            queue = self.queue(state.queue)
            until_ms = _waits_until(state)
            if until_ms <= now.wall_ms:
                queue.ready.add(queue.ready_job(state))
            else:
                self.waiting.add(state.job_id, until_ms, (queue, queue.ready_job(state)))
            self._watch_start_deadline(state)

    def leave(self, state: JobState) -> None:
        """Takes a job out of its index."""
        job_id = state.job_id
        queue = self.queue(state.queue)
        if state.status is JobStatus.RUNNING:
            self.leases.end(job_id)
            queue.window.running -= 1
            queue.window.attempt_ended()
            return
        if state.dispatch.offered_attempt:
            self.renewals.discard(job_id)
            queue.window.offered -= 1
        elif not queue.ready.discard(job_id):
            self.waiting.discard(job_id)
        if state.start_deadline_ms is not None:
            self.start_deadlines.discard(job_id)

    def offered(self, state: JobState, now: Now) -> None:
        """A ready job that was taken is on offer from now on."""
        self.queue(state.queue).window.offered += 1
        self.renew(state, now)

    def renew(self, state: JobState, now: Now) -> None:
        """Renews an offer after 1 s, then after 2 s, up to a minute; a new owner counts from when it was made."""
        rules = self._rules
        pause_ms = min(rules.renew_min_ms << min(max(0, state.dispatch.offer - 1), 32), rules.renew_max_ms)
        elapsed_ms = max(0, now.wall_ms - state.dispatch.offered_at_ms)
        self.renewals.add(state.job_id, now.mono_ms + max(0, pause_ms - elapsed_ms), None)

    def _watch_start_deadline(self, state: JobState) -> None:
        if state.start_deadline_ms is not None and state.attempt == 0:
            self.start_deadlines.add(state.job_id, state.start_deadline_ms, None)


def _waits_until(state: JobState) -> int:
    parked_until_ms = state.dispatch.parked_until_ms
    return state.due_at_ms if parked_until_ms is None else max(state.due_at_ms, parked_until_ms)
