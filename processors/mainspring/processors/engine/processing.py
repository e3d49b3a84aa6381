"""A batch of inputs from decision to commit, and what is done when that fails.

The numbers in the comments are the steps of the loop (see `engine.loop`).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from mainspring.processors.core import Now
from mainspring.processors.engine.batch import Batch, Slice, count, places, split
from mainspring.processors.engine.budget import Budget, Deadline
from mainspring.processors.engine.errors import EngineError, FatalKafkaError, FaultKind, RecordError, TransactionError
from mainspring.processors.engine.options import EngineOptions
from mainspring.processors.engine.ownership import Ownership
from mainspring.processors.engine.pace import Pace
from mainspring.processors.engine.partition import Barrier, Partition
from mainspring.processors.engine.ports import Clock, Mark, Output, Place, Received
from mainspring.processors.engine.present import present
from mainspring.processors.engine.program import PartitionProgram, Position
from mainspring.processors.engine.tables import Row
from mainspring.processors.engine.takeover import Takeover, TakeoverContext, owner_mark
from mainspring.processors.engine.transactor import Outcome, Transactor
from mainspring.schemas import RegistryError
from mainspring.telemetry import get_logger

__all__ = ["Processing"]

_log = get_logger(__name__)

_REGISTRY_PAUSE_MS = 1_000

_LOOK_EVERY_MS = 5_000
"""A program is told the time at least this often: a wall clock that was set back brings nearer what it waits for."""

_NOWHERE: frozenset[Place] = frozenset()

Before = dict[int, dict[Place, int]]
"""Where each partition stood before a batch."""


class Processing:
    """Decides on batches and commits what was decided, one transaction for all partitions."""

    def __init__(
        self,
        *,
        ownership: Ownership,
        context: TakeoverContext,
        transactor: Transactor,
        clock: Clock,
        pace: Pace,
        options: EngineOptions,
        first_txn_id: int,
    ) -> None:
        self.transactions = 0
        self.last_commit_ms: int | None = None
        self.rewound: set[int] = set()
        """Partitions whose inputs were set back since this was emptied: what was read of them is read again."""
        self._ownership = ownership
        self._context = context
        self._program = context.program
        self._inputs = context.inputs
        self._transactor = transactor
        self._clock = clock
        self._pace = pace
        self._options = options
        self._txn_id = first_txn_id

    def process(self, batch: Batch) -> Batch:
        """Decides and commits a batch, which may be empty: time brings work, too.

        Returns what is left to decide where all of it would have been too much for one transaction: it is never the
        whole batch. An input that cannot be applied is found and put aside. Raises `FatalKafkaError`.
        """
        try:
            return self._isolate(batch)
        except RegistryError as error:
            # The record may be fine, and what is it? Nothing goes on until the registry says so.
            _log.warning("the schema registry does not answer", why=str(error))
            self._rewind(self._ownership.ready(), self._now())
            self._clock.pause(_REGISTRY_PAUSE_MS)
            return []

    def _isolate(self, batch: Batch) -> Batch:
        """Tries the batch; if it fails for a reason of a record once more; and then finds the one at fault."""
        condemned: list[RecordError] = []
        is_second_try = False
        while True:
            try:
                return self._attempt(batch, condemned)
            except RecordError as error:
                if is_second_try and error.record is None:
                    return self._bisect(batch, error, condemned)
                if is_second_try and error.record is not None:
                    condemned.append(error)
                is_second_try = True

    def _bisect(
        self, batch: Batch, error: RecordError, condemned: Sequence[RecordError], behind: frozenset[Place] = _NOWHERE
    ) -> Batch:
        """Decides the halves apart. `behind`: places with more records that come after these."""
        if count(batch) <= 1:
            only = batch[0].records[0] if batch else None
            if only is None or any(each.record is only for each in condemned):
                raise FatalKafkaError(f"what time brought cannot be written: {error.detail}")
            return self._attempt(batch, [*condemned, RecordError(only, error.detail)], behind)
        first, second = split(batch)
        rest = self._half(first, condemned, behind | places(second))
        # Records of one place stay in order: while some of the first half wait, none of the second goes ahead.
        return [*rest, *second] if rest else self._half(second, condemned, behind)

    def _half(self, half: Batch, condemned: Sequence[RecordError], behind: frozenset[Place]) -> Batch:
        try:
            return self._attempt(half, condemned, behind)
        except RecordError as again:
            return self._bisect(half, again, condemned, behind)

    def _attempt(self, batch: Batch, condemned: Sequence[RecordError], behind: frozenset[Place] = _NOWHERE) -> Batch:
        """One try at a batch; returns what is left of it when the budget of a transaction is spent.

        Raises `RecordError`, after everything was rolled back, when a record is at fault.
        """
        now = self._now()
        ready = self._ownership.ready()
        before = {partition.number: dict(partition.position) for partition in ready}
        try:
            rest = self._decide_batch(batch, condemned, now)
            self._tick(ready, {each.partition for each in batch}, behind | places(rest), now)
        except RecordError:
            self._roll_back(before, now)
            raise
        decided = [partition for partition in ready if self._has_work(partition, now)]
        if decided:
            self._transact(decided, before, now)
        for partition in ready:
            if partition not in decided:
                _write_index(partition)
        return rest

    def _decide_batch(self, batch: Batch, condemned: Sequence[RecordError], now: Now) -> Batch:
        """Steps 2 to 4, until the budget is spent; returns what is left, the place that spent it last."""
        budget = Budget(self._clock, self._options.max_decided_bytes, self._options.max_decide_ms)
        for index, each in enumerate(batch):
            records, done = each.records, 0
            budget.turn_to_others()
            while done < len(records):
                if budget.is_spent:
                    # Another partition's turn is first next time, or one that is expensive kept the others waiting.
                    left = replace(each, records=records[done:]) if done else each
                    return [*batch[index + 1 :], left]
                step = records[done : done + budget.step]
                budget.spend(self._decide(each, step, condemned, now))
                done += len(step)
        return []

    def _decide(self, each: Slice, records: list[Received], condemned: Sequence[RecordError], now: Now) -> int:
        """Steps 2 to 4 for the next records of one place. Returns about how many bytes they have brought about."""
        partition = self._ownership.partitions.get(each.partition)
        if partition is None or partition.program is None or each.partition in self.rewound:
            # While the batch was being taken apart this partition was set back: all of it is read again.
            return 0
        program, next_offset, decided_bytes = partition.program, records[-1].offset() + 1, 0
        for bad in condemned:
            index = next((at for at, record in enumerate(records) if record is bad.record), None)
            if index is not None and bad.record is not None:
                decided_bytes += program.apply(each.topic, records[:index], now)
                # Condemned twice: it could not even be closed, so it is only put aside.
                is_closed = sum(each_bad.record is bad.record for each_bad in condemned) == 1
                program.condemn(bad.record, bad.detail, now, close=is_closed)
                records = records[index + 1 :]
        decided_bytes += program.apply(each.topic, records, now)
        partition.position[each.topic, each.partition] = next_offset
        if partition.uncommitted_since_ms is None:
            partition.uncommitted_since_ms = now.mono_ms
        return decided_bytes

    def _tick(self, ready: Sequence[Partition], touched: set[int], waiting: frozenset[Place], now: Now) -> None:
        # A share each, or one whose timers are expensive would keep those of the others waiting.
        share_ms = self._options.max_decide_ms / max(1, len(ready))
        for partition in ready:
            program = partition.program
            assert program is not None
            self._watch_barrier(partition, program, waiting, now)
            is_long_ago = now.mono_ms - partition.ticked_at_ms >= _LOOK_EVERY_MS
            if is_long_ago or partition.number in touched or program.next_tick_in_ms(now) == 0:
                partition.ticked_at_ms = now.mono_ms
                program.tick(now, Deadline(self._clock, share_ms).is_over)

    def _watch_barrier(
        self, partition: Partition, program: PartitionProgram, waiting: frozenset[Place], now: Now
    ) -> None:
        """Lets the program know when everything has been applied that was written before it asked.

        The end is asked for, and the answer taken when it is there: nothing waits. `waiting`: places with records
        that were read and are not decided yet, whose end is not reached although reading met it.
        """
        barrier = partition.barrier
        place = (self._program.barrier_topic, partition.number)
        if barrier is None:
            if program.wants_barrier(now):
                partition.barrier = Barrier(asked_at=now, answer=self._context.admin.ends([place]))
            return
        if barrier.end is None:
            if not barrier.answer.done():
                return
            try:
                barrier.end = barrier.answer.result()[place]
            except TransactionError as error:
                _log.warning("the end of an input could not be asked for", place=place, why=str(error))
                partition.barrier = None
                return
        if place not in waiting and partition.has_reached(place, barrier.end):
            partition.barrier = None
            program.barrier_passed(barrier.asked_at, now)

    def _has_work(self, partition: Partition, now: Now) -> bool:
        assert partition.program is not None
        since_ms = partition.uncommitted_since_ms
        overdue = since_ms is not None and now.mono_ms - since_ms >= self._options.commit_inputs_ms
        return partition.program.has_decided() or overdue

    def _transact(self, decided: list[Partition], before: Before, now: Now) -> None:
        """Steps 5 to 9."""
        self._txn_id += 1
        self._pace.spend(now.mono_ms)
        owner = owner_mark(self._transactor.transactional_id, has_rows=True)
        marks = {
            place: Mark(offset=offset, metadata=owner)
            for partition in decided
            for place, offset in partition.position.items()
        }
        try:
            rows = {partition.number: self._rows(partition, now) for partition in decided}
            index_rows = {each.number: each.program.index_changes() for each in decided if each.program is not None}
            write = partial(self._write, decided, rows, now)
            outcome, reason = self._transactor.run(write, marks, self._inputs.group)  # 5 to 8
        except EngineError:
            raise
        except Exception as error:
            # What was decided cannot be put into bytes: some input leads to it.
            self._roll_back(before, now)
            raise RecordError(None, repr(error)) from error
        if outcome is Outcome.COMMITTED:
            self._apply(decided, rows, index_rows, now)
        elif outcome is Outcome.UNKNOWN:
            self._read_back(decided, now)
        elif reason is not None and reason.kind is FaultKind.RECORD:
            self._roll_back(before, now)
            raise RecordError(None, str(reason)) from reason
        else:
            self._rewind(decided, now)

    def _write(self, decided: list[Partition], rows: dict[int, list[Row]], now: Now, output: Output) -> None:
        """Steps 6 and 7."""

        def send(topic: str, value: bytes | None, key: bytes | None, number: int) -> None:
            try:
                output.produce(topic, value, key, number)
            except BufferError:
                _send_with_patience(output, topic, value, key, number)

        programs = [partition.program for partition in decided if partition.program is not None]
        self._program.emit(programs, self._txn_id, send, now)  # 6
        changelog = self._program.changelog
        for partition in decided:  # 7
            *changed, position = rows[partition.number]
            for key, value in changed:
                send(changelog, value, key, partition.number)
            output.produce_noted(changelog, position[1], position[0], partition.number)

    def _rows(self, partition: Partition, now: Now) -> list[Row]:
        """The rows of a partition for this transaction, the position row last."""
        assert partition.program is not None
        position = Position(
            offsets={topic: offset for (topic, _), offset in partition.position.items()},
            counter=partition.program.counter,
            txn_id=self._txn_id,
            owner=self._transactor.transactional_id,
            written_at_ms=now.wall_ms,
            clock_ms=partition.program.clock_ms,
        )
        return [*partition.program.changes(), self._program.encode_position(position)]

    def _apply(
        self, decided: list[Partition], rows: dict[int, list[Row]], index_rows: dict[int, list[Row]], now: Now
    ) -> None:
        """Step 9: the transaction is committed, so the local tables follow."""
        noted = self._transactor.noted()
        for partition in decided:
            assert partition.table is not None
            assert partition.program is not None
            offset = noted[self._program.changelog, partition.number] + 1
            partition.table.write(rows[partition.number], offset, now.wall_ms, index_rows[partition.number])
            partition.program.committed()
            partition.committed = dict(partition.position)
            partition.uncommitted_since_ms = None
        self.transactions += 1
        self.last_commit_ms = now.mono_ms

    def _roll_back(self, before: Before, now: Now) -> None:
        """Back to before the batch, which is in hand and will be decided again."""
        for partition in self._ownership.ready():
            assert partition.program is not None
            partition.program.rolled_back(now)
            partition.position = before[partition.number]

    def _rewind(self, partitions: list[Partition], now: Now) -> None:
        """Back to what was committed; the inputs are read again."""
        for partition in partitions:
            assert partition.program is not None
            partition.program.rolled_back(now)
            partition.position = dict(partition.committed)
            partition.uncommitted_since_ms = None
            # An end that was met is not behind us any more: what came before it is read, and decided, again.
            partition.reached = {}
            self._inputs.start(partition.committed)
            self.rewound.add(partition.number)

    def _read_back(self, partitions: list[Partition], now: Now) -> None:
        """Nobody knows whether the transaction was committed: the changelog does, so it is restored from there."""
        for partition in partitions:
            self._inputs.hold(partition.places)
            if partition.program is not None:
                partition.program.closed()
            partition.program = None
            partition.takeover = Takeover(partition.number, self._context, now, table=partition.table)
            partition.assigned_at_ms = now.mono_ms
            self.rewound.add(partition.number)

    def _now(self) -> Now:
        return present(self._clock)


def _write_index(partition: Partition) -> None:
    """What has only moved inside the index needs no transaction: nothing was decided, so it follows from the table."""
    table, program = partition.table, partition.program
    if table is not None and program is not None:
        index_rows = program.index_changes()
        if index_rows:
            table.write((), table.offset, table.as_of_ms, index_rows)


def _send_with_patience(output: Output, topic: str, value: bytes | None, key: bytes | None, partition: int) -> None:
    """The producer's queue is full: lets it drain and tries again."""
    while True:
        output.wait_for_room()
        try:
            output.produce(topic, value, key, partition)
        except BufferError:
            continue
        return
