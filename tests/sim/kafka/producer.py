"""The transactional producer as the client library has it: what it sends, and how it sees errors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from mainspring.processors.engine.errors import FaultKind, TransactionError
from mainspring.processors.engine.ports import GroupMetadata, Mark, Place
from tests.sim.kafka.broker import SimBroker
from tests.sim.kafka.membership import GroupToken
from tests.sim.kafka.requests import Requests, after
from tests.sim.process import Process
from tests.sim.world import SECOND, Future

__all__ = ["SimOutput"]

T = TypeVar("T")

_CALL = 5 * SECOND
_SENT_EARLY = 0.03
_FENCED = frozenset({"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})
_EVICTED = frozenset({"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"})

Rows = list[tuple[bytes | None, bytes | None]]


@dataclass(slots=True)
class _Txn:
    """One transaction, as its client sees it. What comes of an earlier one changes nothing in a later one."""

    rows: dict[Place, Rows] = field(default_factory=dict)
    """What was produced and not yet sent."""
    notes: dict[Place, int] = field(default_factory=dict)
    """By partition, which of `rows` is to be noted."""
    places: set[Place] = field(default_factory=set)
    """Partitions that the coordinator knows of, or will."""
    is_known: bool = False
    """Whether the coordinator has heard of the transaction, so that it must be ended there."""
    tail: Future[None] | None = None
    """The last request that adds partitions: records of one partition are written in the order they were produced."""
    is_aborting: bool = False
    inflight: int = 0
    error: TransactionError | None = None
    flushing: Future[None] | None = None
    ending: Future[None] | None = None
    is_unanswered: bool = False
    """Whether its commit was not answered in time."""


class SimOutput:
    """A transactional producer."""

    def __init__(
        self,
        process: Process,
        broker: SimBroker,
        transactional_id: str,
        timeout_ms: int,
        late: Callable[[str], int | None],
    ) -> None:
        self.transactional_id = transactional_id
        self.noted: dict[Place, int] = {}
        self.produce: Callable[[str, bytes | None, bytes | None, int], None] = self._produce
        self._process = process
        self._world = process.world
        self._broker = broker
        self._transactions = broker.transactions
        self._requests = Requests(process, broker, transactional_id)
        self._requests.late = late
        self._txn = _Txn()
        self._fatal: TransactionError | None = None
        process.point("init")
        answer = self._requests.repeat(
            "InitProducerId", lambda: self._transactions.init(transactional_id, timeout_ms * 1000), self._seen
        )
        self._producer_id, self._epoch = self._wait(answer)

    # The port.

    def trace(self, *, on: bool) -> None:
        pass

    def produce_noted(self, topic: str, value: bytes | None, key: bytes | None, partition: int) -> None:
        self._process.point("produce_noted")
        place = self._place(topic, key, partition)
        self._txn.notes[place] = len(self._txn.rows.get(place, ()))
        self._put(place, key, value)

    def fault_of(self, error: Exception) -> TransactionError | None:
        return None

    def wait_for_room(self) -> None:
        self._process.sleep(1_000)

    def begin(self) -> None:
        self._process.point("begin")
        self._requests.is_broken = False
        self._raise_fatal()
        self._txn = _Txn()
        self.noted = {}

    def flush(self) -> None:
        self._process.point("flush")
        txn = self._txn
        self._send()
        done = txn.flushing = Future()
        self._settle(txn)
        if not self._process.wait(done, _CALL):
            raise TransactionError(FaultKind.ABORT, "FLUSH", "records were not acknowledged within 5 s")
        self._raise_error()
        self._process.point("flushed")

    def send_offsets(self, marks: Mapping[Place, Mark], group: GroupMetadata) -> None:
        assert isinstance(group, GroupToken)
        self._process.point("send_offsets")
        self._raise_error()
        pid, epoch, transactions, fixed = self._producer_id, self._epoch, self._transactions, dict(marks)
        self._txn.is_known = True

        def commit_offsets(_: object) -> Future[None]:
            return self._requests.repeat(
                "TxnOffsetCommit",
                lambda: transactions.commit_offsets(pid, epoch, group.group, fixed, group.member_id, group.generation),
                self._seen_in(self._txn),
            )

        added = self._requests.repeat(
            "AddOffsetsToTxn", lambda: transactions.add_offsets(pid, epoch, group.group), self._seen_in(self._txn)
        )
        self._wait(after(added, commit_offsets))
        self._process.point("offsets_sent")

    def commit(self) -> None:
        self._process.point("commit")
        self._raise_error()
        self._end(commit=True)
        self._process.point("committed")

    def abort(self) -> None:
        self._process.point("abort")
        self._raise_fatal()
        # What was not sent is given up. What is on its way is waited for: it must not come into a later transaction.
        txn = self._txn
        txn.is_aborting = True
        txn.rows = {}
        if txn.inflight:
            landed = txn.flushing = Future()
            self._wait(landed)
        self._end(commit=False)
        self._process.point("aborted")

    def is_suspect(self) -> bool:
        return self._requests.is_broken

    def close(self) -> None:
        self._txn = _Txn()

    # Records.

    def _produce(self, topic: str, value: bytes | None, key: bytes | None, partition: int, /) -> None:
        self._process.point("produce")
        self._put(self._place(topic, key, partition), key, value)

    def _place(self, topic: str, key: bytes | None, partition: int) -> Place:
        return (topic, self._broker.home(topic, key) if partition < 0 else partition)

    def _put(self, place: Place, key: bytes | None, value: bytes | None) -> None:
        self._txn.rows.setdefault(place, []).append((key, value))
        if self._world.rng.random() < _SENT_EARLY:
            # The client library sends when it sees fit: a process may die with any part of its records written.
            self._send()

    def _send(self) -> None:
        """Sends what was produced: the partitions first, so that the coordinator knows them, then each its records."""
        txn = self._txn
        rows, notes = txn.rows, txn.notes
        txn.rows, txn.notes = {}, {}
        if not rows:
            return
        txn.is_known = True
        txn.inflight += len(rows)
        pid, epoch, transactions = self._producer_id, self._epoch, self._transactions
        new = [place for place in rows if place not in txn.places]
        txn.places.update(new)

        def known(answer: Future[None]) -> None:
            if txn.is_aborting or _failed(answer):
                txn.inflight -= len(rows)
                self._settle(txn)
                return
            for place, batch in rows.items():
                written = self._requests.repeat(
                    "Produce", partial(self._append, pid, epoch, place, batch), self._seen_in(txn)
                )
                written.then(partial(self._written, txn, place, notes.get(place)))

        def add(_: object) -> Future[None]:
            return self._requests.repeat(
                "AddPartitionsToTxn", lambda: transactions.add_partitions(pid, epoch, new), self._seen_in(txn)
            )

        txn.tail = add(None) if txn.tail is None else after(txn.tail, add)
        txn.tail.then(known)

    def _append(self, pid: int, epoch: int, place: Place, batch: Rows) -> int:
        log = self._broker.log(place)
        self._transactions.may_write(pid, epoch, log)
        first = log.append(batch, pid)
        self._world.note("write", *place, first, len(batch), self.transactional_id)
        return first

    def _written(self, txn: _Txn, place: Place, noted: int | None, answer: Future[int]) -> None:
        txn.inflight -= 1
        try:
            first = answer.result()
        except TransactionError:
            pass
        else:
            if noted is not None and txn is self._txn:
                self.noted[place] = first + noted
        self._settle(txn)

    @staticmethod
    def _settle(txn: _Txn) -> None:
        if txn.inflight == 0 and txn.flushing is not None:
            txn.flushing.set(None)

    # Ends and errors.

    def _end(self, *, commit: bool) -> None:
        """EndTxn. A call that was not answered in time goes on; the next one only waits for it again."""
        txn = self._txn
        if not txn.is_known:
            return
        if txn.ending is None:
            pid, epoch, transactions = self._producer_id, self._epoch, self._transactions
            txn.ending = self._requests.repeat(
                "EndTxn", lambda: transactions.end(pid, epoch, commit=commit), self._seen_in(txn)
            )
        try:
            self._wait(txn.ending)
        except TransactionError as error:
            if commit and error.kind is FaultKind.RETRIABLE and not txn.is_unanswered:
                txn.is_unanswered = True
                txn.ending.then(self._answered_late)
            raise

    def _answered_late(self, answer: Future[None]) -> None:
        try:
            answer.result()
        except TransactionError:
            self._world.saw("unanswered commit had no effect")
        else:
            self._world.saw("unanswered commit took effect")

    def _wait(self, answer: Future[T]) -> T:
        if not self._process.wait(answer, _CALL):
            raise TransactionError(FaultKind.RETRIABLE, "_TIMED_OUT", "no answer within 5 s")
        return answer.result()

    def _seen_in(self, txn: _Txn) -> Callable[[str, str], TransactionError]:
        return partial(self._seen, txn=txn)

    def _seen(self, code: str, request: str, txn: _Txn | None = None) -> TransactionError:
        """What an error of the broker means to the client library."""
        if code in _FENCED or (code == "INVALID_TXN_STATE" and request != "Produce"):
            is_fenced = code in _FENCED
            kind, name = (FaultKind.FENCED, "_FENCED") if is_fenced else (FaultKind.FATAL, code)
            error = TransactionError(kind, name, f"{request}: this producer may not go on")
            self._fatal = self._fatal or error
            self._world.saw("producer shut out")
            return error
        error = TransactionError(FaultKind.ABORT, code, f"{request}: the transaction must be aborted")
        if txn is not None:
            txn.error = txn.error or error
        if code in _EVICTED:
            self._world.saw("transaction of an evicted member refused")
        return error

    def _raise_error(self) -> None:
        self._raise_fatal()
        if self._txn.error is not None:
            raise self._txn.error

    def _raise_fatal(self) -> None:
        if self._fatal is not None:
            raise self._fatal


def _failed(answer: Future[None]) -> bool:
    try:
        answer.result()
    except TransactionError:
        return True
    return False
