"""Temporary directories that do not outlive a `kill -9` for long: the next cluster removes what a dead process left.

Each is locked by the process that made it. The lock goes with its holder: a directory whose lock is free is nobody's.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
import time
from pathlib import Path
from typing import IO

_PREFIX = "mainspring-kafka-"
_LOCK = "owner.lock"
# Between making its lock file and locking it a maker could be taken for dead.
_GRACE_S = 60.0


class Scratch:
    """A temporary directory of this process; `remove` it, or the next process on this machine does."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = (self.path / _LOCK).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        _sweep(self.path.parent)

    def remove(self) -> None:
        """Delete the directory with everything in it; safe to repeat."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _sweep(parent: Path) -> None:
    for lock in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        try:
            if time.time() - lock.stat().st_mtime < _GRACE_S:
                continue
            with lock.open("a") as handle:
                if _free(handle):
                    shutil.rmtree(lock.parent, ignore_errors=True)
        except OSError:
            continue  # another user's, or just removed by its owner


def _free(handle: IO[str]) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
