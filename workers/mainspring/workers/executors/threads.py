"""Blocking jobs: daemon threads, made as they are needed and kept."""

import contextvars
import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from mainspring.jobs.context import CURRENT
from mainspring.workers.attempt import Attempt, StopReason
from mainspring.workers.failures import failed, stopped, succeeded

__all__ = ["ThreadExecutor"]


class ThreadExecutor:
    """Runs attempts in threads. A thread cannot be stopped: asked to, an attempt sees `is_cancelled` and goes on.

    Not `concurrent.futures`: its threads are waited for at exit, and one that hangs would keep the process for ever.
    """

    def __init__(self, done: Callable[[Attempt], None]) -> None:
        self._done = done
        self._queue: SimpleQueue[Attempt | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._outstanding = 0
        self._threads: list[threading.Thread] = []

    @property
    def thread_count(self) -> int:
        """Threads made so far; never more than attempts at once."""
        return len(self._threads)

    def submit(self, attempts: Sequence[Attempt]) -> None:
        """Begins attempts; returns at once."""
        for attempt in attempts:
            with self._lock:
                self._outstanding += 1
                if self._outstanding > len(self._threads):
                    name = f"mainspring-job-{len(self._threads)}"
                    thread = threading.Thread(target=self._serve, name=name, daemon=True)
                    self._threads.append(thread)
                    thread.start()
            self._queue.put(attempt)

    def stop(self, attempt: Attempt, reason: StopReason) -> None:
        """Nothing can be done but to say so: `JobContext.is_cancelled` is true already."""

    def shutdown(self, patience_s: float) -> None:
        """Ends idle threads; busy ones die with the process."""
        for _ in self._threads:
            self._queue.put(None)
        ends = time.monotonic() + patience_s
        for thread in self._threads:
            thread.join(max(0.0, ends - time.monotonic()) if self._outstanding == 0 else 0.0)

    def _serve(self) -> None:
        while (attempt := self._queue.get()) is not None:
            contextvars.Context().run(self._run, attempt)  # what one job sets, the next must not find
            with self._lock:
                self._outstanding -= 1
            attempt.returned = True
            self._done(attempt)

    @staticmethod
    def _run(attempt: Attempt) -> None:
        attempt.started_at = time.monotonic()
        attempt.started_at_ms = int(time.time() * 1000)
        attempt.running = True
        context = attempt.context
        CURRENT.set(context)
        try:
            if attempt.stop_reason is not None:
                outcome = stopped(attempt.stop_reason)
            else:
                value = attempt.handler.open(attempt.payload, attempt.content_type, context)()
                outcome = succeeded(attempt, value)
        except BaseException as error:  # noqa: BLE001  # SystemExit would end the thread without a word
            outcome = failed(attempt, error)
        attempt.running = False
        if attempt.outcome is None:
            attempt.outcome = outcome
