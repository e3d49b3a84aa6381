"""The simulated cluster: topics, transactions and groups behind one door, and the network in front of it."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

from mainspring.processors.engine.ports import Place
from mainspring.topics import partition_for
from tests.sim.kafka.groups import Groups
from tests.sim.kafka.log import PartitionLog
from tests.sim.kafka.settings import BrokerSettings
from tests.sim.kafka.transactions import Transactions
from tests.sim.process import Process
from tests.sim.world import Future, World

__all__ = ["Link", "SimBroker"]

T = TypeVar("T")


class SimBroker:
    """One cluster."""

    def __init__(self, world: World, settings: BrokerSettings | None = None) -> None:
        self.world = world
        self.settings = settings or BrokerSettings(world=world)
        self.groups = Groups(world, self.settings)
        self.transactions = Transactions(world, self.settings, self.groups, self.log)
        self._topics: dict[str, list[PartitionLog]] = {}

    def create_topic(self, name: str, partitions: int) -> None:
        """Makes a topic."""
        assert name not in self._topics, name
        self._topics[name] = [PartitionLog((name, number), self._time) for number in range(partitions)]

    def log(self, place: Place) -> PartitionLog:
        """A partition."""
        return self._topics[place[0]][place[1]]

    def logs(self, topic: str) -> list[PartitionLog]:
        """All partitions of a topic."""
        return self._topics[topic]

    @property
    def topics(self) -> list[str]:
        """The names of all topics."""
        return list(self._topics)

    def home(self, topic: str, key: bytes | None) -> int:
        """The partition of a key; by chance without one."""
        count = len(self._topics[topic])
        return self.world.rng.randrange(count) if key is None else partition_for(key, count)

    def topic_id(self, topic: str) -> str:
        """The identity of a topic."""
        return f"id-of-{topic}"

    def _time(self) -> int:
        return self.world.now


class Link:
    """The connection of one client to the cluster: requests arrive in the order in which they were sent.

    What is sent while the network is away arrives when it is back: the client library repeats it.
    """

    def __init__(self, process: Process, broker: SimBroker) -> None:
        self.process = process
        self.broker = broker
        self._last_arrival = 0

    @overload
    def call(self, handle: Callable[[], Future[T]]) -> Future[T]: ...
    @overload
    def call(self, handle: Callable[[], T]) -> Future[T]: ...
    def call(self, handle: Callable[[], Any]) -> Future[Any]:
        """Sends a request. Its answer, which may come later, reaches the client if it is alive."""
        world = self.process.world
        answer: Future[Any] = Future()
        is_held_up = self.process.cut_until > world.now
        arrival = self._clear(world.now) + self.broker.settings.delay()
        if arrival <= self._last_arrival:
            arrival = self._last_arrival + 1
        self._last_arrival = arrival

        def arrive() -> None:
            # What had to wait for the network dies with its sender; what was on its way does not.
            if self.process.alive or not is_held_up:
                self._arrive(handle, answer)

        world.at(arrival, arrive)
        return answer

    def _clear(self, now: int) -> int:
        cut_until = self.process.cut_until
        return max(cut_until, now)

    def _arrive(self, handle: Callable[[], Any], answer: Future[Any]) -> None:
        try:
            result = handle()
        except Exception as error:  # noqa: BLE001 - a refusal travels back like any answer
            self._reply(lambda error=error: answer.fail(error))  # type: ignore[misc]
            return
        if isinstance(result, Future):
            result.then(lambda later: self._reply(lambda: _copy(later, answer)))
        else:
            self._reply(lambda: answer.set(result))

    def _reply(self, deliver: Callable[[], None]) -> None:
        world = self.process.world
        at = self._clear(world.now) + self.broker.settings.delay()
        world.at(at, lambda: self.process.background(deliver))


def _copy(done: Future[T], answer: Future[T]) -> None:
    try:
        answer.set(done.result())
    except Exception as error:  # noqa: BLE001 - as above
        answer.fail(error)
