"""Which offer gets a slot, which waits for one, and which is declined. Pure: time is an argument.

Lanes are strict by priority, with a guaranteed share for the lower ones: each time a lane that has an offer is passed
over for a higher one, it is counted, and when the count reaches the lane's patience it is served next, the lowest such
lane first. So LOW gets at least every 20th slot of a worker that is flooded with CRITICAL offers.
"""

from collections import deque
from collections.abc import Mapping
from types import MappingProxyType

from mainspring.schemas.common import Priority
from mainspring.workers.attempt import Attempt

__all__ = ["PATIENCE", "OfferBook"]

PATIENCE: Mapping[Priority, int] = MappingProxyType(
    {Priority.CRITICAL: 0, Priority.HIGH: 4, Priority.MEDIUM: 9, Priority.LOW: 19}
)
"""How often a lane may be passed over: HIGH gets about every 5th slot, MEDIUM every 10th, LOW every 20th at least."""

_LANES = tuple(sorted(Priority, reverse=True))


class OfferBook:
    """Offers that a worker holds, a bounded number for a bounded time."""

    def __init__(self, *, held_max: int, hold_s: float) -> None:
        self._held_max = held_max
        self._hold_s = hold_s
        self._lanes: dict[Priority, deque[Attempt]] = {lane: deque() for lane in _LANES}
        self._passed: dict[Priority, int] = dict.fromkeys(_LANES, 0)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, attempt: Attempt, now: float) -> None:
        """Holds an offer from `now` on (seconds, monotonic)."""
        attempt.arrived_at = now
        self._lanes[attempt.lane].append(attempt)
        self._size += 1

    def take(self, slots: int) -> list[Attempt]:
        """The best offers for so many free slots, oldest first inside a lane."""
        return [self._pop() for _ in range(min(slots, self._size))]

    def expired(self, now: float) -> list[Attempt]:
        """Removes and returns the offers that were held for too long, and the worst and newest beyond the bound."""
        gone: list[Attempt] = []
        oldest = now - self._hold_s
        for lane in self._lanes.values():
            while lane and lane[0].arrived_at <= oldest:
                gone.append(lane.popleft())
        self._size -= len(gone)
        for priority in reversed(_LANES):
            lane = self._lanes[priority]
            while lane and self._size > self._held_max:
                gone.append(lane.pop())
                self._size -= 1
        return gone

    def clear(self) -> list[Attempt]:
        """Removes and returns everything."""
        gone = [attempt for lane in self._lanes.values() for attempt in lane]
        for lane in self._lanes.values():
            lane.clear()
        self._size = 0
        return gone

    def _pop(self) -> Attempt:
        waiting = [lane for lane in _LANES if self._lanes[lane]]
        if len(waiting) == 1:
            chosen = waiting[0]
        else:
            impatient = [lane for lane in waiting[1:] if self._passed[lane] >= PATIENCE[lane]]
            chosen = impatient[-1] if impatient else waiting[0]
            for lane in waiting:
                if lane < chosen:
                    self._passed[lane] += 1
        self._passed[chosen] = 0
        self._size -= 1
        return self._lanes[chosen].popleft()
