"""A world of its own: virtual time, one queue of events, processes that take turns in one thread, all by one seed.

A process runs until it asks the world for something that takes time; then the next event is the world's turn. So
between two such calls nothing else happens, and the same seed gives the same run to the last record.
"""

from collections import Counter, deque
from collections.abc import Callable
from hashlib import blake2b
from heapq import heappop, heappush
from random import Random
from typing import Any, Generic, TypeVar

from greenlet import getcurrent

__all__ = ["EPOCH_MS", "FOR_EVER", "SECOND", "Chance", "Event", "Future", "Violation", "World"]

T = TypeVar("T")

SECOND = 1_000_000
"""Virtual time is counted in microseconds."""

FOR_EVER = 10_000_000 * SECOND
"""Longer than any run."""

_STEPS_MAX = 3_000_000
"""A run that takes more events goes round in circles."""

EPOCH_MS = 1_900_000_000_000
"""What a right wall clock shows at the beginning, where nothing else is said."""

Action = Callable[[], None]


class Violation(AssertionError):  # noqa: N818 - what was promised and did not hold, by name
    """An invariant does not hold."""

    def __init__(self, invariant: str, detail: str) -> None:
        super().__init__(f"{invariant}: {detail}")
        self.invariant = invariant
        self.detail = detail


class Event:
    """Something that will happen, unless it is cancelled."""

    __slots__ = ("action",)

    def __init__(self, action: Action | None) -> None:
        self.action = action

    def cancel(self) -> None:
        """It will not happen."""
        self.action = None


class Chance(Random):
    """Chance by the seed. Asked hundreds of thousands of times in a run, so a number within bounds is one product."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """A number from `start` (0 where only one is given) up to and without `stop`."""
        assert step == 1
        return int(self.random() * start) if stop is None else start + int(self.random() * (stop - start))


class World:
    """The clock, the events to come, and chance."""

    def __init__(self, seed: int, *, keep: int = 400, epoch_ms: int = EPOCH_MS) -> None:
        self.seed = seed
        self.epoch_ms = epoch_ms
        """What a right wall clock shows at the beginning."""
        self.now = 0
        self.rng = Chance(seed)
        self.hub = getcurrent()
        self.seen: Counter[str] = Counter()
        """Rare paths that were taken, by name."""
        self.resumed: dict[str, int] = {}
        """When each process that had stood still went on last."""
        self.steps = 0
        self.verbose: Callable[[str], None] | None = None
        self._heap: list[tuple[int, int, Event]] = []
        self._count = 0
        self._digest = blake2b(digest_size=16)
        self._lines: deque[tuple[int, str, tuple[Any, ...]]] = deque(maxlen=keep)
        self._failure: BaseException | None = None

    @property
    def true_ms(self) -> int:
        """What a right wall clock shows now, epoch milliseconds."""
        return self.epoch_ms + self.now // 1000

    def at(self, time: int, action: Action) -> Event:
        """Lets something happen at a time."""
        event = Event(action)
        self._count += 1
        now = self.now
        heappush(self._heap, (max(now, time), self._count, event))
        return event

    def after(self, delay: int, action: Action) -> Event:
        """Lets something happen after a while."""
        event = Event(action)
        self._count += 1
        heappush(self._heap, (self.now + delay, self._count, event))
        return event

    def run(self, until: int) -> None:
        """Everything that happens until a time. Raises what a process did not expect."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            time, _, event = heappop(heap)
            action = event.action
            if action is None:
                continue
            self.now = time
            self.steps += 1
            if self.steps > _STEPS_MAX:
                raise Violation("comes to rest", f"{_STEPS_MAX} events in {self.now / SECOND:.0f} virtual seconds")
            action()
            if self._failure is not None:
                raise self._failure
        self.now = until

    def run_while(self, condition: Callable[[], bool], until: int) -> bool:
        """Goes on, event by event, while a condition holds; whether it ceased to hold before the time was over."""
        heap = self._heap
        while condition():
            if not heap or heap[0][0] > until:
                self.now = max(self.now, until)
                return False
            self.run(heap[0][0])
        return True

    def fail(self, error: BaseException) -> None:
        """Ends the run: with the first of the errors."""
        if self._failure is None:
            self._failure = error

    def note(self, what: str, *fields: Any) -> None:
        """One line of the log of events: what the hash of a run is made of."""
        self._digest.update(f"{self.now} {what} {fields}".encode())
        self._lines.append((self.now, what, fields))
        if self.verbose is not None:
            self.verbose(_line(self.now, what, fields))

    def saw(self, what: str) -> None:
        """A rare path was taken."""
        self.seen[what] += 1

    def digest(self) -> str:
        """The hash of the log of events up to now."""
        return self._digest.hexdigest()

    def tail(self, count: int = 60) -> str:
        """The last lines of the log of events."""
        return "\n".join(_line(*line) for line in list(self._lines)[-count:])


def _line(now: int, what: str, fields: tuple[Any, ...]) -> str:
    return f"{now / SECOND:12.6f} {what:<22} {' '.join(map(str, fields))}"


class Future(Generic[T]):
    """An answer to come."""

    __slots__ = ("_callbacks", "_error", "_value", "is_done")

    def __init__(self) -> None:
        self.is_done = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], None]] = []

    def set(self, value: T) -> None:
        """Answers, once."""
        if not self.is_done:
            self._value = value
            self._finish()

    def fail(self, error: BaseException) -> None:
        """Answers with an error, once."""
        if not self.is_done:
            self._error = error
            self._finish()

    def then(self, callback: "Callable[[Future[T]], None]") -> None:
        """Calls back when the answer is there."""
        if self.is_done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def done(self) -> bool:
        """Whether the answer is there."""
        return self.is_done

    def result(self) -> T:
        """The answer. Raises the error."""
        assert self.is_done
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # set() gave a T

    def _finish(self) -> None:
        self.is_done = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)
