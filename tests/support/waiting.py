"""Waiting for what no signal tells."""

import threading
import time
from collections.abc import Callable

__all__ = ["PATIENCE_S", "eventually"]

PATIENCE_S = 60.0
_LOOK_AGAIN_S = 0.01


def eventually(met: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    """Returns when the condition holds, which is looked at again and again. Fails when it does not in time."""
    ends = time.monotonic() + within_s
    pause = threading.Event()
    while not met():
        assert time.monotonic() < ends, f"not so within {within_s:g} s"
        pause.wait(_LOOK_AGAIN_S)
