"""The transaction coordinator: ids, epochs, and the two phases of a commit."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import Protocol

from mainspring.processors.engine.ports import Mark, Place
from tests.sim.kafka.errors import BrokerError
from tests.sim.kafka.groups import Group, Groups
from tests.sim.kafka.log import PartitionLog
from tests.sim.kafka.settings import BrokerSettings
from tests.sim.world import Future, World

__all__ = ["Transactions", "TxnState"]


class Ended(Protocol):
    """Who is told that a transaction is over, everywhere."""

    def __call__(self, name: str, producer_id: int, *, commit: bool, places: list[Place]) -> None: ...


class TxnState(Enum):
    """Where a transaction stands."""

    EMPTY = auto()
    ONGOING = auto()
    PREPARED = auto()
    """Decided, and the markers are on their way."""
    COMMITTED = auto()
    ABORTED = auto()


@dataclass(slots=True)
class _Txn:
    """All that is known of one transactional id."""

    name: str
    producer_id: int
    epoch: int = -1
    timeout: int = 0
    state: TxnState = TxnState.EMPTY
    places: dict[Place, None] = field(default_factory=dict)
    groups: dict[str, None] = field(default_factory=dict)
    number: int = 0
    """Counts the transactions of this id."""
    when_over: list[Callable[[], None]] = field(default_factory=list)


class Transactions:
    """Ends each transaction one way everywhere, whoever has died meanwhile."""

    def __init__(
        self, world: World, settings: BrokerSettings, groups: Groups, log: Callable[[Place], PartitionLog]
    ) -> None:
        self.on_end: list[Ended] = []
        """Told when the last marker of a transaction is written."""
        self._world = world
        self._settings = settings
        self._groups = groups
        self._log = log
        self._txns: dict[str, _Txn] = {}
        self._by_producer: dict[int, _Txn] = {}
        self._away_until = 0

    def move(self, duration: int) -> None:
        """The coordinator moves to another broker, which has read its log after so long. Until then nobody answers."""
        self._away_until = max(self._away_until, self._world.now + duration)

    def _be_here(self) -> None:
        if self._world.now < self._away_until:
            raise BrokerError("NOT_COORDINATOR")

    @property
    def open(self) -> int:
        """How many transactions are not over."""
        return sum(txn.state in (TxnState.ONGOING, TxnState.PREPARED) for txn in self._txns.values())

    def is_settling(self, place: Place) -> bool:
        """Whether a decided transaction has not yet reached all of its partitions, among them this one."""
        return any(txn.state is TxnState.PREPARED and place in txn.places for txn in self._txns.values())

    def init(self, name: str, timeout: int) -> Future[tuple[int, int]]:
        """InitProducerId: producer id and epoch. Whoever has the id is shut out; what he left open is aborted first."""
        self._be_here()
        txn = self._txns.get(name)
        if txn is None:
            txn = self._txns[name] = _Txn(name, 1000 + len(self._txns))
            self._by_producer[txn.producer_id] = txn
        answer: Future[tuple[int, int]] = Future()
        if txn.state is TxnState.ONGOING:
            txn.epoch += 1
            self._world.note("txn.fence", name, txn.epoch)
            self._prepare(txn, commit=False)
        self._answer_init(txn, timeout, answer)
        return answer

    def _answer_init(self, txn: _Txn, timeout: int, answer: Future[tuple[int, int]]) -> None:
        if txn.state is TxnState.PREPARED:
            txn.when_over.append(lambda: self._answer_init(txn, timeout, answer))
            return
        if txn.state is TxnState.ONGOING:
            # Another request has begun a transaction meanwhile, under an epoch that this one has not seen.
            answer.fail(BrokerError("CONCURRENT_TRANSACTIONS"))
            return
        txn.epoch += 1
        txn.timeout = timeout
        txn.state = TxnState.EMPTY
        self._world.note("txn.init", txn.name, txn.epoch)
        answer.set((txn.producer_id, txn.epoch))

    def add_partitions(self, producer_id: int, epoch: int, places: list[Place]) -> None:
        """AddPartitionsToTxn. Raises BrokerError."""
        self._begin_if_idle(self._checked(producer_id, epoch)).places.update(dict.fromkeys(places))

    def add_offsets(self, producer_id: int, epoch: int, group: str) -> None:
        """AddOffsetsToTxn. Raises BrokerError."""
        self._begin_if_idle(self._checked(producer_id, epoch)).groups[group] = None

    def commit_offsets(
        self, producer_id: int, epoch: int, group: str, marks: dict[Place, Mark], member: str, generation: int
    ) -> None:
        """TxnOffsetCommit, which holds only once the transaction is committed. Raises BrokerError."""
        txn = self._by_producer[producer_id]
        if epoch < txn.epoch:
            raise BrokerError("INVALID_PRODUCER_EPOCH")
        if txn.state is not TxnState.ONGOING or group not in txn.groups:
            raise BrokerError("INVALID_TXN_STATE")
        self._groups.get(group).commit_pending(producer_id, marks, member, generation)

    def may_write(self, producer_id: int, epoch: int, log: PartitionLog) -> None:
        """What a leader checks before it appends in a transaction. Raises BrokerError."""
        txn = self._by_producer[producer_id]
        if epoch < max(txn.epoch, log.epochs.get(producer_id, -1)):
            raise BrokerError("INVALID_PRODUCER_EPOCH")
        if txn.state is not TxnState.ONGOING or log.place not in txn.places:
            raise BrokerError("INVALID_TXN_STATE")
        log.epochs[producer_id] = epoch

    def end(self, producer_id: int, epoch: int, *, commit: bool) -> None:
        """EndTxn. Raises BrokerError. The answer comes before the markers are written, as Kafka's does."""
        self._be_here()
        txn = self._by_producer[producer_id]
        if epoch != txn.epoch:
            raise BrokerError("PRODUCER_FENCED")
        if txn.state is TxnState.ONGOING:
            self._prepare(txn, commit=commit)
        elif txn.state is TxnState.PREPARED:
            raise BrokerError("CONCURRENT_TRANSACTIONS")
        elif txn.state is not (TxnState.COMMITTED if commit else TxnState.ABORTED):
            raise BrokerError("INVALID_TXN_STATE")

    def _checked(self, producer_id: int, epoch: int) -> _Txn:
        self._be_here()
        txn = self._by_producer[producer_id]
        if epoch != txn.epoch:
            raise BrokerError("PRODUCER_FENCED")
        if txn.state is TxnState.PREPARED:
            raise BrokerError("CONCURRENT_TRANSACTIONS")
        return txn

    def _begin_if_idle(self, txn: _Txn) -> _Txn:
        if txn.state is not TxnState.ONGOING:
            txn.state = TxnState.ONGOING
            txn.number += 1
            txn.places = {}
            txn.groups = {}
            number = txn.number
            # The broker looks for old transactions at intervals, so a time-out is noticed up to one of them late.
            sweep = self._settings.txn_sweep
            due = self._world.now + txn.timeout
            self._world.at((due // sweep + 1) * sweep, lambda: self._time_out(txn, number))
        return txn

    def _time_out(self, txn: _Txn, number: int) -> None:
        if txn.state is TxnState.ONGOING and txn.number == number:
            if self._world.now < self._away_until:
                # Who reads the log finds when it began, and ends it at the next look.
                self._world.at(self._away_until + self._settings.txn_sweep, lambda: self._time_out(txn, number))
                return
            txn.epoch += 1
            self._world.note("txn.timeout", txn.name, txn.epoch)
            self._world.saw("transaction timed out")
            self._prepare(txn, commit=False)

    def _prepare(self, txn: _Txn, *, commit: bool) -> None:
        """From here on the outcome is decided; the markers follow, one partition after the other."""
        txn.state = TxnState.PREPARED
        self._world.note("txn.commit" if commit else "txn.abort", txn.name, txn.epoch)
        targets: list[PartitionLog | Group] = [self._log(place) for place in txn.places]
        targets += [self._groups.get(name) for name in txn.groups]
        left = len(targets)

        def write(target: PartitionLog | Group) -> None:
            nonlocal left
            target.mark(txn.producer_id, txn.epoch, commit=commit)
            left -= 1
            if left == 0:
                self._over(txn, commit=commit)

        for target in targets:
            self._world.after(self._settings.marker_delay(), partial(write, target))
        if not targets:
            self._over(txn, commit=commit)

    def _over(self, txn: _Txn, *, commit: bool) -> None:
        txn.state = TxnState.COMMITTED if commit else TxnState.ABORTED
        waiting, txn.when_over = txn.when_over, []
        for tell in self.on_end:
            tell(txn.name, txn.producer_id, commit=commit, places=list(txn.places))
        for action in waiting:
            action()
