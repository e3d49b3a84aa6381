"""The group coordinator: members, generations, sessions, and committed offsets with those of open transactions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from mainspring.processors.engine.ports import Mark, Place
from tests.sim.kafka.errors import BrokerError
from tests.sim.kafka.settings import BrokerSettings
from tests.sim.world import Event, Future, World

__all__ = ["Group", "Groups", "Joined", "MemberView"]


class GroupState(Enum):
    """Where a group stands, in Kafka's words."""

    EMPTY = auto()
    PREPARING = auto()
    """Waits for its members to join again."""
    COMPLETING = auto()
    """Waits for the leader's assignment."""
    STABLE = auto()


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member as the leader sees it, with what it held when it joined."""

    member_id: str
    topics: tuple[str, ...]
    owned: frozenset[Place]


@dataclass(frozen=True, slots=True)
class Joined:
    """The answer to a join. `members` is empty but for the leader."""

    generation: int
    member_id: str
    members: tuple[MemberView, ...]


@dataclass(slots=True)
class _Member:
    view: MemberView
    session: int
    rebalance_timeout: int
    tell: Callable[[], None]
    """Its next heartbeat would be answered otherwise than with yes."""
    is_silent: Callable[[], bool]
    joining: Future[Joined] | None = None
    syncing: Future[frozenset[Place]] | None = None
    expiry: Event | None = None


class Group:
    """One consumer group."""

    def __init__(self, name: str, world: World, settings: BrokerSettings) -> None:
        self.name = name
        self.generation = 0
        self.committed: dict[Place, Mark] = {}
        self.state = GroupState.EMPTY
        self.members: dict[str, _Member] = {}
        self._pending: dict[int, dict[Place, Mark]] = {}
        """By producer id, offsets of open transactions."""
        self._world = world
        self._settings = settings
        self._assignment: dict[str, frozenset[Place]] = {}
        self._deadline: Event | None = None
        self._hold_until = 0
        self._births = 0

    # Membership.

    def join(
        self,
        member_id: str,
        topics: tuple[str, ...],
        owned: frozenset[Place],
        session: int,
        rebalance_timeout: int,
        tell: Callable[[], None],
        is_silent: Callable[[], bool],
        name: str,
    ) -> Future[Joined]:
        """JoinGroup: answered when everybody has joined."""
        answer: Future[Joined] = Future()
        if not member_id:
            self._births += 1
            member_id = f"{name}#{self._births}"
        elif member_id not in self.members:
            answer.fail(BrokerError("UNKNOWN_MEMBER_ID"))
            return answer
        view = MemberView(member_id, topics, owned)
        known = self.members.get(member_id)
        if known is None:
            known = _Member(view, session, rebalance_timeout, tell, is_silent)
            self.members[member_id] = known
        known.view = view
        known.joining = answer
        self._keep(known)
        if self.state is not GroupState.PREPARING:
            self._prepare("join " + member_id)
        self._complete_if_all()
        return answer

    def sync(
        self, member_id: str, generation: int, assignment: Mapping[str, frozenset[Place]] | None
    ) -> Future[frozenset[Place]]:
        """SyncGroup: answered when the leader has brought the assignment."""
        answer: Future[frozenset[Place]] = Future()
        refusal = self._refusal(member_id, generation)
        if refusal is None and self.state is GroupState.PREPARING:
            refusal = "REBALANCE_IN_PROGRESS"
        if refusal is not None:
            answer.fail(BrokerError(refusal))
            return answer
        self._keep(self.members[member_id])
        if self.state is GroupState.STABLE:
            answer.set(self._assignment.get(member_id, frozenset()))
            return answer
        self.members[member_id].syncing = answer
        if assignment is not None:
            self._assignment = dict(assignment)
            self.state = GroupState.STABLE
            self._world.note("group.stable", self.name, self.generation, len(self.members))
            for each_id, member in self.members.items():
                if member.syncing is not None:
                    member.syncing.set(self._assignment.get(each_id, frozenset()))
                    member.syncing = None
        return answer

    def heartbeat(self, member_id: str, generation: int) -> None:
        """Heartbeat. Raises BrokerError."""
        refusal = self._refusal(member_id, generation)
        if refusal is not None:
            raise BrokerError(refusal)
        self._keep(self.members[member_id])
        if self.state is GroupState.PREPARING:
            raise BrokerError("REBALANCE_IN_PROGRESS")

    def silent(self, member_id: str, since: int) -> None:
        """Nothing more is heard of a member whose last heartbeat came `since`."""
        member = self.members.get(member_id)
        if member is not None and member.expiry is None:
            member.expiry = self._world.at(since + member.session, lambda: self._expire(member_id))

    def leave(self, member_id: str) -> None:
        """LeaveGroup."""
        if member_id in self.members:
            self._remove(member_id, "leave")

    def evict(self) -> None:
        """Drops all members without telling them."""
        for member_id in list(self.members):
            self.members[member_id].tell()
            self._remove(member_id, "evict")

    # Offsets.

    def commit(self, marks: Mapping[Place, Mark], member_id: str, generation: int) -> None:
        """OffsetCommit of a member. Raises BrokerError."""
        refusal = self._refusal(member_id, generation)
        if refusal is None and self.state is GroupState.COMPLETING:
            refusal = "REBALANCE_IN_PROGRESS"
        if refusal is not None:
            raise BrokerError(refusal)
        self._store(marks)

    def commit_pending(self, producer_id: int, marks: Mapping[Place, Mark], member_id: str, generation: int) -> None:
        """Offsets inside a transaction, of a member of this generation only. Raises BrokerError."""
        if generation >= 0 or member_id:
            refusal = self._refusal(member_id, generation)
            if refusal is not None:
                raise BrokerError(refusal)
        self._pending.setdefault(producer_id, {}).update(marks)

    def mark(self, producer_id: int, epoch: int, *, commit: bool) -> None:
        """The transaction is over."""
        marks = self._pending.pop(producer_id, {})
        if commit:
            self._store(marks)

    def fetch(self, places: Sequence[Place], *, stable: bool) -> dict[Place, Mark | None]:
        """OffsetFetch. Raises BrokerError(UNSTABLE_OFFSET_COMMIT) while a transaction holds one of them."""
        if stable and any(place in marks for marks in self._pending.values() for place in places):
            raise BrokerError("UNSTABLE_OFFSET_COMMIT")
        return {place: self.committed.get(place) for place in places}

    def _store(self, marks: Mapping[Place, Mark]) -> None:
        self.committed.update(marks)
        if marks:
            self._world.note("offsets", self.name, [(*place, mark.offset) for place, mark in marks.items()])

    # Rebalances.

    def _refusal(self, member_id: str, generation: int) -> str | None:
        if member_id not in self.members:
            return "UNKNOWN_MEMBER_ID"
        return None if generation == self.generation else "ILLEGAL_GENERATION"

    def _keep(self, member: _Member) -> None:
        if member.expiry is not None:
            member.expiry.cancel()
            member.expiry = None

    def _expire(self, member_id: str) -> None:
        member = self.members.get(member_id)
        if member is None:
            return
        if member.joining is not None:
            # Who waits for the others to join is not asked for heartbeats.
            member.expiry = None
            return
        self._world.saw("session expired")
        self._remove(member_id, "expiry")

    def _remove(self, member_id: str, why: str) -> None:
        member = self.members.pop(member_id)
        self._keep(member)
        self._world.note("group." + why, self.name, member_id)
        for waiting in (member.joining, member.syncing):
            if waiting is not None:
                waiting.fail(BrokerError("UNKNOWN_MEMBER_ID"))
        if not self.members:
            self.state = GroupState.EMPTY
            self._assignment = {}
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None
        elif self.state is GroupState.PREPARING:
            self._complete_if_all()
        else:
            self._prepare(f"{why} {member_id}")

    def _prepare(self, why: str) -> None:
        was_empty = self.state is GroupState.EMPTY
        self.state = GroupState.PREPARING
        self._world.note("group.rebalance", self.name, self.generation, why)
        for member in self.members.values():
            if member.syncing is not None:
                member.syncing.fail(BrokerError("REBALANCE_IN_PROGRESS"))
                member.syncing = None
            if member.joining is None:
                member.tell()
        delay = max(member.rebalance_timeout for member in self.members.values())
        self._hold_until = self._world.now + (self._settings.rebalance_delay if was_empty else 0)
        if self._hold_until > self._world.now:
            self._world.at(self._hold_until, self._complete_if_all)
        self._deadline = self._world.after(delay, self._drop_late)

    def _drop_late(self) -> None:
        self._deadline = None
        for member_id in [each for each, member in self.members.items() if member.joining is None]:
            self._keep(self.members.pop(member_id))
            self._world.note("group.late", self.name, member_id)
        self._complete_if_all()

    def _complete_if_all(self) -> None:
        if self.state is not GroupState.PREPARING or self._world.now < self._hold_until:
            return
        if not self.members or any(member.joining is None for member in self.members.values()):
            return
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self.generation += 1
        self.state = GroupState.COMPLETING
        self._world.note("group.joined", self.name, self.generation, len(self.members))
        views = tuple(member.view for member in self.members.values())
        for index, (member_id, member) in enumerate(list(self.members.items())):
            joining, member.joining = member.joining, None
            assert joining is not None
            joining.set(Joined(self.generation, member_id, views if index == 0 else ()))
            if member.is_silent():
                self.silent(member_id, self._world.now)


class Groups:
    """All groups of a cluster."""

    def __init__(self, world: World, settings: BrokerSettings) -> None:
        self._world = world
        self._settings = settings
        self._groups: dict[str, Group] = {}

    def get(self, name: str) -> Group:
        """The group; made where it is not there."""
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = Group(name, self._world, self._settings)
        return group
