"""A member of a group, as the client library's own thread lives it: joins, hears of rebalances, loses everything.

The application hears of it only inside its reads; until it has answered, nothing goes on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from mainspring.processors.engine.ports import Place
from tests.sim.kafka.assignor import assign
from tests.sim.kafka.broker import Link, SimBroker
from tests.sim.kafka.errors import BrokerError
from tests.sim.kafka.groups import Joined
from tests.sim.process import Process
from tests.sim.world import Event, Future

__all__ = ["GroupToken", "Membership", "Rebalanced"]


@dataclass(frozen=True, slots=True)
class GroupToken:
    """Proof of membership, for a transaction."""

    group: str
    generation: int
    member_id: str


class Rebalanced(Protocol):
    """The application's callbacks."""

    def gained(self, places: frozenset[Place]) -> None: ...
    def gone(self, places: frozenset[Place], *, lost: bool) -> None: ...


class _Phase(Enum):
    JOINING = auto()
    ASKING = auto()
    """The application has been asked to take or to give up partitions, and has not answered."""
    STEADY = auto()
    LEFT = auto()


class Membership:
    """One membership, from subscribing to leaving."""

    def __init__(
        self,
        process: Process,
        broker: SimBroker,
        group: str,
        topics: tuple[str, ...],
        *,
        session_ms: int,
        heartbeat_ms: int,
        rebalance_ms: int,
        ask: Callable[[Callable[[], None]], None],
        application: Rebalanced,
    ) -> None:
        """`ask`: puts a callback into the queue that the application serves inside its reads."""
        self.owned: frozenset[Place] = frozenset()
        self._process = process
        self._world = process.world
        self._broker = broker
        self._group = broker.groups.get(group)
        self._topics = topics
        self._session = session_ms * 1000
        self._heartbeat = heartbeat_ms * 1000
        self._rebalance = rebalance_ms * 1000
        self._ask = ask
        self._application = application
        self._link = Link(process, broker)
        self._phase = _Phase.JOINING
        self._member_id = ""
        self._generation = -1
        self._attempt = 0
        self._heard_at = self._world.now
        self._own_expiry: Event | None = None
        process.on_silence.append(self._silenced)
        process.on_return.append(self._returned)
        self._join()

    def token(self) -> GroupToken:
        """What proves the membership now."""
        return GroupToken(self._group.name, self._generation, self._member_id)

    def leave(self) -> Future[None]:
        """Gives everything up and says goodbye."""
        self._phase = _Phase.LEFT
        self._attempt += 1
        self.owned = frozenset()
        member_id = self._member_id
        return self._link.call(lambda: self._group.leave(member_id))

    # Joining.

    def _join(self) -> None:
        self._phase = _Phase.JOINING
        if not self._member_id and self.owned:
            # A newcomer is first told its id; a client that has partitions knows by this that it has lost them.
            self._lose()
            return
        self._attempt += 1
        attempt, member_id, owned = self._attempt, self._member_id, self.owned
        answer = self._link.call(
            lambda: self._group.join(
                member_id,
                self._topics,
                owned,
                self._session,
                self._rebalance,
                self._told,
                lambda: self._process.is_silent,
                self._process.name,
            )
        )
        answer.then(lambda done: self._joined(attempt, done))

    def _joined(self, attempt: int, done: Future[Joined]) -> None:
        if attempt != self._attempt:
            return
        try:
            joined = done.result()
        except BrokerError as error:
            self._start_over(error.code)
            return
        self._member_id, self._generation = joined.member_id, joined.generation
        self._heard_at = self._world.now
        shares = None
        if joined.members:
            counts = {topic: len(self._broker.logs(topic)) for topic in self._topics}
            shares = assign(joined.members, counts)
        member_id, generation = self._member_id, self._generation
        answer = self._link.call(lambda: self._group.sync(member_id, generation, shares))
        answer.then(lambda synced: self._synced(attempt, synced))

    def _synced(self, attempt: int, done: Future[frozenset[Place]]) -> None:
        if attempt != self._attempt:
            return
        try:
            mine = done.result()
        except BrokerError as error:
            self._start_over(error.code)
            return
        self._heard_at = self._world.now
        revoked, added = self.owned - mine, mine - self.owned
        self._phase = _Phase.ASKING
        self._attempt += 1
        mine_still = self._attempt

        def ask() -> None:
            if mine_still != self._attempt:
                return
            if revoked:
                self._application.gone(revoked, lost=False)
            if added or not revoked:
                self._application.gained(added)
            self.owned = mine
            if revoked:
                self._join()
            else:
                self._phase = _Phase.STEADY
                self._look()

        self._ask(ask)

    def _start_over(self, code: str) -> None:
        if code == "UNKNOWN_MEMBER_ID":
            self._member_id = ""
        elif code == "ILLEGAL_GENERATION" and self.owned:
            self._generation = -1
            self._lose()
            return
        self._join()

    def _lose(self) -> None:
        """Others may have what is ours: the application must let go before anything else."""
        if self._phase in (_Phase.ASKING, _Phase.LEFT):
            # What is under way is finished first; the next join will tell.
            return
        self._phase = _Phase.ASKING
        self._attempt += 1
        mine_still = self._attempt
        self._world.note("lost", self._process.name, len(self.owned))

        def ask() -> None:
            if mine_still != self._attempt:
                return
            self._world.saw("partitions lost")
            owned, self.owned = self.owned, frozenset()
            if owned:
                self._application.gone(owned, lost=True)
            self._join()

        self._ask(ask)

    # Heartbeats: not sent one by one, but as if. What counts is when one would have been answered otherwise than with
    # yes, and when the first one stays away.

    def _told(self) -> None:
        delay = self._world.rng.randrange(1, self._heartbeat)
        self._world.after(delay, lambda: self._process.background(self._look))

    def _look(self) -> None:
        """What the next heartbeat is answered."""
        if self._phase not in (_Phase.STEADY, _Phase.ASKING) or self._process.is_silent:
            return
        if not self._member_id:
            self._lose()
            return
        member_id, generation = self._member_id, self._generation
        answer = self._link.call(lambda: self._group.heartbeat(member_id, generation))
        answer.then(lambda done: self._looked(member_id, generation, done))

    def _looked(self, member_id: str, generation: int, done: Future[None]) -> None:
        if (member_id, generation) != (self._member_id, self._generation):
            return
        if self._phase not in (_Phase.STEADY, _Phase.ASKING):
            return
        try:
            done.result()
            self._heard_at = self._world.now
        except BrokerError as error:
            if error.code == "REBALANCE_IN_PROGRESS":
                self._heard_at = self._world.now
                if self._phase is _Phase.STEADY:
                    self._join()
                else:
                    # Busy with the application: asked again at the next heartbeat.
                    self._told()
            elif error.code == "UNKNOWN_MEMBER_ID":
                self._member_id = ""
                self._lose()
            else:
                self._generation = -1
                self._lose()

    def _silenced(self) -> None:
        if not self._member_id or self._phase is _Phase.LEFT:
            return
        heard = max(self._heard_at, self._world.now - self._world.rng.randrange(self._heartbeat))
        self._group.silent(self._member_id, heard)
        if self._own_expiry is None:
            self._own_expiry = self._world.at(heard + self._session, self._expired)

    def _expired(self) -> None:
        """No answer for the length of a session: a client that is not paused itself knows that all is lost."""
        self._own_expiry = None
        if self._process.alive and not self._process.is_paused and self._process.is_silent:
            self._member_id = ""
            if self._phase is _Phase.STEADY:
                self._lose()

    def _returned(self) -> None:
        if self._own_expiry is not None:
            self._own_expiry.cancel()
            self._own_expiry = None
        self._world.after(self._world.rng.randrange(1, self._heartbeat), lambda: self._process.background(self._look))
