"""One process child: how it is started, what is said to it, how it is killed."""

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from mainspring.workers.attempt import Attempt
from mainspring.workers.executors.frames import MAIN_ALIAS, FrameBuffer, FrameKind, pack

__all__ = ["ChildProcess", "run_frame"]

_CHILD = f"import sys; from {__package__}.child import main; sys.exit(main(sys.argv[1:]))"


class ChildProcess:
    """A process that runs one attempt at a time, as its worker sees it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        reader, writer = os.pipe()
        try:
            # A session of its own: Ctrl-C in the terminal is the worker's affair, and a kill reaches grandchildren too.
            self.process = subprocess.Popen(
                [sys.executable, "-c", _CHILD, str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=writer,
                stderr=writer,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        except BaseException:
            ours.close()
            os.close(reader)
            raise
        finally:
            theirs.close()
            os.close(writer)
        self.link = ours
        self.link.settimeout(0)
        self.output = reader
        os.set_blocking(reader, False)
        self.frames = FrameBuffer()
        self.unsent = bytearray(_init())
        self.attempt: Attempt | None = None
        self.kill_at: float | None = None
        self.idle_since = time.monotonic()

    def kill(self) -> None:
        """Kills the process and whatever it has started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            self.process.kill()

    def close(self) -> None:
        """Closes the worker's ends; what the process wrote must have been read."""
        self.link.close()
        os.close(self.output)


def _init() -> bytes:
    head = {"path": sys.path, "main_path": _main_path(), "log_level": logging.root.getEffectiveLevel()}
    return pack(FrameKind.INIT, head)


def _main_path() -> str | None:
    """The script to import for jobs of `__main__`; None where the main module is a module with a name."""
    main = sys.modules.get("__main__")
    path = getattr(main, "__file__", None)
    if not path or getattr(main, "__spec__", None) is not None:
        return None
    script = Path(path).absolute()
    return str(script) if script.is_file() else None


def run_frame(attempt: Attempt) -> bytes:
    """The frame that begins an attempt."""
    context = attempt.context
    reference = attempt.handler.reference or ""
    if reference.startswith("__main__:"):
        reference = MAIN_ALIAS + reference.removeprefix("__main__")
    head: dict[str, Any] = {
        "reference": reference,
        "job_id": context.job_id,
        "name": context.name,
        "attempt": context.attempt,
        "queue": context.queue,
        "priority": int(context.priority),
        "tenant": context.tenant,
        "tags": context.tags,
        "due_at_ms": context.due_at_ms,
        "deadline_ms": context.deadline_ms,
        "times_out_at_ms": context.times_out_at_ms,
        "content_type": attempt.content_type,
    }
    return pack(FrameKind.RUN, head, attempt.payload)
