"""Which jobs leave as offers: ready queues against windows, and the renewal of offers that nobody answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mainspring.processors.core.errors import MissingSpecError, MissingStateError
from mainspring.processors.core.index.ready_job import ReadyJob
from mainspring.processors.core.indexes import JobIndexes, QueueIndex
from mainspring.processors.core.instants import Now
from mainspring.processors.core.job.evolve import with_dispatch
from mainspring.processors.core.output import Offer, Outbox
from mainspring.processors.core.ports import Rows
from mainspring.schemas.build import quick
from mainspring.schemas.tables import Dispatch, JobState
from mainspring.schemas.work import WorkOffered

__all__ = ["Dispatcher", "QueueStats"]

_new_dispatch = quick(Dispatch)
_new_offer = quick(WorkOffered)

_RENEWED_TOGETHER: Final = 8
"""Renewals before it is looked at what they weigh."""


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Figures of one queue of one partition."""

    ready: int
    offered: int
    running: int
    window: int


class Dispatcher:
    """Offers what is ready, as late and as little as the windows allow."""

    def __init__(self, rows: Rows, indexes: JobIndexes, outbox: Outbox, room_bytes: int) -> None:
        """`room_bytes`: about what one round of offers may weigh, and one of renewals."""
        self._rows = rows
        self._indexes = indexes
        self._outbox = outbox
        self._room_bytes = room_bytes
        self._turn = 0

    def dispatch(self, now: Now, room: int) -> None:
        """Offers at most `room` jobs; queues share it, and take turns at being first."""
        queues = [each for each in self._indexes.queues.values() if each.declared and len(each.ready)]
        if not queues:
            return
        self._turn += 1
        first = self._turn % len(queues)
        until_bytes = self._outbox.spec_bytes + self._room_bytes
        for index, queue in enumerate(queues[first:] + queues[:first]):
            left = len(queues) - index
            room_bytes = -((self._outbox.spec_bytes - until_bytes) // left)
            room -= self._dispatch_queue(queue, now, -(-room // left), room_bytes)

    def _dispatch_queue(self, queue: QueueIndex, now: Now, room: int, room_bytes: int) -> int:
        window = queue.window
        allowed = window.allowance(now.mono_ms)
        outbox, until_bytes = self._outbox, self._outbox.spec_bytes + room_bytes
        offers = 0
        while offers < allowed and offers < room and outbox.spec_bytes < until_bytes:
            job = queue.ready.pop()
            if job is None:
                break
            if self._offer(queue, job, now):
                offers += 1
        window.settle(offers, now.mono_ms, more_waiting=len(queue.ready) > 0, stopped_by_window=offers >= allowed)
        return offers

    def _offer(self, queue: QueueIndex, job: ReadyJob, now: Now) -> bool:
        state = self._rows.state(job.job_id)
        if not self._indexes.take(job, state) or state is None:
            return False
        parked_since_ms = state.dispatch.parked_since_ms
        offered = with_dispatch(
            state,
            _new_dispatch(
                offered_attempt=state.attempt + 1, offer=1, offered_at_ms=now.wall_ms, parked_since_ms=parked_since_ms
            ),
        )
        self._send(queue, offered, now)
        self._indexes.offered(offered, now)
        return True

    def renew_due(self, now: Now, room: int) -> None:
        """Renews what is due, at most `room`; the rest stays due."""
        renewals, outbox = self._indexes.renewals, self._outbox
        until_bytes = outbox.spec_bytes + self._room_bytes
        while room > 0 and outbox.spec_bytes < until_bytes:
            due = renewals.pop_due(now.mono_ms, min(room, _RENEWED_TOGETHER))
            if not due:
                return
            room -= len(due)
            for job_id, _ in due:
                self.renew(job_id, now)

    def renew(self, job_id: str, now: Now) -> None:
        """Offers the same attempt once more, elsewhere: the first offer may lie with a worker that died or is busy."""
        state = self._state(job_id)
        queue = self._indexes.queue(state.queue)
        dispatch = state.dispatch
        renewed = with_dispatch(
            state,
            _new_dispatch(
                offered_attempt=dispatch.offered_attempt,
                offer=dispatch.offer + 1,
                offered_at_ms=now.wall_ms,
                parked_since_ms=dispatch.parked_since_ms,
            ),
        )
        queue.window.unanswered(now.mono_ms)
        if queue.declared:
            self._send(queue, renewed, now)
        self._indexes.renew(renewed, now)

    def _send(self, queue: QueueIndex, state: JobState, now: Now) -> None:
        """Writes the row and the offer that it speaks of."""
        job_id = state.job_id
        spec = self._rows.spec(job_id)
        if spec is None:
            raise MissingSpecError(job_id)
        self._rows.put_state(job_id, state)
        record = _new_offer(
            job_id=job_id,
            attempt=state.dispatch.offered_attempt,
            offer=state.dispatch.offer,
            offered_at_ms=state.dispatch.offered_at_ms,
            due_at_ms=state.due_at_ms,
            spec=spec,
        )
        lane = queue.strategy.lane(state, now.wall_ms)
        self._outbox.offer(Offer(queue.name, lane, record, self._indexes.placed.get(job_id)))

    def _state(self, job_id: str) -> JobState:
        state = self._rows.state(job_id)
        if state is None:
            raise MissingStateError(job_id)
        return state

    def started(self, offered: JobState, now: Now, *, free_slot: bool) -> None:
        """A claim was confirmed; `offered` is the row as it was before."""
        if free_slot:
            answered_ms = now.wall_ms - offered.dispatch.offered_at_ms
            self._indexes.queue(offered.queue).window.claimed_with_room(now.mono_ms, answered_ms)

    def wake_mono_ms(self, now: Now) -> int | None:
        """When a queue may offer: now where a window has room, else at its next probe."""
        instants = [
            now.mono_ms if queue.window.allowance(now.mono_ms) > 0 else queue.window.next_probe_ms()
            for queue in self._indexes.queues.values()
            if queue.declared and len(queue.ready)
        ]
        return min(instants, default=None)

    def stats(self) -> Mapping[str, QueueStats]:
        """Figures of each queue that is declared or has been used."""
        return {
            name: QueueStats(len(queue.ready), queue.window.offered, queue.window.running, int(queue.window.size))
            for name, queue in self._indexes.queues.items()
        }
