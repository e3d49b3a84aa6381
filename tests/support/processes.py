"""What tests ask about processes that are not their children."""

from __future__ import annotations

import psutil


def ended(pid: int) -> bool:
    """Whether the process is gone, or dead and only waiting for its parent to notice."""
    return wait_until_ended(pid, timeout_s=0)


def wait_until_ended(pid: int, timeout_s: float) -> bool:
    """Wait until the process has ended; False where it still runs after `timeout_s` seconds."""
    try:
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE:
            process.wait(timeout_s)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return False
    return True
