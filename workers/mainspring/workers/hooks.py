"""Start and stop hooks of Apps: once per process, sync or async."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable
from typing import Any

from mainspring.jobs.app import App, Hook

__all__ = ["start", "stop"]

log = logging.getLogger(__name__)
Wait = Callable[[Any], None]
"""Runs a coroutine to its end."""


def start(apps: Iterable[App], wait: Wait) -> None:
    """Runs the start hooks; the first that raises ends it, and the process must not take work."""
    for app in apps:
        for hook in app.start_hooks():
            _run(hook, wait)


def stop(apps: Iterable[App], wait: Wait) -> None:
    """Runs the stop hooks in reverse. One that raises is logged and keeps no other from running."""
    for app in reversed(tuple(apps)):
        for hook in app.stop_hooks():
            try:
                _run(hook, wait)
            except Exception:
                log.exception("stop hook %r of %r failed", getattr(hook, "__name__", hook), app.name)


def wait_in(loop: asyncio.AbstractEventLoop) -> Wait:
    """Waits by running a loop that is not running."""

    def wait(coroutine: Any) -> None:
        loop.run_until_complete(coroutine)

    return wait


def _run(hook: Hook, wait: Wait) -> None:
    pending = hook()
    if inspect.isawaitable(pending):
        wait(pending)
