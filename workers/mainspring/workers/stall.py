"""A side process that renews leases while a handler holds the interpreter.

A handler that keeps the GIL (a long regular expression, a C extension) silences every thread of its worker, the loop
that sends heartbeats included: without help, all other attempts of the worker would lose their leases. The side process
is told what is held, and speaks up when its worker falls silent, is not stopped, and not for longer than `stall_ms`.
"""

import json
import logging
import os
import subprocess
import sys
import time
from collections import deque
from typing import Any

from mainspring.workers import leases
from mainspring.workers.attempt import Attempt

__all__ = ["FEED_S", "StallGuard"]

log = logging.getLogger(__name__)

FEED_S = 0.5
"""Changes are told this late at most; attempts younger than this are not worth it."""
RESTART_S = 30.0
_MAIN = f"import sys; from {__package__}.stall_process import main; sys.exit(main(int(sys.argv[1])))"
_FEEDS_MAX = 64

Held = list[tuple[int, list[Attempt]]]


class StallGuard:
    """The worker's end of the side process. It never blocks: what the pipe does not take waits or is replaced."""

    def __init__(self, setup: dict[str, Any], lease_s: float) -> None:
        self._setup = json.dumps(setup).encode() + b"\n"
        self._lease_s = lease_s
        self._process: subprocess.Popen[bytes] | None = None
        self._unsent = b""
        self._heard = b""
        self._started_at = 0.0
        self._told: tuple[tuple[str, int], ...] = ()
        self._feeds: deque[tuple[int, list[Attempt]]] = deque(maxlen=_FEEDS_MAX)
        self._number = 0

    @staticmethod
    def works_here() -> bool:
        """Whether the side process can tell a busy worker from a stopped one: on Linux, by /proc."""
        return sys.platform == "linux"

    def start(self) -> None:
        """Starts the side process. It dies with the thread that calls this, so that must be the worker's own."""
        self._started_at = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _MAIN, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdin is not None  # both are pipes
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        os.set_blocking(self._process.stdout.fileno(), False)
        self._unsent, self._heard, self._told = self._setup, b"", (("", -1),)
        self._write()

    def feed(self, held: Held, *, always: bool) -> None:
        """Tells what is held, by partition; unless `always`, only when it has changed."""
        told = tuple((attempt.job_id, attempt.number) for _, attempts in held for attempt in attempts)
        if not always and told == self._told:
            return
        if self._process is None or self._process.poll() is not None:
            self._restart()
            return
        if self._unsent:
            self._write()
            if self._unsent:
                return  # it is behind: the next feed tells the newest anyway
        self._told = told
        self._number += 1
        self._feeds.append((self._number, [attempt for _, attempts in held for attempt in attempts]))
        lists = [[partition, [_line(attempt) for attempt in attempts]] for partition, attempts in held]
        self._unsent = json.dumps({"number": self._number, "held": lists}).encode() + b"\n"
        self._write()

    def turn(self) -> None:
        """Hears which renewals have arrived while the worker was silent."""
        if self._process is None or self._process.stdout is None:
            return
        try:
            data = self._process.stdout.read() or b""
        except OSError:
            return
        if not data:
            return
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            number, sent_at, arrived_at = json.loads(line)
            for feed, attempts in self._feeds:
                if feed == number:
                    leases.renew(attempts, sent_at, arrived_at, self._lease_s)

    def close(self) -> None:
        """Ends the side process: nobody renews the leases of a worker that ends."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    try:
                        pipe.close()
                    except OSError:
                        log.debug("the side process was gone before its pipe")
            process.wait()

    def _restart(self) -> None:
        if time.monotonic() - self._started_at >= RESTART_S:
            log.warning("the side process that renews leases has died; starting another")
            self.close()
            self.start()

    def _write(self) -> None:
        assert self._process is not None  # callers have looked
        assert self._process.stdin is not None
        try:
            written = os.write(self._process.stdin.fileno(), self._unsent)
        except BlockingIOError:
            return
        except OSError:
            self._unsent = b""  # it died; the next feed starts another
            return
        self._unsent = self._unsent[written:]


def _line(attempt: Attempt) -> list[Any]:
    context = attempt.context
    return [attempt.job_id, attempt.number, context.progress_fraction, context.note]
