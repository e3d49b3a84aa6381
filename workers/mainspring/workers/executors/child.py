"""The process side of a CPU-bound job: one attempt after the other, told and reported over a socket."""

import asyncio
import contextlib
import contextvars
import logging
import os
import runpy
import socket
import sys
import threading
import time
from queue import SimpleQueue
from types import ModuleType
from typing import Any

from mainspring.jobs.app import App, JobFunction
from mainspring.jobs.base import Job
from mainspring.jobs.context import CURRENT, JobContext
from mainspring.jobs.errors import JobDefinitionError, NonRetryableError
from mainspring.jobs.handler import Handler, for_class
from mainspring.jobs.models import JobPriority
from mainspring.workers import hooks
from mainspring.workers.capture import LOG_FORMAT
from mainspring.workers.executors.frames import MAIN_ALIAS, Frame, FrameBuffer, FrameKind, pack
from mainspring.workers.failures import describe, own_delay_ms
from mainspring.workers.lifeline import bind_to_parent
from mainspring.workers.registry import load_object

__all__ = ["main"]

PROGRESS_EVERY_S = 0.2
"""A handler may call `progress` in a tight loop; heartbeats carry only the last of it."""


class Child:
    """Serves one worker."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._sending = threading.Lock()
        self._work: SimpleQueue[Frame | None] = SimpleQueue()
        self._handlers: dict[str, Handler] = {}
        self._apps: list[App] = []
        self._context: JobContext | None = None
        self._loop = asyncio.new_event_loop()
        self._progress_at = 0.0
        self._main_path: str | None = None

    def serve(self) -> None:
        """Runs attempts until told to exit."""
        threading.Thread(target=self._listen, name="mainspring-link", daemon=True).start()
        while (frame := self._work.get()) is not None:
            kind, head, body = frame
            if kind is FrameKind.INIT:
                self._prepare(head)
            else:
                contextvars.Context().run(self._run, head, body)
        hooks.stop(self._apps, hooks.wait_in(self._loop))
        self._loop.close()

    def _listen(self) -> None:
        buffer = FrameBuffer()
        while True:
            try:
                data = self._link.recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                os._exit(1)  # the worker is gone, and nobody is left to tell
            for frame in buffer.feed(data):
                if frame[0] is FrameKind.CANCEL:
                    context = self._context
                    if context is not None and context.job_id == frame[1]["job_id"]:
                        context.mark_cancelled()
                else:
                    self._work.put(None if frame[0] is FrameKind.EXIT else frame)

    def _prepare(self, head: dict[str, Any]) -> None:
        sys.path[:] = head["path"]
        logging.basicConfig(level=head["log_level"], format=LOG_FORMAT, stream=sys.stderr)
        self._main_path = head["main_path"]

    def _run(self, head: dict[str, Any], payload: bytes) -> None:
        self._context = context = JobContext(
            job_id=head["job_id"],
            name=head["name"],
            attempt=head["attempt"],
            queue=head["queue"],
            priority=JobPriority(head["priority"]),
            tenant=head["tenant"],
            tags=tuple(head["tags"]),
            due_at_ms=head["due_at_ms"],
            deadline_ms=head["deadline_ms"],
            times_out_at_ms=head["times_out_at_ms"],
            on_progress=self._tell_progress,
        )
        try:
            handler = self._handler(head["reference"])
            CURRENT.set(context)
            result = handler.encode_result(handler.open(payload, head["content_type"], context)())
            answer = pack(FrameKind.SUCCEEDED, {"none": result is None}, result or b"")
        except BaseException as error:  # noqa: BLE001  # sys.exit() in a job ends the job, not the process
            answer = pack(FrameKind.FAILED, _error(error))
        finally:
            CURRENT.set(None)
            self._context = None
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # the job closed it
                stream.flush()
        self._send(answer)

    def _handler(self, reference: str) -> Handler:
        handler = self._handlers.get(reference)
        if handler is None:
            if reference.startswith(MAIN_ALIAS + ":") and MAIN_ALIAS not in sys.modules:
                self._import_main()
            found = load_object(reference)
            if isinstance(found, JobFunction):
                handler = found.handler
            elif isinstance(found, type) and issubclass(found, Job):
                handler = found.registered_handler or for_class(found)
            else:
                raise JobDefinitionError(f"{reference!r} is no job any more, but a {type(found).__name__}")
            if handler.app is not None and handler.app not in self._apps:
                hooks.start([handler.app], hooks.wait_in(self._loop))
                self._apps.append(handler.app)
            self._handlers[reference] = handler
        return handler

    def _import_main(self) -> None:
        """As multiprocessing does: the guard `if __name__ == "__main__"` keeps the script from running again."""
        if self._main_path is None:
            raise JobDefinitionError("the main module of the worker is no file; define process jobs in a module")
        module = ModuleType(MAIN_ALIAS)
        sys.modules[MAIN_ALIAS] = module
        vars(module).update(runpy.run_path(self._main_path, run_name=MAIN_ALIAS))

    def _tell_progress(self, fraction: float | None, note: str | None) -> None:
        now = time.monotonic()
        if now - self._progress_at >= PROGRESS_EVERY_S:
            self._progress_at = now
            self._send(pack(FrameKind.PROGRESS, {"fraction": fraction, "note": note}))

    def _send(self, data: bytes) -> None:
        with self._sending:
            self._link.sendall(data)


def _error(error: BaseException) -> dict[str, Any]:
    described = describe(error)
    return {
        "type": described.type,
        "message": described.message,
        "traceback": described.traceback,
        "retryable": not isinstance(error, NonRetryableError),
        "delay_ms": own_delay_ms(error),
    }


def main(argv: list[str]) -> int:
    """Entry of the child process: the descriptor of its link and the id of its parent."""
    descriptor, parent_pid = int(argv[0]), int(argv[1])
    bind_to_parent(parent_pid)
    link = socket.socket(fileno=descriptor)
    link.settimeout(None)
    Child(link).serve()
    return 0
