"""Start child processes that end with this one, from whichever thread.

The kernel's parent-death signal follows the *thread* that started the child. So one thread, which lives as long as the
process, starts them all: a broker started by a short-lived thread would die with that thread.
"""

from __future__ import annotations

import functools
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import IO

_GUARD = Path(__file__).with_name("guard.py")


class _Spawner:
    """The one thread that starts guarded children."""

    def __init__(self) -> None:
        self._orders: queue.SimpleQueue[tuple[list[str], IO[bytes], Future[subprocess.Popen[bytes]]]] = (
            queue.SimpleQueue()
        )
        # A daemon: it must be the last to go, and nothing waits for it.
        threading.Thread(target=self._serve, name="local-spawner", daemon=True).start()

    def _serve(self) -> None:
        while True:
            command, output, answer = self._orders.get()
            try:
                answer.set_result(_popen(command, output))
            except OSError as error:
                answer.set_exception(error)

    def start(self, command: list[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
        answer: Future[subprocess.Popen[bytes]] = Future()
        self._orders.put((command, output, answer))
        return answer.result()


@functools.cache
def _spawner_of(_process: int) -> _Spawner:
    # By process, since threads do not survive a fork. Two at once would do no harm: both live as long as the process.
    return _Spawner()


def spawn(command: Sequence[str], output: IO[bytes], *, outlives_parent: bool = False) -> subprocess.Popen[bytes]:
    """Start `command` (its first item an absolute path) in a session of its own, its output appended to `output`.

    A session of its own keeps the terminal's Ctrl-C from it, so that the parent decides when it ends. Unless
    `outlives_parent`, the kernel kills it when this process dies (Linux). Raises OSError where it cannot be started.
    """
    if outlives_parent:
        process = _popen(list(command), output)
        # It ends when somebody else says so; then it must not stay as a zombie while this process lives on.
        threading.Thread(target=process.wait, name="local-reaper", daemon=True).start()
        return process
    guarded = [sys.executable, "-I", "-S", str(_GUARD), str(os.getpid()), *command]
    return _spawner_of(os.getpid()).start(guarded, output)


def _popen(command: list[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
