"""What a worker holds, from offer to report: the decisions of the Kafka loop, without Kafka.

Inputs are facts (an offer came, a start was confirmed, an attempt ended, time passed), outputs are records handed to
`send`. One thread uses it, and nothing in it waits.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from mainspring.jobs.context import JobContext
from mainspring.schemas.attempts import AttemptCancelled
from mainspring.schemas.codes import CancelSignal, DeclineReason, ReleaseReason
from mainspring.schemas.common import ConfirmedStart, Priority
from mainspring.schemas.work import WorkOffered
from mainspring.workers import leases
from mainspring.workers.attempt import Attempt, StopReason
from mainspring.workers.capture import captured
from mainspring.workers.config import WorkerConfig
from mainspring.workers.offers import OfferBook
from mainspring.workers.past import PastAttempts
from mainspring.workers.registry import Registry
from mainspring.workers.reports import Reporter

__all__ = ["Executor", "Holdings"]

log = logging.getLogger(__name__)

CLOCK_KNOWN_S = 10.0
"""For so long after a confirmed start its time tells how far the scheduler's clock is from ours."""


class Executor(Protocol):
    """What is used of `JobExecutor`."""

    running: int

    def invoke(self, attempts: Sequence[Attempt]) -> None:
        """Begins attempts."""

    def stop(self, attempt: Attempt, reason: StopReason) -> None:
        """Asks an attempt to stop."""


class Holdings:
    """Offers held, claims awaited, attempts run. `attempts` is all that a heartbeat must name."""

    def __init__(
        self,
        *,
        config: WorkerConfig,
        registry: Registry,
        reporter: Reporter,
        executor: Executor,
        send: Callable[[str, Any], None],
        count: Callable[[str, int], None],
    ) -> None:
        self._config = config
        self._registry = registry
        self._reporter = reporter
        self._executor = executor
        self._send = send
        self._count = count
        self._lease_s = config.lease_ms / 1000
        self._book = OfferBook(held_max=config.held_limit, hold_s=config.hold_ms / 1000)
        self._held_ids: set[str] = set()
        self._reserved = 0
        self._late: list[Attempt] = []
        self._past = PastAttempts()
        self._now = 0.0
        self.attempts: dict[str, Attempt] = {}
        self.awaiting: dict[str, Attempt] = {}
        self.draining = False
        self.clock_ahead_ms: float | None = None
        self._clock_known_until = 0.0

    @property
    def held(self) -> int:
        """Offers that wait for a slot."""
        return len(self._book)

    @property
    def free(self) -> int:
        """Slots that nothing occupies and no claim reserves."""
        return self._config.slots - self._executor.running - self._reserved

    @property
    def busy(self) -> int:
        """Slots that are taken."""
        return self._config.slots - self.free

    # What comes in.

    def offered(self, offers: Sequence[WorkOffered], now: float, *, lanes: Sequence[Priority] | None = None) -> None:
        """Offers were read: claims what finds a slot, holds what may find one, declines the rest.

        `lanes`: on which each was offered, which the queue's strategy decides; without them, its job's own priority.
        """
        for index, offer in enumerate(offers):
            job_id = offer.job_id
            if job_id in self.attempts or job_id in self._held_ids or self._is_old(offer, now):
                self._count("skipped", 1)  # renewed elsewhere, or answered already
            elif self.draining:
                self._decline(job_id, offer.attempt, DeclineReason.DRAINING)
            elif (handler := self._registry.get(offer.spec.name)) is None:
                self._decline(job_id, offer.attempt, DeclineReason.UNKNOWN_NAME)
            else:
                self._held_ids.add(job_id)
                self._book.add(_attempt(offer, handler, offer.spec.priority if lanes is None else lanes[index]), now)
        if offers:
            self._fill(now, free_slot=True)

    def confirmed(self, starts: Iterable[ConfirmedStart], now: float) -> None:
        """Claims were confirmed: runs them, unless it is too late for that."""
        self._now = now
        self._clock_known_until = now + CLOCK_KNOWN_S
        ready: list[Attempt] = []
        for start in starts:
            attempt = self.awaiting.get(start.job_id)
            if attempt is None or attempt.number != start.attempt:
                known = self.attempts.get(start.job_id)
                if known is None or known.number != start.attempt:
                    self._past.over(start.job_id, start.attempt, None, now)
                    self._release(start.job_id, start.attempt)
                continue
            del self.awaiting[start.job_id]
            if self.draining or not leases.may_start(attempt, self._lease_s, now):
                self._hand_back(attempt, now)
            elif attempt.has_slot:
                ready.append(attempt)
            else:
                self._late.append(attempt)
        self._run(ready)
        self._run_late(now)

    def refused(self, job_id: str, attempt_number: int, now: float) -> None:
        """A claim lost. One that was confirmed before keeps running: the refusal was of a repeated claim."""
        self._past.refused(job_id, attempt_number)
        attempt = self.awaiting.get(job_id)
        if attempt is not None and attempt.number == attempt_number:
            self._forget(attempt)
            self._fill(now, free_slot=False)

    def cancelled(self, job_id: str, attempt_number: int, reason: str, now: float) -> None:
        """The scheduler wants an attempt stopped."""
        self._now = now
        attempt = self.attempts.get(job_id)
        if attempt is None or attempt.number != attempt_number:
            return  # over and reported, or never ours: its lease tells the rest
        is_cancel = reason == CancelSignal.CANCEL_REQUESTED
        if job_id in self.awaiting or attempt in self._late:
            self._forget(attempt)
            if is_cancel:
                self._past.over(job_id, attempt.number, attempt.context.due_at_ms, now)
                self._send("attempts", self._never_started(attempt))
            self._fill(now, free_slot=False)
        else:
            self._executor.stop(attempt, StopReason.CANCELLED if is_cancel else StopReason.LEASE_AT_RISK)

    def ended(self, news: Iterable[Attempt], now: float) -> None:
        """Attempts have ended, or returned at last: reports them and fills their slots."""
        self._now = now
        freed = False
        for attempt in news:
            if attempt.outcome is not None and not attempt.reported:
                attempt.reported = True
                self._send("attempts", self._reporter.ended(attempt))
                if self.attempts.get(attempt.job_id) is attempt:
                    del self.attempts[attempt.job_id]
            if attempt.returned:
                freed = True
                output = captured(attempt.context)
                if output is not None:
                    self._send("logs", self._reporter.output(attempt, output))
        if freed:
            self._fill(now, free_slot=False)

    def tick(self, now: float) -> None:
        """Time has passed: declines what was held too long, gives up unanswered claims, stops what is out of lease."""
        self._now = now
        self._past.forget(now)
        for attempt in self._book.expired(now):
            self._held_ids.discard(attempt.job_id)
            self._decline(attempt.job_id, attempt.number, DeclineReason.NO_SLOTS)
        self._give_up(now)
        running = [a for a in self.attempts.values() if a.job_id not in self.awaiting]
        for attempt in leases.lost(running, self._lease_s, now):
            log.warning("job %s: no contact for the length of a lease; the attempt is stopped", attempt.job_id)
            if attempt in self._late:
                self._hand_back(attempt, now)
            else:
                self._executor.stop(attempt, StopReason.LEASE_AT_RISK)
        self._fill(now, free_slot=False)

    def drain(self) -> None:
        """Takes nothing more: what is held is declined, what is confirmed from now on is released."""
        self.draining = True
        for attempt in self._book.clear():
            self._held_ids.discard(attempt.job_id)
            self._decline(attempt.job_id, attempt.number, DeclineReason.DRAINING)
        for attempt in list(self._late):
            self._forget(attempt)
            self._release(attempt.job_id, attempt.number)

    def stop_all(self, reason: StopReason) -> None:
        """Asks everything that runs to stop."""
        for attempt in list(self.attempts.values()):
            if attempt.job_id not in self.awaiting and attempt not in self._late:
                self._executor.stop(attempt, reason)

    def release_rest(self) -> int:
        """Hands back everything but what still runs: the last act of a worker. Returns how many that were.

        Code that nothing could stop has its lease until that runs out, for it would run beside another attempt.
        """
        rest = [attempt for attempt in self.attempts.values() if not attempt.running]
        for attempt in rest:
            self._release(attempt.job_id, attempt.number)
        self.attempts.clear()
        self.awaiting.clear()
        return len(rest)

    # What follows.

    def _fill(self, now: float, *, free_slot: bool) -> None:
        # However a slot has come free: by an end, or because a claim was refused or given up.
        self._run_late(now)
        free = self.free
        if free <= 0 or not len(self._book) or self.draining:
            return
        taken = self._book.take(free)
        for attempt in taken:
            self._held_ids.discard(attempt.job_id)
            attempt.has_slot = True
            attempt.claimed_at = attempt.lease_from = now
            self.attempts[attempt.job_id] = self.awaiting[attempt.job_id] = attempt
            self._send("attempts", self._reporter.claimed(attempt, free_slot=free_slot))
        self._reserved += len(taken)
        self._count("claimed", len(taken))

    def _run(self, ready: list[Attempt]) -> None:
        if not ready:
            return
        for attempt in ready:
            self._past.over(attempt.job_id, attempt.number, attempt.context.due_at_ms, self._now)
            if attempt.has_slot:
                attempt.has_slot = False
                self._reserved -= 1
            if attempt.timeout_ms is not None:
                attempt.context.times_out_at_ms = self._reporter.now_ms() + attempt.timeout_ms
        self._executor.invoke(ready)

    def _run_late(self, now: float) -> None:
        """Confirmed after their slot was given away: they take the next ones, before any offer."""
        for attempt in list(self._late) if self.free > 0 else ():
            if not leases.may_start(attempt, self._lease_s, now):
                self._hand_back(attempt, now)
        if self._late and (free := self.free) > 0:
            ready, self._late = self._late[:free], self._late[free:]
            self._run(ready)

    def _give_up(self, now: float) -> None:
        answer_s, give_up_s = self._config.answer_ms / 1000, self._config.give_up_ms / 1000
        abandoned = []
        for attempt in self.awaiting.values():
            age = now - attempt.claimed_at
            if age < answer_s:
                break  # they are in the order of their claims
            self._unreserve(attempt)
            if age >= give_up_s:
                abandoned.append(attempt)
        for attempt in abandoned:
            self._forget(attempt)
            self._past.given_up(attempt.job_id, attempt.number, now)
            self._release(attempt.job_id, attempt.number)

    def _hand_back(self, attempt: Attempt, now: float) -> None:
        """What was confirmed and is not started."""
        self._forget(attempt)
        self._past.over(attempt.job_id, attempt.number, attempt.context.due_at_ms, now)
        self._release(attempt.job_id, attempt.number)

    def _forget(self, attempt: Attempt) -> None:
        self._unreserve(attempt)
        self.awaiting.pop(attempt.job_id, None)
        self.attempts.pop(attempt.job_id, None)
        if attempt in self._late:
            self._late.remove(attempt)

    def _unreserve(self, attempt: Attempt) -> None:
        if attempt.has_slot:
            attempt.has_slot = False
            self._reserved -= 1

    def _decline(self, job_id: str, attempt: int, reason: DeclineReason) -> None:
        self._send("attempts", self._reporter.declined(job_id, attempt, reason))
        self._count(reason.lower(), 1)

    def _release(self, job_id: str, attempt: int) -> None:
        reason = ReleaseReason.DRAINING if self.draining else ReleaseReason.LEASE_AT_RISK
        self._send("attempts", self._reporter.released(job_id, attempt, reason))

    def _never_started(self, attempt: Attempt) -> AttemptCancelled:
        return AttemptCancelled(
            job_id=attempt.job_id,
            attempt=attempt.number,
            worker_id=self._reporter.worker_id,
            incarnation=self._reporter.incarnation,
            reported_at_ms=self._reporter.now_ms(),
        )

    def _is_old(self, offer: WorkOffered, now: float) -> bool:
        """Whether the attempt is over for this worker, or the offer must have been renewed since."""
        return self._past.covers(offer.job_id, offer.attempt, offer.due_at_ms) or self._is_stale(offer, now)

    def _is_stale(self, offer: WorkOffered, now: float) -> bool:
        """Whether it must have been renewed since.

        Only told while the scheduler's clock is known from a signal of late: a clock that is ahead by minutes, or is
        set by minutes on either side, would else skip everything for ever, and no claim would ever bring a signal.
        """
        if self.clock_ahead_ms is None or now >= self._clock_known_until:
            return False
        age_ms = self._reporter.now_ms() - self.clock_ahead_ms - offer.offered_at_ms
        return age_ms > self._config.stale_offer_ms


def _attempt(offer: WorkOffered, handler: Any, lane: Priority) -> Attempt:
    spec = offer.spec
    context = JobContext(
        job_id=offer.job_id,
        name=spec.name,
        attempt=offer.attempt,
        queue=spec.queue,
        priority=spec.priority,
        tenant=spec.tenant,
        tags=spec.tags,
        due_at_ms=offer.due_at_ms,
        deadline_ms=spec.deadline_ms,
    )
    return Attempt(
        handler=handler,
        context=context,
        lane=lane,
        payload=spec.payload,
        content_type=spec.content_type,
        timeout_ms=spec.timeout_ms,
        may_retry=spec.max_retries > 0,
        offered_at_ms=offer.offered_at_ms,
    )
