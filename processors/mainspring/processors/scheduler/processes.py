"""Several schedulers on one machine, under one supervisor."""

import threading
from collections.abc import Sequence

from mainspring.processors.engine.supervisor import supervise
from mainspring.processors.scheduler.config import SchedulerConfig
from mainspring.processors.scheduler.service import EXIT_CONFIGURATION, Scheduler

__all__ = ["supervise_schedulers"]


def supervise_schedulers(
    processes: int, command: Sequence[str], config: SchedulerConfig, stop: threading.Event | None = None
) -> int:
    """Runs `command`, which is one scheduler with this configuration in one process, `processes` times.

    A child that dies is fenced at once, so that its open transaction holds nobody up. Returns the exit code.
    """
    return supervise(
        processes,
        command,
        fence=Scheduler(config).fence_dead,
        permanent=frozenset({EXIT_CONFIGURATION}),
        stop=stop,
    )
