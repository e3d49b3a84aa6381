"""Async jobs: tasks on one event loop in a thread of its own."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from mainspring.jobs.context import CURRENT
from mainspring.workers.attempt import Attempt, StopReason
from mainspring.workers.failures import failed, stopped, succeeded

__all__ = ["EventLoopExecutor"]

log = logging.getLogger(__name__)


class EventLoopExecutor:
    """Runs attempts as tasks. A whole batch costs one wake-up of the loop; the outcomes go to `done`."""

    def __init__(self, done: Callable[[Attempt], None]) -> None:
        self._done = done
        self._loop = asyncio.new_event_loop()
        self._ending = False
        self._thread = threading.Thread(target=self._serve, name="mainspring-loop", daemon=True)

    def start(self) -> None:
        """Starts the loop's thread."""
        self._thread.start()

    def wait_for(self, coroutine: Coroutine[Any, Any, None], patience_s: float | None = None) -> None:
        """Runs a coroutine on the loop and waits for it; for hooks. Raises TimeoutError when patience ends."""
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(patience_s)

    def submit(self, attempts: Sequence[Attempt]) -> None:
        """Begins attempts; returns at once."""
        self._loop.call_soon_threadsafe(self._begin, attempts)

    def stop(self, attempt: Attempt, reason: StopReason) -> None:
        """Cancels an attempt at its next await."""
        self._loop.call_soon_threadsafe(self._cancel, attempt, reason)

    def shutdown(self, patience_s: float) -> None:
        """Cancels what still runs, and ends the loop. A handler that blocks the loop is left behind."""
        if not self._thread.is_alive():
            self._loop.close()
            return
        self._loop.call_soon_threadsafe(self._end)
        self._thread.join(patience_s)
        if self._thread.is_alive():
            log.warning("the event loop did not end within %.1f s: a handler blocks it", patience_s)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            while not self._ending:
                # A handler may stop the loop, or raise through it: the other jobs on it go on.
                with contextlib.suppress(KeyboardInterrupt, SystemExit):
                    self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def _begin(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            attempt.task = self._loop.create_task(self._run(attempt))

    def _cancel(self, attempt: Attempt, reason: StopReason) -> None:
        if attempt.stop_reason is None:
            attempt.stop_reason = reason
        task = attempt.task
        # A task that has not begun yet finds the reason itself; cancelling it would skip its very first line.
        if isinstance(task, asyncio.Task) and attempt.running:
            task.cancel()

    async def _run(self, attempt: Attempt) -> None:
        attempt.running = True
        attempt.started_at = time.monotonic()
        attempt.started_at_ms = int(time.time() * 1000)
        context = attempt.context
        CURRENT.set(context)
        try:
            if attempt.stop_reason is not None:
                outcome = stopped(attempt.stop_reason)
            else:
                value = await attempt.handler.open(attempt.payload, attempt.content_type, context)()
                outcome = succeeded(attempt, value)
        except BaseException as error:  # noqa: BLE001  # SystemExit must not end the loop of all other jobs
            outcome = failed(attempt, error)
        attempt.running = False
        attempt.task = None
        if attempt.outcome is None:
            attempt.outcome = outcome
        attempt.returned = True
        self._done(attempt)

    def _end(self) -> None:
        self._ending = True
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            gathered = asyncio.gather(*tasks, return_exceptions=True)
            gathered.add_done_callback(lambda _: self._loop.stop())
        else:
            self._loop.stop()
