"""Where each job of a partition stands: every unfinished job is in exactly one index, derived from its row.

waiting    not due yet, or parked      by wall time
ready      due, per queue              by the queue's order
offered    on offer                    by the monotonic time of its renewal
running    a confirmed attempt         by its lease

With an index store, the table beside the rows holds what a later owner needs to build these without reading the rows
(see `index.entries`), and of what waits, is ready or has ended only the first are in memory. A job that became ready
keeps its entry by time until it is offered: where it stands in its lane is of use to this owner only.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final

from mainspring.processors.core.due import DueIndex
from mainspring.processors.core.history import History
from mainspring.processors.core.index.entries import (
    COUNTS_KEY,
    DEADLINE_PREFIX,
    IN_FLIGHT_KEY,
    decode_counts,
    encode_counts,
    encode_ids,
    is_in_flight,
    start_deadline_of,
)
from mainspring.processors.core.index.keys import TimeKey
from mainspring.processors.core.index.lanes import LaneStore
from mainspring.processors.core.index.orders import (
    QueueOrder,
    Waiting,
    decode_waiting,
)
from mainspring.processors.core.index.timed import TimedIndex
from mainspring.processors.core.index.waiting import WaitingIndex
from mainspring.processors.core.instants import Now
from mainspring.processors.core.job.waiting import waits_until_ms
from mainspring.processors.core.leases import LeaseTable
from mainspring.processors.core.ports import IndexRow, IndexStore
from mainspring.processors.core.ready import ReadyJob, ReadyQueue
from mainspring.processors.core.rules import QueueRules, Rules
from mainspring.processors.core.window import DispatchWindow
from mainspring.schemas.common import JobStatus
from mainspring.schemas.tables import JobState

__all__ = ["WINDOW_JOBS", "JobIndexes", "QueueIndex"]

WINDOW_JOBS: Final = 10_000
"""Jobs that each index of a partition keeps in memory, where the others are in the table."""


_FIRST_DUE: Final = 250
_MOST_DUE: Final = 2_000
"""Jobs that fall due in one tick, at first and at most."""

_AT_ONCE: Final[TimeKey] = (1, 0, "")
"""Behind all that waits for nothing, and before everything else."""

_WAIT: Final = (JobStatus.PENDING, JobStatus.RETRY_WAIT)


class QueueIndex:
    """The ready jobs and the window of one queue."""

    __slots__ = ("declared", "name", "order", "ready", "strategy", "window")

    def __init__(self, name: str, rules: Rules, lanes: LaneStore | None = None) -> None:
        declared = rules.queues.get(name)
        queue = declared or QueueRules()
        self.name = name
        self.declared = declared is not None
        self.strategy = queue.strategy
        self.order = QueueOrder(name, queue)
        self.ready = ReadyQueue(queue.tenant_weights, lanes)
        self.window = DispatchWindow(rules)


class JobIndexes:
    """All indexes of a partition, kept in step with its rows by `move`."""

    def __init__(
        self,
        rules: Rules,
        state_of: Callable[[str], JobState | None],
        store: IndexStore | None = None,
        window_jobs: int = WINDOW_JOBS,
    ) -> None:
        self._rules = rules
        self._state_of = state_of
        self._store = store
        self._lanes = None if store is None else LaneStore(store, window_jobs)
        self.queues: dict[str, QueueIndex] = {}
        self.waiting = WaitingIndex(self._decode_waiting, store=store, window=window_jobs)
        self.start_deadlines: TimedIndex[None] = TimedIndex(
            DEADLINE_PREFIX, lambda _: b"", lambda _key, _data: None, store=store, window=window_jobs
        )
        self.renewals: DueIndex[None] = DueIndex()
        self.leases = LeaseTable(rules.lease_ms)
        self.placed: dict[str, int] = {}
        """Work partition of the last offer of jobs that have not started, where the shell has told it."""
        self.history = History(rules.history_share, rules.history_max_age_ms, store=store, window=window_jobs)
        # All at once and in this order, so that the turns of queues do not depend on which was heard of first.
        for name in rules.queues:
            self.queue(name)
        self._unfiled: dict[str, tuple[QueueIndex, ReadyJob]] = {}
        """Jobs that were ready at once and have no entry by time yet: most are offered before they need one."""
        self._due_room = _FIRST_DUE
        self._counts = (0, 0, 0)
        self._has_turned = False
        """Whether the open transaction has put a job in flight, or taken one out of it."""

    def queue(self, name: str) -> QueueIndex:
        """The index of a queue, made when first asked for."""
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = QueueIndex(name, self._rules, self._lanes)
        return queue

    @property
    def not_ready(self) -> int:
        """Jobs that are not due yet, or parked."""
        ready = sum(len(queue.ready) for queue in self.queues.values())
        return max(0, len(self.waiting) + len(self._unfiled) - ready)

    def load(self, states: Iterable[JobState], now: Now) -> None:
        """Builds all indexes from rows: fresh leases, and windows of the starting size around what is in flight.

        With an index store, the rows of what is in flight are enough: all else is read from there when it is needed.
        """
        waiting: list[Waiting] = []
        deadlines: list[tuple[TimeKey, None]] = []
        finished: list[TimeKey] = []
        for state in states:
            if is_in_flight(state):
                self._fly(state, now)
            elif self._store is not None:
                continue
            elif state.status >= JobStatus.COMPLETED:
                finished.append((state.finished_at_ms or 0, state.seq, state.job_id))
            else:
                # What is due goes the same way: ticks take it to the ready queues in slices, whatever their number.
                order = self.queue(state.queue).order
                job = order.ready_job(state)
                waiting.append((state.queue, order.tag, job))
            deadline_ms = start_deadline_of(state)
            if deadline_ms is not None:
                deadlines.append(((deadline_ms, state.seq, state.job_id), None))
        if self._store is None:
            self.waiting.load(waiting)
            self.start_deadlines.load(deadlines)
            self.history.load(finished)
        else:
            found = self._store.scan(COUNTS_KEY, b"", 1)
            counts = decode_counts(found[0][1] if found else None)
            self._counts = counts
            self.waiting.open(counts[0])
            self.start_deadlines.open(counts[1])
            self.history.open(counts[2])

    def move(self, before: JobState | None, after: JobState, now: Now) -> None:
        """A job's row has changed: takes it from where it stood to where it stands."""
        if before is None:
            # A submit: by far the most of what enters, and never in flight.
            if after.status is JobStatus.PENDING:
                self._wait(after, now)
            else:
                self._enter(after, now)
        elif before.status is JobStatus.RUNNING:
            if after.status is JobStatus.RUNNING:
                if after.cancel is not None:
                    self.leases.cancel_requested(after.job_id)
                return
            self._land(before)
            self._enter(after, now)
        else:
            self._leave(before)
            self._enter(after, now)
        if after.start_deadline_ms is not None:
            self._watch(None if before is None else start_deadline_of(before), after)

    def take(self, job: ReadyJob, state: JobState | None) -> bool:
        """Takes the entry of a ready job that has come up; says whether it stands where its row says.

        The row is right, and an index only a hint: where the row waits elsewhere, it is seen to that it comes up there.
        """
        if self._unfiled.pop(job.job_id, None) is not None:
            return True
        self.waiting.remove(job)
        if state is None or state.dispatch.offered_attempt or state.status not in _WAIT:
            return False
        if waits_until_ms(state) == job.at_ms:
            return True
        queue = self.queue(state.queue)
        anew = queue.order.ready_job(state)
        if not self.waiting.holds(anew):
            queue.ready.add(anew)
        return False

    def offered(self, state: JobState, now: Now) -> None:
        """A ready job that was taken is on offer from now on."""
        self._has_turned = True
        self.queue(state.queue).window.offered += 1
        self.renew(state, now)

    def renew(self, state: JobState, now: Now) -> None:
        """Renews an offer after 1 s, then after 2 s, up to a minute; a new owner counts from when it was made."""
        rules = self._rules
        pause_ms = min(rules.renew_min_ms << min(max(0, state.dispatch.offer - 1), 32), rules.renew_max_ms)
        elapsed_ms = max(0, now.wall_ms - state.dispatch.offered_at_ms)
        self.renewals.add(state.job_id, now.mono_ms + max(0, pause_ms - elapsed_ms), None)

    def not_running(self) -> tuple[list[str], Iterator[str]]:
        """The ids of all jobs that wait, are ready or are on offer: those in memory, and then those in the table.

        Those in the table that wait for nothing are left out; of the others there see `TimedIndex.names`.
        """
        ready = chain.from_iterable(queue.ready for queue in self.queues.values())
        if self._store is None:
            return list(dict.fromkeys(chain(self.renewals, ready, self.waiting.names(_AT_ONCE)))), iter(())
        return list(dict.fromkeys(chain(self.renewals, self._unfiled))), self.waiting.names(_AT_ONCE)

    def take_due(self, now_ms: int) -> None:
        """Takes jobs whose time has come to the lanes of their queues, the important first.

        Of a herd a few at first, and twice as many each time while there are more: its first jobs are on offer before
        the others have been moved.
        """
        room = self._due_room
        due = self.waiting.pop_due(now_ms, room)
        self._due_room = min(2 * room, _MOST_DUE) if len(due) == room else _FIRST_DUE
        for queue, _, job in due:
            ready = self.queue(queue).ready
            other = ready.find(job.job_id)
            if other is not None:
                # Two entries of one job: one of them is not true.
                state = self._state_of(job.job_id)
                is_true = state is not None and waits_until_ms(state) == job.at_ms
                self.waiting.remove(other if is_true else job)
                if not is_true:
                    continue
            ready.add(job)

    def drain(self) -> list[IndexRow]:
        """What the open transaction has changed in the table, to be written together with its rows."""
        if self._store is None:
            return []
        self._file()
        rows = self.waiting.drain()
        rows += self.start_deadlines.drain()
        rows += self.history.drain()
        if self._has_turned:
            self._has_turned = False
            rows.append((IN_FLIGHT_KEY, encode_ids([*self.renewals, *self.leases])))
        counts = len(self.waiting), len(self.start_deadlines), len(self.history)
        if counts != self._counts:
            self._counts = counts
            rows.append((COUNTS_KEY, encode_counts(counts)))
        return rows

    def _file(self) -> None:
        """Gives entries to the jobs that were ready at once and are so still."""
        for queue, job in self._unfiled.values():
            self.waiting.add_taken((queue.name, queue.order.tag, job))
        self._unfiled = {}

    def _enter(self, state: JobState, now: Now) -> None:
        """Puts a job that is nowhere into its index."""
        if state.status >= JobStatus.COMPLETED:
            self.placed.pop(state.job_id, None)
            self.history.add(state.job_id, state.seq, state.finished_at_ms or 0)
        elif is_in_flight(state):
            self._has_turned = True
            self._fly(state, now)
        else:
            self._wait(state, now)

    def _wait(self, state: JobState, now: Now) -> None:
        queue = self.queue(state.queue)
        job = queue.order.ready_job(state)
        if job.at_ms > now.wall_ms:
            self.waiting.add((state.queue, queue.order.tag, job))
        else:
            self._unfiled[job.job_id] = queue, job
            queue.ready.add(job)

    def _fly(self, state: JobState, now: Now) -> None:
        queue = self.queue(state.queue)
        if state.status is not JobStatus.RUNNING:
            queue.window.offered += 1
            self.renew(state, now)
            return
        queue.window.running += 1
        self.placed.pop(state.job_id, None)
        cancelled = state.cancel is not None
        self.leases.grant(state.job_id, state.attempt, state.incarnation or "", now.mono_ms, cancelled=cancelled)

    def _land(self, state: JobState) -> None:
        """Takes a job out that was running."""
        self._has_turned = True
        self.leases.end(state.job_id)
        window = self.queue(state.queue).window
        window.running -= 1
        window.attempt_ended()

    def _leave(self, state: JobState) -> None:
        """Takes a job out of its index that was not running."""
        queue = self.queue(state.queue)
        if state.dispatch.offered_attempt:
            self._has_turned = True
            self.renewals.discard(state.job_id)
            queue.window.offered -= 1
            return
        unfiled = self._unfiled.pop(state.job_id, None)
        if unfiled is not None:
            queue.ready.discard(unfiled[1])
            return
        job = queue.order.ready_job(state)
        if not self.waiting.remove(job):
            queue.ready.discard(job)

    def _watch(self, watched_ms: int | None, state: JobState) -> None:
        """Sees to the start deadline of a job that was watched until `watched_ms`."""
        deadline_ms = start_deadline_of(state)
        if deadline_ms == watched_ms:
            return
        if watched_ms is not None:
            self.start_deadlines.remove((watched_ms, state.seq, state.job_id))
        if deadline_ms is not None:
            self.start_deadlines.add((deadline_ms, state.seq, state.job_id), None)

    def _decode_waiting(self, priority: int, key: TimeKey, data: bytes) -> Waiting:
        return decode_waiting(priority, key, data, self._order_anew, self._tag_of)

    def _tag_of(self, queue: str) -> int:
        return self.queue(queue).order.tag

    def _order_anew(self, job_id: str) -> Waiting | None:
        """The place of a job in the order that its queue has now."""
        state = self._state_of(job_id)
        if state is None:
            return None
        order = self.queue(state.queue).order
        return state.queue, order.tag, order.ready_job(state)
