"""CPU-bound jobs: processes of the worker's own, one attempt at a time each.

One thread starts, feeds, hears, times and kills all children. Not `ProcessPoolExecutor`: it cannot kill the process of
one job, breaks as a whole when a child dies, and pickles exceptions. The thread lives as long as the executor, because
the kernel kills a child when the *thread* that started it dies.
"""

import contextlib
import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from mainspring.jobs.errors import ProcessDiedError
from mainspring.schemas.common import AttemptError
from mainspring.workers.attempt import Attempt, Outcome, OutcomeKind, StopReason
from mainspring.workers.capture import Capture
from mainspring.workers.executors.child_process import ChildProcess, run_frame
from mainspring.workers.executors.frames import Frame, FrameKind, pack
from mainspring.workers.failures import failed, stopped

__all__ = ["ProcessExecutor"]

log = logging.getLogger(__name__)

CANCEL_GRACE_S = 0.5
"""How long a cancelled job may see `is_cancelled` and clean up before its process is killed."""
IDLE_S = 300.0
"""An idle child is kept so long: its start costs some 200 ms, its memory some 40 MB."""
_READ_BYTES = 1 << 16


class ProcessExecutor:
    """Runs attempts in child processes; the outcomes go to `done`."""

    def __init__(self, done: Callable[[Attempt], None], processes_max: int) -> None:
        self._done = done
        self._processes_max = processes_max
        self._children: list[ChildProcess] = []
        self._waiting: deque[Attempt] = deque()
        self._orders: deque[Callable[[], None]] = deque()
        self._selector = selectors.DefaultSelector()
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.settimeout(0)
        self._wake_writer.settimeout(0)
        self._ending_at: float | None = None
        self._thread = threading.Thread(target=self._serve, name="mainspring-processes", daemon=True)

    def start(self) -> None:
        """Starts the thread; children start with their first attempt."""
        self._selector.register(self._wake_reader, selectors.EVENT_READ, None)
        self._thread.start()

    def submit(self, attempts: Sequence[Attempt]) -> None:
        """Begins attempts; returns at once."""
        self._order(lambda: self._waiting.extend(attempts))

    def stop(self, attempt: Attempt, reason: StopReason) -> None:
        """Kills the attempt's process; a cancelled job sees `is_cancelled` for half a second first."""
        self._order(lambda: self._stop(attempt, reason))

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The children that live."""
        return tuple(child.process.pid for child in tuple(self._children))

    def shutdown(self, patience_s: float) -> None:
        """Lets idle children run their stop hooks, kills what is left after `patience_s`."""
        if not self._thread.is_alive():
            self._close()
            return
        self._order(lambda: self._begin_end(patience_s))
        self._thread.join(patience_s + 5.0)

    # Everything below runs in the executor's own thread.

    def _serve(self) -> None:
        while self._ending_at is None or self._children:
            try:
                self._turn()
            except Exception:  # one broken child must not take the others along
                log.exception("the process executor met an unexpected error and goes on")
                time.sleep(0.1)
        self._close()

    def _close(self) -> None:
        self._selector.close()
        self._wake_reader.close()
        self._wake_writer.close()

    def _turn(self) -> None:
        while self._orders:
            self._orders.popleft()()
        if self._ending_at is not None and not self._children:
            return
        self._assign()
        for key, events in self._selector.select(self._timeout()):
            if key.data is None:
                self._drain_wakes()
                continue
            child, kind = key.data
            if child not in self._children:
                continue
            if kind == "output":
                self._read_output(child)
            else:
                if events & selectors.EVENT_WRITE:
                    self._write(child)
                if events & selectors.EVENT_READ:
                    self._read(child)
        self._kill_due()

    def _order(self, order: Callable[[], None]) -> None:
        self._orders.append(order)
        with contextlib.suppress(OSError):  # full: it is awake anyway; closed: it is gone
            self._wake_writer.send(b"\0")

    def _drain_wakes(self) -> None:
        try:
            while self._wake_reader.recv(4096):
                pass
        except BlockingIOError:
            pass

    def _timeout(self) -> float | None:
        now = time.monotonic()
        times = [child.kill_at for child in self._children if child.kill_at is not None]
        if self._ending_at is not None:
            times.append(self._ending_at)
        times += [child.idle_since + IDLE_S for child in self._children if child.attempt is None]
        return max(0.0, min(times) - now) if times else None

    def _assign(self) -> None:
        while self._waiting and self._ending_at is None:
            child = next((c for c in self._children if c.attempt is None and c.kill_at is None), None)
            if child is None:
                if len(self._children) >= self._processes_max:
                    return
                try:
                    child = self._spawn()
                except OSError as error:
                    self._finish(self._waiting.popleft(), None, error)
                    continue
            attempt = self._waiting.popleft()
            if attempt.stop_reason is not None:
                self._finish(attempt, stopped(attempt.stop_reason))
                continue
            attempt.started_at = time.monotonic()
            attempt.started_at_ms = int(time.time() * 1000)
            attempt.running = True
            child.attempt = attempt
            child.unsent += run_frame(attempt)
            self._write(child)

    def _spawn(self) -> ChildProcess:
        child = ChildProcess()
        self._children.append(child)
        self._selector.register(child.link, selectors.EVENT_READ | selectors.EVENT_WRITE, (child, "link"))
        self._selector.register(child.output, selectors.EVENT_READ, (child, "output"))
        return child

    def _stop(self, attempt: Attempt, reason: StopReason) -> None:
        if attempt.stop_reason is None:
            attempt.stop_reason = reason
        if attempt in self._waiting:
            self._waiting.remove(attempt)
            self._finish(attempt, stopped(attempt.stop_reason))
            return
        for child in self._children:
            if child.attempt is attempt:
                grace = CANCEL_GRACE_S if reason is StopReason.CANCELLED else 0.0
                child.kill_at = min(child.kill_at or float("inf"), time.monotonic() + grace)
                if grace:
                    child.unsent += pack(FrameKind.CANCEL, {"job_id": attempt.job_id})
                    self._write(child)
                return

    def _write(self, child: ChildProcess) -> None:
        try:
            while child.unsent:
                del child.unsent[: child.link.send(child.unsent)]
        except BlockingIOError:
            pass
        except OSError:
            return  # dying: the read side will tell
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if child.unsent else 0)
        self._selector.modify(child.link, events, (child, "link"))

    def _read(self, child: ChildProcess) -> None:
        try:
            data = child.link.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._bury(child)
            return
        for frame in child.frames.feed(data):
            self._hear(child, frame)

    def _hear(self, child: ChildProcess, frame: Frame) -> None:
        kind, head, body = frame
        attempt = child.attempt
        if attempt is None:
            return
        if kind is FrameKind.PROGRESS:
            attempt.context.progress_fraction, attempt.context.note = head["fraction"], head["note"]
            return
        self._read_output(child)  # all it wrote is in the pipe before it answers
        child.attempt = None
        child.idle_since = time.monotonic()
        if attempt.stop_reason is not None:
            self._write(child)
        if child.kill_at is not None:
            child.kill_at = None  # it answered in time; its process is as good as before
        if kind is FrameKind.SUCCEEDED:
            is_late = attempt.stop_reason is StopReason.TIMED_OUT
            result = None if head["none"] else body
            outcome = stopped(StopReason.TIMED_OUT) if is_late else Outcome(kind=OutcomeKind.SUCCEEDED, result=result)
        elif attempt.stop_reason is not None:
            outcome = stopped(attempt.stop_reason)
        else:
            outcome = Outcome(
                kind=OutcomeKind.FAILED,
                error=AttemptError(type=head["type"], message=head["message"], traceback=head["traceback"]),
                retryable=head["retryable"],
                retry_delay_ms=head["delay_ms"],
            )
        self._finish(attempt, outcome)

    def _read_output(self, child: ChildProcess) -> None:
        while True:
            try:
                data = os.read(child.output, _READ_BYTES)
            except BlockingIOError:
                return
            if not data:
                if child.output in {key.fd for key in self._selector.get_map().values()}:
                    self._selector.unregister(child.output)
                return
            attempt = child.attempt
            if attempt is None:
                sys.__stderr__ and sys.__stderr__.write(data.decode("utf-8", "replace"))
            else:
                if not isinstance(attempt.context.output, Capture):
                    attempt.context.output = Capture()
                attempt.context.output.write(data)

    def _kill_due(self) -> None:
        now = time.monotonic()
        for child in list(self._children):
            if child.kill_at is not None and now >= child.kill_at:
                child.kill_at = None
                child.kill()
                self._bury(child)
            elif self._ending_at is not None and now >= self._ending_at:
                child.kill()
                self._bury(child)
            elif child.attempt is None and now - child.idle_since >= IDLE_S and self._ending_at is None:
                self._say_exit(child)

    def _bury(self, child: ChildProcess) -> None:
        self._read_output(child)
        self._children.remove(child)
        for fileobj in (child.link, child.output):
            with contextlib.suppress(KeyError):
                self._selector.unregister(fileobj)
        child.close()
        try:
            code = child.process.wait(1.0)
        except subprocess.TimeoutExpired:  # it closed its link and lives
            child.kill()
            code = child.process.wait()
        attempt = child.attempt
        if attempt is not None:
            child.attempt = None
            how = f"signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exit code {code}"
            self._finish(attempt, None, ProcessDiedError(f"the process that ran the attempt died: {how}"))

    def _finish(self, attempt: Attempt, outcome: Outcome | None, error: BaseException | None = None) -> None:
        if outcome is None:
            outcome = failed(attempt, error or ProcessDiedError("the process that ran the attempt died"))
        attempt.running = False
        if attempt.outcome is None:
            attempt.outcome = outcome
        attempt.returned = True
        self._done(attempt)

    def _begin_end(self, patience_s: float) -> None:
        self._ending_at = time.monotonic() + patience_s
        for attempt in self._waiting:
            self._finish(attempt, stopped(attempt.stop_reason or StopReason.DRAINING))
        self._waiting.clear()
        for child in list(self._children):
            if child.attempt is None:
                self._say_exit(child)
            else:
                child.attempt.stop_reason = child.attempt.stop_reason or StopReason.DRAINING
                child.kill_at = 0.0

    def _say_exit(self, child: ChildProcess) -> None:
        child.kill_at = time.monotonic() + 5.0
        child.unsent += pack(FrameKind.EXIT)
        self._write(child)
