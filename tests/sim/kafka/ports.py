"""The ports of the engine on the simulated cluster."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mainspring.processors.engine.errors import FaultKind, TransactionError, UnstableOffsetsError
from mainspring.processors.engine.ports import (
    GroupMetadata,
    Mark,
    Pending,
    Place,
    ReadResult,
    RebalanceListener,
)
from tests.sim.kafka.broker import Link, SimBroker
from tests.sim.kafka.errors import BrokerError
from tests.sim.kafka.fetcher import Fetcher
from tests.sim.kafka.membership import Membership
from tests.sim.kafka.producer import SimOutput
from tests.sim.process import Process
from tests.sim.world import SECOND, Future

__all__ = ["ClientSettings", "SimAdmin", "SimChangelog", "SimInputs", "SimKafka"]

T = TypeVar("T")

_CALL = 5 * SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How the clients of one processor are set up, as `ClientOptions` of the real adapter."""

    group: str
    changelog: str
    session_timeout_ms: int = 6_000
    heartbeat_ms: int = 500
    transaction_timeout_ms: int = 3_000
    max_poll_interval_ms: int = 120_000


class SimInputs:
    """The consumer of the inputs."""

    def __init__(self, process: Process, broker: SimBroker, settings: ClientSettings) -> None:
        self._process = process
        self._broker = broker
        self._settings = settings
        self._fetcher = Fetcher(process, broker)
        self._link = Link(process, broker)
        self._membership: Membership | None = None
        self._listener: RebalanceListener | None = None

    def subscribe(self, topic: str, listener: RebalanceListener) -> None:
        self._listener = listener
        self._membership = Membership(
            self._process,
            self._broker,
            self._settings.group,
            (topic,),
            session_ms=self._settings.session_timeout_ms,
            heartbeat_ms=self._settings.heartbeat_ms,
            rebalance_ms=self._settings.max_poll_interval_ms,
            ask=self._fetcher.ask,
            application=self,
        )

    def add(self, places: Sequence[Place]) -> None:
        for place in places:
            self._fetcher.add(place, 0, active=False)

    def remove(self, places: Sequence[Place]) -> None:
        for place in places:
            self._fetcher.remove(place)

    def start(self, offsets: Mapping[Place, int]) -> None:
        for place, offset in offsets.items():
            self._fetcher.seek(place, offset)

    def hold(self, places: Sequence[Place]) -> None:
        for place in places:
            self._fetcher.pause(place)

    def read(self, max_records: int, wait_ms: int, linger_ms: int = 0) -> ReadResult:
        return self._fetcher.read(max_records, wait_ms * 1000, linger_ms * 1000)

    def known_end(self, place: Place) -> int | None:
        return self._fetcher.known_end(place)

    def lost_s(self) -> float:
        return 0.0

    def owned(self) -> set[Place]:
        return self._fetcher.owned

    def group(self) -> GroupMetadata:
        assert self._membership is not None
        return self._membership.token()

    def claim(self, marks: Mapping[Place, Mark]) -> Pending[None]:
        assert self._membership is not None
        token = self._membership.token()
        group, fixed = self._broker.groups.get(token.group), dict(marks)
        answer: Future[None] = Future()
        sent = self._link.call(lambda: group.commit(fixed, token.member_id, token.generation))
        # Told inside a read, as every callback of a consumer.
        sent.then(lambda done: self._fetcher.ask(lambda: _translate(done, answer)))
        return answer

    def close(self) -> None:
        self._process.point("close")
        if self._membership is None:
            return
        numbers = self._numbers(self._membership.owned)
        if numbers and self._listener is not None:
            self._listener.on_revoked(numbers)
        self._process.wait(self._membership.leave(), _CALL)

    def gained(self, places: frozenset[Place]) -> None:
        assert self._listener is not None
        self._listener.on_assigned(self._numbers(places))

    def gone(self, places: frozenset[Place], *, lost: bool) -> None:
        assert self._listener is not None
        tell = self._listener.on_lost if lost else self._listener.on_revoked
        tell(self._numbers(places))

    @staticmethod
    def _numbers(places: frozenset[Place]) -> list[int]:
        return sorted(number for _, number in places)


class SimChangelog:
    """The consumer of the changelog."""

    def __init__(self, process: Process, broker: SimBroker, topic: str, *, is_standby: bool = False) -> None:
        self._topic = topic
        self._fetcher = Fetcher(process, broker, fetch_wait_ms=500 if is_standby else 100)
        self._world = process.world
        self._is_standby = is_standby

    def add(self, partition: int, offset: int) -> None:
        self._fetcher.add((self._topic, partition), offset, active=True)

    def remove(self, partition: int) -> None:
        self._fetcher.remove((self._topic, partition))

    def read(self, max_records: int, wait_ms: int) -> ReadResult:
        result = self._fetcher.read(max_records, wait_ms * 1000)
        if self._is_standby and result.records:
            self._world.saw("standby followed")
        return result

    def close(self) -> None:
        pass


class SimAdmin:
    """Questions to the cluster."""

    def __init__(self, process: Process, broker: SimBroker, group: str) -> None:
        self._process = process
        self._broker = broker
        self._group = broker.groups.get(group)
        self._link = Link(process, broker)

    def committed(self, places: Sequence[Place], *, stable: bool) -> Pending[dict[Place, Mark | None]]:
        asked = list(places)
        return self._ask(lambda: self._group.fetch(asked, stable=stable))

    def ends(self, places: Sequence[Place]) -> Pending[dict[Place, int]]:
        asked = list(places)
        return self._ask(lambda: {place: self._broker.log(place).end for place in asked})

    def beginnings(self, places: Sequence[Place]) -> Pending[dict[Place, int]]:
        asked = list(places)
        return self._ask(lambda: {place: self._broker.log(place).start for place in asked})

    def topic_id(self, topic: str) -> Pending[str]:
        return self._ask(lambda: self._broker.topic_id(topic))

    def close(self) -> None:
        pass

    def _ask(self, handle: Callable[[], T]) -> Future[T]:
        answer: Future[T] = Future()
        self._link.call(handle).then(lambda done: _translate(done, answer))
        world = self._process.world
        world.after(_CALL, lambda: answer.fail(TransactionError(FaultKind.UNKNOWN, "_TIMED_OUT", "no answer in 5 s")))
        return answer


class SimKafka:
    """Makes the clients of one process."""

    def __init__(self, process: Process, broker: SimBroker, settings: ClientSettings) -> None:
        self.late: Callable[[str], int | None] = lambda _: None
        self._process = process
        self._broker = broker
        self._settings = settings

    def inputs(self) -> SimInputs:
        return SimInputs(self._process, self._broker, self._settings)

    def changelog(self) -> SimChangelog:
        return SimChangelog(self._process, self._broker, self._settings.changelog)

    def follower(self) -> SimChangelog:
        return SimChangelog(self._process, self._broker, self._settings.changelog, is_standby=True)

    def admin(self) -> SimAdmin:
        return SimAdmin(self._process, self._broker, self._settings.group)

    def output(self, transactional_id: str) -> SimOutput:
        timeout_ms = self._settings.transaction_timeout_ms
        return SimOutput(self._process, self._broker, transactional_id, timeout_ms, self.late)

    def fence(self, transactional_id: str) -> None:
        self.output(transactional_id).close()


def _translate(done: Future[T], answer: Future[T]) -> None:
    try:
        answer.set(done.result())
    except BrokerError as error:
        if error.code == "UNSTABLE_OFFSET_COMMIT":
            answer.fail(UnstableOffsetsError(error.code))
        else:
            answer.fail(TransactionError(FaultKind.UNKNOWN, error.code, "refused by the broker"))
