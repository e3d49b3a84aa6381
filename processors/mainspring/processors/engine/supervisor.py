"""Several processes as one: started again when they die, told to stop together."""

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType

from mainspring.telemetry import get_logger

__all__ = ["Backoff", "supervise"]

_log = get_logger(__name__)

_KILL_AFTER_S = 30.0
_LOOK_EVERY_S = 0.1
_QUIET_S = 30.0
_FIRST_DELAY_S = 0.1
_MAX_DELAY_S = 10.0


@dataclass(slots=True)
class Backoff:
    """How long to wait before the next start: not at all after a long life, twice as long after each short one."""

    delay_s: float = 0.0

    def after_life_of(self, lived_s: float) -> float:
        """The pause before the next start."""
        if lived_s >= _QUIET_S:
            self.delay_s = 0.0
        pause_s = self.delay_s
        self.delay_s = min(_MAX_DELAY_S, max(_FIRST_DELAY_S, self.delay_s * 2))
        return pause_s


@dataclass(slots=True)
class _Child:
    command: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    started_at_s: float = 0.0
    start_at_s: float = 0.0
    backoff: Backoff = field(default_factory=Backoff)

    def start(self, now_s: float) -> None:
        self.process = subprocess.Popen(self.command)
        self.started_at_s = now_s


def supervise(
    processes: int,
    command: Sequence[str],
    *,
    fence: Callable[[int], None] | None = None,
    permanent: frozenset[int] = frozenset(),
    stop: threading.Event | None = None,
) -> int:
    """Runs `command` as `processes` children and returns when all have ended after SIGTERM, SIGINT or `stop`.

    A child that dies is fenced at once (`fence` with its process id: its open transaction must not hold up the others
    until it times out) and started again, at once after a long life and with growing pauses after short ones; one
    that exits with 0 without being told to, too. An exit code in `permanent` is not worth a new start: everything is
    stopped.

    Returns 0, or the first permanent exit code. In the main thread it takes SIGTERM and SIGINT over while it runs.
    """
    stopping = stop or threading.Event()
    children = [_Child(command) for _ in range(processes)]
    restore = _catch_signals(stopping)
    code = 0
    try:
        while not stopping.is_set():
            for child in children:
                ended = _look_after(child, fence)
                if ended is not None and ended in permanent:
                    code = ended
                    stopping.set()
                    break
            stopping.wait(_LOOK_EVERY_S)
    finally:
        _stop_all(children)
        restore()
    return code


def _look_after(child: _Child, fence: Callable[[int], None] | None) -> int | None:
    """Starts the child when it is time; its exit code when it has just died."""
    now_s = time.monotonic()
    if child.process is None:
        if now_s >= child.start_at_s:
            child.start(now_s)
        return None
    code = child.process.poll()
    if code is None:
        return None
    pid, child.process = child.process.pid, None
    pause_s = child.backoff.after_life_of(now_s - child.started_at_s)
    child.start_at_s = now_s + pause_s
    _log.error("a process died and is started again", pid=pid, exit_code=code, pause_s=pause_s)
    if fence is not None:
        try:
            fence(pid)
        except Exception as error:  # noqa: BLE001 - whatever it is, the children that live come first
            # The new process does the same at its start; this only saves the time until then.
            _log.warning("a dead process could not be fenced", pid=pid, why=str(error))
    return code


def _stop_all(children: Sequence[_Child]) -> None:
    """SIGTERM to all, and SIGKILL to whoever takes too long."""
    alive = [child.process for child in children if child.process is not None]
    for process in alive:
        process.send_signal(signal.SIGTERM)
    deadline_s = time.monotonic() + _KILL_AFTER_S
    for process in alive:
        try:
            process.wait(max(0.0, deadline_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            _log.exception("a process did not stop in time and is killed", pid=process.pid)
            process.kill()
            process.wait()


def _catch_signals(stopping: threading.Event) -> Callable[[], None]:
    """Lets SIGTERM and SIGINT set `stopping`; returns what puts the old handlers back."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    return restore
