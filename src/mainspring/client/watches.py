"""The watches of one partition by their keys, for as long as their handles live."""

from typing import Final
from weakref import ref

from mainspring.client.watch import Watch

__all__ = ["Watches"]

_LEAST: Final = 1_024


class Watches:
    """The first watch of each key that lives. Not safe to share between threads.

    Not a `WeakValueDictionary`: its call-back for each value that dies, and what it does for the threads that it
    expects, cost a client a sixth of its time. Here the dead are dropped when there are as many as the living.
    """

    __slots__ = ("_full", "_refs")

    def __init__(self) -> None:
        self._refs: dict[bytes, ref[Watch]] = {}
        self._full = _LEAST

    def add(self, watch: Watch) -> bool:
        """Make a watch known; False if another one of its key lives, which stays the known one."""
        known = self.get(watch.key)
        if known is not None:
            return known is watch
        self._refs[watch.key] = ref(watch)
        if len(self._refs) >= self._full:
            self._refs = {key: each for key, each in self._refs.items() if each() is not None}
            self._full = max(_LEAST, 2 * len(self._refs))
        return True

    def get(self, key: bytes) -> Watch | None:
        """The watch of a key; None if there is none, or none any more."""
        known = self._refs.get(key)
        return None if known is None else known()

    def alive(self) -> list[Watch]:
        """All that live."""
        return [watch for each in self._refs.values() if (watch := each()) is not None]
