"""What the client library's threads fetch ahead for one consumer, and what the application takes from it."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from mainspring.processors.engine.errors import OffsetOutOfRangeError
from mainspring.processors.engine.ports import Place, ReadResult, Received
from tests.sim.kafka.broker import SimBroker
from tests.sim.kafka.log import PartitionLog, Record
from tests.sim.process import Process
from tests.sim.world import Future

__all__ = ["Fetcher"]

_FETCH_LIMIT = 2_000


@dataclass(slots=True)
class _Place:
    """One assigned partition."""

    log: PartitionLog
    position: int
    """The next offset to fetch."""
    committed: bool
    """Whether records of open and aborted transactions are left out."""
    version: int = 0
    """Counts seeks and pauses: what was fetched before one is not delivered after it."""
    is_active: bool = False
    is_fetching: bool = False
    end_told: int = -1


@dataclass(slots=True)
class _Chunk:
    """What one fetch has brought: records, or none and the offset of an end."""

    state: _Place
    version: int
    """The version under which it was fetched."""
    records: list[Record]
    end: int = -1
    taken: int = 0


class Fetcher:
    """Fetches the places of one consumer; an end is told once, after an empty fetch."""

    def __init__(
        self,
        process: Process,
        broker: SimBroker,
        *,
        fetch_wait_ms: int = 500,
        on_ring: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_ring`: told when there is something to read, for those who wait elsewhere."""
        self._process = process
        self._world = process.world
        self._broker = broker
        self._fetch_wait = fetch_wait_ms * 1000
        self._on_ring = on_ring
        self._places: dict[Place, _Place] = {}
        self._queue: deque[_Chunk] = deque()
        self._ops: deque[Callable[[], None]] = deque()
        self._bell: Future[None] = Future()
        self._failure: Exception | None = None

    # The assignment.

    def add(self, place: Place, offset: int, *, active: bool, committed: bool = True) -> None:
        """Takes a place on."""
        state = _Place(self._broker.log(place), offset, committed, is_active=active)
        self._places[place] = state
        self._fetch(state)

    def remove(self, place: Place) -> None:
        """Gives a place up."""
        state = self._places.pop(place)
        state.version += 1
        state.is_active = False

    def seek(self, place: Place, offset: int) -> None:
        """Reads on from an offset."""
        state = self._places[place]
        state.version += 1
        state.position = offset
        state.end_told = -1
        state.is_active = True
        state.is_fetching = False
        self._fetch(state)

    def pause(self, place: Place) -> None:
        """Delivers nothing of a place until the next seek."""
        state = self._places[place]
        state.version += 1
        state.is_active = False
        state.is_fetching = False

    @property
    def owned(self) -> set[Place]:
        """The places that are assigned."""
        return set(self._places)

    def known_end(self, place: Place) -> int | None:
        """The end as the last fetch saw it; here: as it is."""
        state = self._places.get(place)
        return None if state is None else state.log.end

    def ask(self, op: Callable[[], None]) -> None:
        """A callback, served inside the next read."""
        self._ops.append(op)
        self._ring()

    # Reading.

    @property
    def has_news(self) -> bool:
        """Whether a read would bring anything: a record, a callback, an error."""
        return bool(self._queue or self._ops or self._failure)

    def read(self, max_records: int, wait: int, linger: int = 0) -> ReadResult:
        """What is there, waiting for the first; callbacks are served in between. Only the process' body calls it."""
        process, world = self._process, self._world
        process.point("read")
        # A call costs a little time, so that no loop stands still.
        process.sleep(world.rng.randrange(20, 120))
        deadline = world.now + wait
        self._serve()
        while not self._skip_stale() and world.now < deadline:
            self._bell = Future()
            process.wait(self._bell, deadline - world.now)
            self._serve()
        records: list[Received] = []
        ends: list[tuple[Place, int]] = []
        if not self._skip_stale():
            return ReadResult()
        self._take(1, records, ends)
        if linger:
            process.sleep(linger)
        if self._ops and world.rng.random() < 0.5:
            # Callbacks run in the middle of a batch as well: what was taken before may no longer be ours.
            self._serve()
        while len(records) + len(ends) < max_records and self._skip_stale():
            self._take(max_records - len(records) - len(ends), records, ends)
        return ReadResult(records=records, ends=ends)

    def _serve(self) -> None:
        while self._ops:
            self._ops.popleft()()
        if self._failure is not None:
            raise self._failure

    def _skip_stale(self) -> bool:
        queue = self._queue
        while queue:
            chunk = queue[0]
            if chunk.state.version == chunk.version:
                return True
            queue.popleft()
        return False

    def _take(self, room: int, records: list[Received], ends: list[tuple[Place, int]]) -> None:
        """Takes so many of the first chunk, which is not stale."""
        chunk = self._queue[0]
        if chunk.end >= 0:
            ends.append((chunk.state.log.place, chunk.end))
        else:
            first, chunk.taken = chunk.taken, chunk.taken + room
            records += chunk.records[first : chunk.taken]
        if chunk.taken >= len(chunk.records):
            self._queue.popleft()

    # Fetching.

    @staticmethod
    def _bound(state: _Place) -> int:
        return state.log.stable if state.committed else state.log.end

    def _fetch(self, state: _Place) -> None:
        """Sends the next fetch. At the end it is answered when there is more, or with nothing after a while."""
        if not state.is_active or state.is_fetching:
            return
        state.is_fetching = True
        version = state.version
        delay = max(0, self._process.cut_until - self._world.now) + self._broker.settings.delay()
        self._world.after(delay, lambda: self._arrive(state, version))

    def _arrive(self, state: _Place, version: int) -> None:
        if state.version != version or not self._process.alive:
            return
        log = state.log
        if not log.start <= state.position <= log.end:
            detail = f"offset {state.position} is not within {log.start} and {log.end}"
            self._fail(OffsetOutOfRangeError(log.place, detail))
            return
        if state.position < self._bound(state):
            self._answer(state, version)
            return
        log.when_longer(lambda: self._longer(state, version))
        if state.end_told != state.position:
            wait = self._world.rng.randrange(1, self._fetch_wait)
            position = state.position
            self._world.after(wait, lambda: self._empty(state, version, position))

    def _longer(self, state: _Place, version: int) -> None:
        if state.version != version or not self._process.alive:
            return
        if state.position < self._bound(state):
            self._answer(state, version)
        else:
            state.log.when_longer(lambda: self._longer(state, version))

    def _answer(self, state: _Place, version: int) -> None:
        records, position = state.log.read(state.position, committed=state.committed, limit=_FETCH_LIMIT)
        at = max(self._world.now, self._process.cut_until) + self._broker.settings.delay()
        self._world.at(at, lambda: self._process.background(lambda: self._deliver(state, version, records, position)))

    def _deliver(self, state: _Place, version: int, records: list[Record], position: int) -> None:
        if state.version != version:
            return
        state.position = position
        state.is_fetching = False
        if records:
            self._queue.append(_Chunk(state, version, records))
            self._ring()
        self._fetch(state)

    def _empty(self, state: _Place, version: int, position: int) -> None:
        """A fetch that brought nothing: this is the end, as far as this reader may read."""
        if state.version != version or state.position != position or state.end_told == position:
            return
        if position != self._bound(state):
            return
        if self._process.cut_until > self._world.now:
            self._world.at(self._process.cut_until + 1, lambda: self._empty(state, version, position))
            return
        self._process.background(lambda: self._tell_end(state, version, position))

    def _tell_end(self, state: _Place, version: int, position: int) -> None:
        if state.version == version and state.position == position and state.end_told != position:
            state.end_told = position
            self._queue.append(_Chunk(state, version, [], end=position))
            self._ring()

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._ring()

    def _ring(self) -> None:
        self._on_ring()
        if not self._bell.is_done:
            self._bell.set(None)
