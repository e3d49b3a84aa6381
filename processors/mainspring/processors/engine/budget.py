"""How much may be decided for one transaction, and how often that is looked at."""

from typing import Final

from mainspring.processors.engine.ports import Clock

__all__ = ["Budget", "Deadline"]

_STEP_MAX: Final = 16
"""Few enough that a run of expensive records after cheap ones is noticed in time, and enough that looking is free."""

_SHARE_PER_STEP: Final = 1 / 8
"""Of the budget, what a step may use up if its records cost as much as those of the last one."""


class Budget:
    """Bytes and time that the decisions of one transaction may take.

    Few bytes of input may decide many, or take long, and what is decided must be written before the transaction times
    out, and the next batch read before the group takes this process for dead.
    """

    def __init__(self, clock: Clock, max_bytes: int, max_ms: int) -> None:
        self.step = 1
        """How many records to decide before the next `spend`."""
        self._clock = clock
        self._max_bytes = max_bytes
        self._max_ms = max_ms
        self._bytes = 0
        self._began_ms = clock.mono_ms()
        self._used = 0.0

    def turn_to_others(self) -> None:
        """The next records are of another place: what the last ones cost says nothing about them."""
        self.step = 1

    @property
    def is_spent(self) -> bool:
        """Whether what has been decided is to be committed before any more is."""
        return self._used >= 1

    def spend(self, decided_bytes: int) -> None:
        """The last step has decided so much, and it has taken the time since the one before it."""
        self._bytes += decided_bytes
        elapsed_ms = self._clock.mono_ms() - self._began_ms
        before, self._used = self._used, max(self._bytes / self._max_bytes, elapsed_ms / self._max_ms)
        cost = (self._used - before) / self.step
        affordable = _STEP_MAX if cost * _STEP_MAX <= _SHARE_PER_STEP else int(_SHARE_PER_STEP / cost)
        self.step = max(1, min(2 * self.step, affordable))


class Deadline:
    """So long from now on."""

    def __init__(self, clock: Clock, ms: float) -> None:
        self._clock = clock
        self._at_ms = clock.mono_ms() + ms

    def is_over(self) -> bool:
        """Whether it has passed."""
        return self._clock.mono_ms() >= self._at_ms
