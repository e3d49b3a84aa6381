"""Running attempts: on an event loop, in threads, in processes, behind one `JobExecutor`."""

import contextlib
import heapq
import itertools
import logging
import time
from collections.abc import Sequence
from functools import partial
from queue import Empty, SimpleQueue

from mainspring.jobs.models import ConcurrencyModel
from mainspring.workers import capture, hooks
from mainspring.workers.attempt import Attempt, OutcomeKind, StopReason
from mainspring.workers.executors.event_loop import EventLoopExecutor
from mainspring.workers.executors.processes import ProcessExecutor
from mainspring.workers.executors.threads import ThreadExecutor
from mainspring.workers.failures import stopped
from mainspring.workers.registry import Registry

__all__ = ["JobExecutor"]

log = logging.getLogger(__name__)

STUBBORN_S = 1.0
"""An async handler that swallows its cancellation is cancelled again after this, and then treated as a thread."""
EXPIRIES_SPARE = 1000


class JobExecutor:
    """Routes attempts to the loop, the threads or the processes, at most `slots` at once, and collects their ends.

    One thread owns it and never waits: `invoke` begins, `collect` returns what has ended and fires due time-outs.
    """

    def __init__(self, registry: Registry, slots: int) -> None:
        if slots < 1:
            raise ValueError(f"slots must be at least 1, not {slots}")
        self.slots = slots
        self.running = 0
        self.peak_running = 0
        self.overdue = 0
        self._registry = registry
        self._ended: SimpleQueue[Attempt] = SimpleQueue()
        self._loop = EventLoopExecutor(self._ended.put)
        self._threads = ThreadExecutor(self._ended.put)
        self._processes = ProcessExecutor(self._ended.put, slots)
        self._expiries: list[tuple[float, int, Attempt]] = []
        self._tie = itertools.count()
        self._ending = contextlib.ExitStack()
        self._is_hooked = False

    def start(self) -> None:
        """Starts the back ends, routes the output and runs the start hooks. Raises what a hook raises."""
        self._registry.prepare()
        capture.install()
        self._ending.callback(capture.uninstall)
        self._loop.start()
        self._processes.start()
        hooks.start(self._registry.apps, self._loop.wait_for)
        self._is_hooked = True

    def invoke(self, attempts: Sequence[Attempt]) -> None:
        """Begins attempts. Raises RuntimeError beyond the slots: the caller counts them."""
        if self.running + len(attempts) > self.slots:
            raise RuntimeError(f"{self.running} of {self.slots} slots are taken, {len(attempts)} attempts are too many")
        self.running += len(attempts)
        self.peak_running = max(self.peak_running, self.running)
        timed = [attempt for attempt in attempts if attempt.timeout_ms is not None]
        if timed:
            now = time.monotonic()
            for attempt in timed:
                self._expire_at(now + (attempt.timeout_ms or 0) / 1000, attempt)
        if all(attempt.handler.model is ConcurrencyModel.ASYNC for attempt in attempts):
            self._loop.submit(attempts)
            return
        for model, backend in self._backends():
            routed = [attempt for attempt in attempts if attempt.handler.model is model]
            if routed:
                backend.submit(routed)

    def stop(self, attempt: Attempt, reason: StopReason) -> None:
        """Asks an attempt to stop; how it ends, `collect` tells. Asking twice changes nothing."""
        if attempt.returned or attempt.stop_reason is not None:
            return
        attempt.stop_reason = reason
        attempt.context.mark_cancelled()
        dict(self._backends())[attempt.handler.model].stop(attempt, reason)
        if attempt.handler.model is ConcurrencyModel.THREAD:
            self._abandon(attempt)
        elif attempt.handler.model is ConcurrencyModel.ASYNC:
            self._expire_at(time.monotonic() + STUBBORN_S, attempt)

    def collect(self, wait_s: float = 0.0) -> list[Attempt]:
        """Attempts with news: an `outcome` to report, or `returned` at last. Waits up to `wait_s` for the first."""
        if self._expiries:
            wait_s = min(wait_s, max(0.0, self._expiries[0][0] - time.monotonic()))
            self._fire(time.monotonic())
        news: list[Attempt] = []
        try:
            news.append(self._ended.get(timeout=wait_s) if wait_s > 0 else self._ended.get_nowait())
            while True:
                news.append(self._ended.get_nowait())
        except Empty:
            pass
        for attempt in news:
            if attempt.returned and attempt.task is not _COUNTED:
                attempt.task = _COUNTED
                self.running -= 1
                if attempt.told_early:
                    self.overdue -= 1
        return news

    def shutdown(self, patience_s: float) -> None:
        """Runs the stop hooks, ends the back ends; what does not end is left to die with the process."""
        with self._ending:
            if self._is_hooked:
                hooks.stop(self._registry.apps, partial(self._loop.wait_for, patience_s=patience_s))
            self._processes.shutdown(patience_s)
            self._loop.shutdown(patience_s)
            self._threads.shutdown(patience_s)

    def _backends(self) -> tuple[tuple[ConcurrencyModel, EventLoopExecutor | ThreadExecutor | ProcessExecutor], ...]:
        return (
            (ConcurrencyModel.ASYNC, self._loop),
            (ConcurrencyModel.THREAD, self._threads),
            (ConcurrencyModel.PROCESS, self._processes),
        )

    def _expire_at(self, when: float, attempt: Attempt) -> None:
        if len(self._expiries) > 2 * self.running + EXPIRIES_SPARE:
            # Jobs end long before their time-outs: without this, a time-out of an hour would keep each for an hour.
            self._expiries = [entry for entry in self._expiries if not entry[2].returned]
            heapq.heapify(self._expiries)
        heapq.heappush(self._expiries, (when, next(self._tie), attempt))

    def _fire(self, now: float) -> None:
        while self._expiries and self._expiries[0][0] <= now:
            attempt = heapq.heappop(self._expiries)[2]
            if attempt.returned:
                continue
            if attempt.stop_reason is None:
                # Counted from when the code began, which may be later than when it was handed over.
                due = (attempt.started_at or now) + (attempt.timeout_ms or 0) / 1000
                if due > now:
                    self._expire_at(due, attempt)
                else:
                    self.stop(attempt, StopReason.TIMED_OUT)
            elif attempt.handler.model is ConcurrencyModel.ASYNC:
                self._loop.stop(attempt, attempt.stop_reason)
                self._abandon(attempt)
                self._expire_at(now + STUBBORN_S, attempt)

    def _abandon(self, attempt: Attempt) -> None:
        """Tells the end of an attempt whose code goes on, unless another attempt might then run beside it."""
        reason = attempt.stop_reason
        told = reason is StopReason.CANCELLED or (reason is StopReason.TIMED_OUT and not attempt.may_retry)
        if not told or attempt.outcome is not None or reason is None:
            return
        attempt.outcome = stopped(reason)
        attempt.told_early = True
        self.overdue += 1
        log.warning(
            "job %s (%s) was %s after %.1f s; its call goes on and keeps its slot until it returns",
            attempt.job_id,
            attempt.handler.name,
            "cancelled" if attempt.outcome.kind is OutcomeKind.CANCELLED else "timed out",
            time.monotonic() - attempt.started_at,
        )
        self._ended.put(attempt)


_COUNTED = object()
