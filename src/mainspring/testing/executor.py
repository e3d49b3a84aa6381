"""Runs the handlers of one worker on virtual time, with the rules of the real executors.

Async jobs are tasks of one loop; blocking jobs are threads of which one runs at a time; jobs with a process of their
own run as blocking ones do and can be killed: then their code stops where it stands.
"""

import asyncio
import contextvars
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final

from mainspring.jobs.context import CURRENT, JobContext
from mainspring.jobs.models import ConcurrencyModel
from mainspring.testing.clock import VirtualClock
from mainspring.testing.handler_threads import HandlerThread, HandlerThreads, Unwound
from mainspring.testing.virtual_loop import VirtualLoop
from mainspring.workers.attempt import Attempt, Outcome, StopReason
from mainspring.workers.failures import failed, stopped, succeeded

__all__ = ["Stage", "VirtualExecutor"]

STUBBORN_US: Final = 1_000_000
"""An async handler that swallows its cancellation is cancelled again after this, and then treated as a thread."""
_OWN_PACKAGE: Final = __name__.rpartition(".")[0]


@dataclass(slots=True, kw_only=True)
class Stage:
    """What all workers of a kit share: one loop, the threads, and how long handlers take beyond their own waiting."""

    clock: VirtualClock
    threads: HandlerThreads
    make_loop: Callable[[], VirtualLoop]
    takes_s: dict[str, float]
    contexts: dict[str, JobContext]
    """The latest context of each job, for its progress."""
    _loop: VirtualLoop | None = None

    @property
    def loop(self) -> VirtualLoop:
        """The loop, made when first needed: a test of blocking jobs has none."""
        if self._loop is None:
            self._loop = self.make_loop()
        return self._loop

    @property
    def made_loop(self) -> VirtualLoop | None:
        """The loop, if there is one."""
        return self._loop

    @property
    def next_us(self) -> int | None:
        """When the next piece of code wants to go on."""
        instants = (self.threads.next_us, None if self._loop is None else self._loop.next_us)
        return min((at_us for at_us in instants if at_us is not None), default=None)

    @property
    def has_work(self) -> bool:
        """Whether code can run now."""
        return self.threads.has_fresh or (self._loop is not None and self._loop.is_stirred)

    def pump(self) -> bool:
        """Runs what can run now. Returns whether anything could."""
        ran = self._loop is not None and self._loop.pump()
        return self.threads.pump() or ran


@dataclass(slots=True)
class _Run:
    """An attempt whose code has begun. `due_us`: when it times out, or is cancelled once more."""

    thread: HandlerThread | None
    due_us: int | None


class VirtualExecutor:
    """The executor of one worker: what `Holdings` asks for, and `collect`."""

    def __init__(self, stage: Stage) -> None:
        self.running = 0
        self._stage = stage
        self._clock = stage.clock
        self._runs: dict[Attempt, _Run] = {}
        self._ended: list[Attempt] = []

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Attempts whose code runs."""
        return tuple(self._runs)

    @property
    def next_us(self) -> int | None:
        """When the next time-out is due."""
        return min((run.due_us for run in self._runs.values() if run.due_us is not None), default=None)

    def invoke(self, attempts: Sequence[Attempt]) -> None:
        """Begins attempts."""
        for attempt in attempts:
            self._stage.contexts[attempt.job_id] = attempt.context
            self.running += 1
            attempt.running = True
            attempt.started_at = self._clock.seconds
            attempt.started_at_ms = self._clock.wall_ms
            due_us = None if attempt.timeout_ms is None else self._clock.now_us + attempt.timeout_ms * 1000
            run = self._runs[attempt] = _Run(None, due_us)
            context = contextvars.Context()
            if attempt.handler.model is ConcurrencyModel.ASYNC:
                attempt.task = self._stage.loop.create_task(self._run_async(attempt), context=context)
            else:
                run.thread = self._stage.threads.start(lambda a=attempt, c=context: c.run(self._run_blocking, a))  # type: ignore[misc]  # mypy infers no types for the defaults of a lambda

    def stop(self, attempt: Attempt, reason: StopReason) -> None:
        """Asks an attempt to stop; how it ends, `collect` tells. Asking twice changes nothing."""
        run = self._runs.get(attempt)
        if run is None or attempt.stop_reason is not None:
            return
        attempt.stop_reason = reason
        attempt.context.mark_cancelled()
        run.due_us = None
        if attempt.handler.model is ConcurrencyModel.ASYNC:
            self._cancel(attempt)
            run.due_us = self._clock.now_us + STUBBORN_US
        elif attempt.handler.model is ConcurrencyModel.THREAD:
            self._abandon(attempt)
        else:
            self._freeze(attempt, run)
            self._end(attempt, stopped(reason))

    def collect(self) -> list[Attempt]:
        """Attempts with news: an `outcome` to report, or `returned` at last. Fires due time-outs."""
        now_us = self._clock.now_us
        for attempt, run in tuple(self._runs.items()):
            if run.due_us is None or run.due_us > now_us:
                continue
            if attempt.stop_reason is None:
                self.stop(attempt, StopReason.TIMED_OUT)
            else:
                self._cancel(attempt)
                self._abandon(attempt)
                run.due_us = now_us + STUBBORN_US
        ended, self._ended = self._ended, []
        return ended

    def freeze(self) -> None:
        """The process has died: no code of it runs any further."""
        runs, self._runs = self._runs, {}
        self.running = 0
        self._ended.clear()
        for attempt, run in runs.items():
            self._freeze(attempt, run)

    def _freeze(self, attempt: Attempt, run: _Run) -> None:
        if run.thread is None:
            self._stage.loop.freeze(attempt.context)
        else:
            self._stage.threads.freeze(run.thread)

    @staticmethod
    def _cancel(attempt: Attempt) -> None:
        if isinstance(attempt.task, asyncio.Task):
            attempt.task.cancel()

    def _abandon(self, attempt: Attempt) -> None:
        """Tells the end of an attempt whose code goes on, unless another attempt might then run beside it."""
        reason = attempt.stop_reason
        told = reason is StopReason.CANCELLED or (reason is StopReason.TIMED_OUT and not attempt.may_retry)
        if told and attempt.outcome is None and reason is not None:
            attempt.outcome = stopped(reason)
            attempt.told_early = True
            self._ended.append(attempt)

    async def _run_async(self, attempt: Attempt) -> None:
        CURRENT.set(attempt.context)
        takes_s = self._takes_s(attempt)
        try:
            if attempt.stop_reason is not None:
                outcome = stopped(attempt.stop_reason)
            else:
                call = attempt.handler.open(attempt.payload, attempt.content_type, attempt.context)
                if takes_s:
                    await asyncio.sleep(takes_s)
                outcome = succeeded(attempt, await call())
        except BaseException as error:  # noqa: BLE001  # SystemExit must not end the loop of all other jobs
            outcome = failed(attempt, _without_own_frames(error))
        attempt.task = None
        self._end(attempt, outcome)

    def _run_blocking(self, attempt: Attempt) -> None:
        CURRENT.set(attempt.context)
        takes_s = self._takes_s(attempt)
        try:
            if attempt.stop_reason is not None:
                outcome = stopped(attempt.stop_reason)
            else:
                call = attempt.handler.open(attempt.payload, attempt.content_type, attempt.context)
                thread = self._runs[attempt].thread
                if takes_s and thread is not None:
                    thread.sleep(takes_s)
                outcome = succeeded(attempt, call())
        except Unwound:
            return
        except BaseException as error:  # noqa: BLE001  # SystemExit would end the thread without a word
            outcome = failed(attempt, _without_own_frames(error))
        self._end(attempt, outcome)

    def _end(self, attempt: Attempt, outcome: Outcome) -> None:
        if self._runs.pop(attempt, None) is None:
            return  # its process has died
        self.running -= 1
        attempt.running = False
        attempt.returned = True
        if attempt.outcome is None:
            attempt.outcome = outcome
        self._ended.append(attempt)

    def _takes_s(self, attempt: Attempt) -> float:
        takes: Mapping[str, float] = self._stage.takes_s
        return takes.get(attempt.handler.name, 0.0)


def _without_own_frames(error: BaseException) -> BaseException:
    trace: TracebackType | None = error.__traceback__
    while trace is not None and str(trace.tb_frame.f_globals.get("__name__", "")).startswith(_OWN_PACKAGE):
        trace = trace.tb_next
    return error.with_traceback(trace)
