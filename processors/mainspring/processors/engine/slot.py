"""Slots: names that one live process holds at a time, so that a restarted one finds its transactions and tables."""

import fcntl
import os
import re
from io import BufferedRandom
from pathlib import Path
from types import TracebackType
from typing import Self

from mainspring.processors.engine.errors import ConfigurationError

__all__ = ["Slot", "hold_slot", "slot_of"]

_MAX_SLOTS = 1_000
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


class Slot:
    """A held slot. It is let go by `release`, and by the end of the process however it comes."""

    def __init__(self, name: str, lock: BufferedRandom | None) -> None:
        self.name = name
        self._lock = lock

    def release(self) -> None:
        """Lets another process have it."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


def hold_slot(name: str, locks: Path, *, exact: bool) -> Slot:
    """Holds `name` itself (`exact`: an ordinal that somebody else keeps unique), or `name-N` with the first free N.

    `locks` is a directory on this machine that all processes under this name share. Raises `ConfigurationError` when
    the name is not one, or is held by another process.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"slot {name!r} must be 1 to 100 of: ASCII letters, digits, '.', '_', '-'")
    locks.mkdir(parents=True, exist_ok=True)
    if exact:
        lock = _try_lock(locks / f"{name}.lock")
        if lock is None:
            raise ConfigurationError(
                f"slot {name!r} is held by another process on this machine. Two schedulers under one slot would shut "
                "each other out: give each its own, or leave the slot out"
            )
        return Slot(name, lock)
    for number in range(_MAX_SLOTS):
        candidate = f"{name}-{number}"
        lock = _try_lock(locks / f"{candidate}.lock")
        if lock is not None:
            return Slot(candidate, lock)
    raise ConfigurationError(f"all {_MAX_SLOTS} slots of {name!r} in {locks} are held")


def slot_of(pid: int, locks: Path) -> Slot | None:
    """The slot that a process held when it died, now held by the caller; None if it had none or another has it now."""
    for path in locks.glob("*.lock"):
        try:
            is_his = path.read_bytes().strip() == str(pid).encode()
        except OSError:
            continue
        if is_his:
            lock = _try_lock(path, sign=False)
            return None if lock is None else Slot(path.name.removesuffix(".lock"), lock)
    return None


def _try_lock(path: Path, *, sign: bool = True) -> BufferedRandom | None:
    """The open, locked file, by default with our process id in it; None when another process has the lock."""
    file = path.open("a+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    if sign:
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()}\n".encode())
        file.flush()
    return file
