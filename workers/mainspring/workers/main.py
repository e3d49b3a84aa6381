"""A worker as a process: signals in, exit code out."""

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

from mainspring.workers.config import WorkerConfig
from mainspring.workers.registry import Registry
from mainspring.workers.worker import Worker

__all__ = ["run_worker"]

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT)
YOUNG_OBJECTS = 50_000
"""Objects between two looks of the garbage collector: a batch of attempts makes thousands of short-lived ones."""


def run_worker(config: WorkerConfig, registry: Registry, *, on_start: Callable[[Worker], None] | None = None) -> int:
    """Runs a worker in the main thread until SIGTERM or SIGINT; a second one hurries the drain. Returns the exit code.

    `on_start` is given the worker before it runs (for health checks). The process must end with this call: if handlers
    still run in threads at the end, it does not return but ends the process, so that they cannot run on beside the
    attempts that follow when their leases have run out.
    """
    worker = Worker(config, registry)
    asked = 0

    def ask(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            worker.drain()
        else:
            worker.hurry()

    before = {number: signal.signal(number, ask) for number in SIGNALS}
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
    gc.freeze()
    try:
        if on_start is not None:
            on_start(worker)
        worker.run(threading.Event())
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if worker.status().running:
        log.warning("handlers that still run in threads: %d; the process ends over them", worker.status().running)
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(0)
    return 0
