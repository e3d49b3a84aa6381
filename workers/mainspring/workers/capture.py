"""What a job writes to stdout, stderr and logging, kept apart from what others write at the same time.

The streams of the process are replaced by ones that look up whose code writes (a context variable, so that tasks and
threads are told apart) and keep the text with that attempt. Text of nobody goes where it always went.
"""

import contextlib
import io
import logging
import sys
import threading
from collections import deque
from typing import Any, TextIO

from mainspring.jobs.context import CURRENT, JobContext
from mainspring.schemas.bounds import LOG_MAX_BYTES

__all__ = ["LOG_FORMAT", "Capture", "captured", "install", "uninstall"]

_NOTE_ROOM = 64
HEAD_BYTES = (LOG_MAX_BYTES - _NOTE_ROOM) // 2
TAIL_BYTES = LOG_MAX_BYTES - _NOTE_ROOM - HEAD_BYTES
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class Capture:
    """The first and the last 32 KiB of what was written; the middle is counted and dropped. Safe from any thread."""

    __slots__ = ("_head", "_lock", "_tail", "_tail_bytes", "dropped_bytes")

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._lock = threading.Lock()
        self.dropped_bytes = 0

    def write(self, data: bytes) -> None:
        """Adds bytes (UTF-8 as far as the writer keeps to it)."""
        with self._lock:
            room = HEAD_BYTES - len(self._head)
            if room > 0:
                self._head += data[:room]
                data = data[room:]
            if not data:
                return
            if len(data) > TAIL_BYTES:
                self.dropped_bytes += len(data) - TAIL_BYTES
                data = data[-TAIL_BYTES:]
            self._tail.append(data)
            self._tail_bytes += len(data)
            while self._tail_bytes > TAIL_BYTES:
                first = self._tail[0]
                excess = self._tail_bytes - TAIL_BYTES
                if len(first) <= excess:
                    self._tail.popleft()
                else:
                    self._tail[0] = first[excess:]
                cut = min(len(first), excess)
                self._tail_bytes -= cut
                self.dropped_bytes += cut

    def text(self) -> str:
        """What was kept, at most 64 KiB of UTF-8, with a note where the middle is missing."""
        with self._lock:
            note = f"\n… {self.dropped_bytes} bytes cut …\n".encode() if self.dropped_bytes else b""
            return (bytes(self._head) + note + b"".join(self._tail)).decode("utf-8", "ignore")

    def __bool__(self) -> bool:
        return bool(self._head)


_creating = threading.Lock()


def _capture_of(context: JobContext) -> Capture:
    output = context.output
    if output is None:
        with _creating:
            output = context.output = context.output or Capture()
    assert isinstance(output, Capture)
    return output


def captured(context: JobContext) -> Capture | None:
    """What an attempt has written, None if it wrote nothing."""
    output = context.output
    return output if isinstance(output, Capture) and output else None


class _RoutedBytes(io.RawIOBase):
    """The `.buffer` of a routed stream, for those who write bytes."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        context = CURRENT.get()
        raw = bytes(data)
        if context is not None:
            _capture_of(context).write(raw)
        elif self._original is not None:
            self._original.write(raw)
        return len(raw)

    def flush(self) -> None:
        if CURRENT.get() is None and self._original is not None:
            self._original.flush()


class RoutedStream(io.TextIOBase):
    """Stands for `sys.stdout` or `sys.stderr` while a worker runs."""

    def __init__(self, original: TextIO) -> None:
        self.original = original
        self.buffer = _RoutedBytes(getattr(original, "buffer", None))

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed calls it a plain attribute
        return "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        context = CURRENT.get()
        if context is None:
            return self.original.write(text)
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        _capture_of(context).write(text.encode("utf-8", "replace"))
        return len(text)

    def flush(self) -> None:
        if CURRENT.get() is None:
            self.original.flush()

    def fileno(self) -> int:
        return self.original.fileno()

    def isatty(self) -> bool:
        return CURRENT.get() is None and self.original.isatty()


class _RoutedLogs(logging.Handler):
    """Keeps the log records of an attempt with it; records of nobody are left to the other handlers."""

    def emit(self, record: logging.LogRecord) -> None:
        context = CURRENT.get()
        if context is None or any(isinstance(getattr(h, "stream", None), RoutedStream) for h in logging.root.handlers):
            return  # a handler that writes to a routed stream brings it here anyway
        try:
            _capture_of(context).write((self.format(record) + "\n").encode("utf-8", "replace"))
        except Exception:  # noqa: BLE001  # a log call must never fail the job; logging's own way to say so
            self.handleError(record)


class _Routing:
    """The routed streams of this process, and how many have asked for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uses = 0
        self._undo = contextlib.ExitStack()

    def install(self) -> None:
        with self._lock:
            self._uses += 1
            if self._uses > 1:
                return
            for name in ("stdout", "stderr"):
                original = getattr(sys, name)
                routed = RoutedStream(original)
                setattr(sys, name, routed)
                self._undo.callback(_put_back, name, routed, original)
            logs = _RoutedLogs()
            logs.setFormatter(logging.Formatter(LOG_FORMAT))
            logging.root.addHandler(logs)
            self._undo.callback(logging.root.removeHandler, logs)

    def uninstall(self) -> None:
        with self._lock:
            self._uses -= 1
            if self._uses == 0:
                self._undo.close()


def _put_back(name: str, routed: RoutedStream, original: TextIO) -> None:
    if getattr(sys, name) is routed:  # what others have put in place since stays
        setattr(sys, name, original)


_ROUTING = _Routing()


def install() -> None:
    """Routes the streams and the logs of this process. Calls nest: each needs its `uninstall()`."""
    _ROUTING.install()


def uninstall() -> None:
    """Undoes `install()`."""
    _ROUTING.uninstall()
