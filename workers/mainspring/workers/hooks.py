"""Start and stop hooks of Apps: once per process, sync or async."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable
from typing import Any

from mainspring.jobs.app import App, Hook
from mainspring.jobs.errors import StartHookError
from mainspring.workers.foreign import told

__all__ = ["start", "stop"]

log = logging.getLogger(__name__)
Wait = Callable[[Any], None]
"""Runs a coroutine to its end."""


def start(apps: Iterable[App], wait: Wait) -> None:
    """Runs the start hooks; the first that raises ends it with `StartHookError`, and the process must not take work."""
    for app in apps:
        for hook in app.start_hooks():
            try:
                _run(hook, wait)
            except Exception as error:
                raise StartHookError(_name(hook), app.name, told(error)) from error


def stop(apps: Iterable[App], wait: Wait) -> None:
    """Runs the stop hooks in reverse. One that raises is logged and keeps no other from running."""
    for app in reversed(tuple(apps)):
        for hook in app.stop_hooks():
            try:
                _run(hook, wait)
            except Exception:
                log.exception("stop hook %s of %r failed", _name(hook), app.name)


def wait_in(loop: asyncio.AbstractEventLoop) -> Wait:
    """Waits by running a loop that is not running."""

    def wait(coroutine: Any) -> None:
        loop.run_until_complete(coroutine)

    return wait


def _name(hook: Hook) -> str:
    return str(getattr(hook, "__name__", hook))


def _run(hook: Hook, wait: Wait) -> None:
    pending = hook()
    if inspect.isawaitable(pending):
        wait(pending)
