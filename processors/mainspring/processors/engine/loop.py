"""The loop: read, decide, write, in one Kafka transaction.

The numbers in the comments are the steps of the design, and the points at which tests let the process die:
(1) read, (2) decode, (3) decide, (4) evolve on a staged copy, (5) produce what was decided, (6) produce the rows, one per
key, (7) add the offsets of the inputs, (8) commit, (9) apply the staged rows to the local table.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from mainspring.processors.core import Now
from mainspring.processors.engine.batch import Batch, Slice, in_order, split
from mainspring.processors.engine.errors import (
    EngineError,
    FatalKafkaError,
    FaultKind,
    RecordError,
    TransactionError,
)
from mainspring.processors.engine.ownership import Ownership
from mainspring.processors.engine.pace import Pace
from mainspring.processors.engine.partition import Barrier, Partition
from mainspring.processors.engine.ports import Clock, Kafka, Mark, Output, Place, Randomness, Received
from mainspring.processors.engine.program import PartitionProgram, Position, Program
from mainspring.processors.engine.tables import Row, Tables
from mainspring.processors.engine.takeover import Takeover, TakeoverContext, owner_mark
from mainspring.processors.engine.transactor import Outcome, Transactor
from mainspring.schemas.errors import RegistryError
from mainspring.telemetry import get_logger, metrics

__all__ = ["Engine", "EngineOptions", "EngineStatus"]

_log = get_logger(__name__)

_RESTORE_RECORDS = 5_000
_RESTORE_WAIT_MS = 5
_REGISTRY_PAUSE_MS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """How the loop is tuned. Times in milliseconds."""

    max_batch: int = 4_000
    """Inputs that one transaction takes at most."""
    max_batch_bytes: int = 8 << 20
    """Bytes of inputs that one transaction takes, unless a single one is larger."""
    linger_ms: int = 25
    """Under load, how long inputs gather for one transaction."""
    burst: int = 3
    """Transactions that follow one another without gathering, after a quiet while."""
    commit_inputs_ms: int = 60_000
    """Inputs that need no transaction (heartbeats) are committed at least this often."""
    patience_ms: int = 60_000
    """How long a call that may be repeated is repeated."""
    delete_retention_ms: int = 86_400_000
    """`delete.retention.ms` of the changelog: an older local table is not trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStatus:
    """What the loop is at, for health checks. Times are monotonic milliseconds."""

    owned: tuple[int, ...] = ()
    ready: tuple[int, ...] = ()
    restoring: tuple[int, ...] = ()
    last_loop_ms: int = 0
    last_commit_ms: int | None = None
    transactions: int = 0
    behind: bool = False
    """Whether inputs were read that are not committed yet, or are still being restored."""


@dataclass(slots=True)
class _Counts:
    transactions: int = 0
    last_commit_ms: int | None = None
    last_loop_ms: int = 0
    backlog: list[Received] = field(default_factory=list)


class Engine:
    """Runs one program over the partitions that the group gives this process. Single-threaded: `step` is all that happens."""

    def __init__(
        self,
        *,
        program: Program,
        kafka: Kafka,
        tables: Tables,
        clock: Clock,
        randomness: Randomness,
        transactional_id: str,
        options: EngineOptions,
    ) -> None:
        self._program = program
        self._tables = tables
        self._clock = clock
        self._options = options
        self._pace = Pace(interval_ms=options.linger_ms, burst=options.burst)
        # The producer first: its start ends what a former life of this process left open.
        self._transactor = Transactor(kafka, transactional_id, clock, options.patience_ms)
        self._txn_id = randomness.bits(62)
        self._admin = kafka.admin()
        self._reader = kafka.changelog()
        self._inputs = kafka.inputs()
        self._context = TakeoverContext(
            kafka=kafka,
            admin=self._admin,
            inputs=self._inputs,
            reader=self._reader,
            program=program,
            tables=tables,
            owner=transactional_id,
            delete_retention_ms=options.delete_retention_ms,
        )
        self._ownership = Ownership(program, self._inputs, tables, self._context, self._now)
        self._counts = _Counts()
        self._inputs.subscribe(program.subscribed, self._ownership)

    def step(self, max_wait_ms: int) -> None:
        """Once round the loop; waits at most `max_wait_ms` for something to do, and at most one transaction long otherwise.

        Raises `ConfigurationError` for what only a person can put right and `FatalKafkaError` for what a new start can.
        """
        now = self._now()
        self._counts.last_loop_ms = now.mono_ms
        restoring = self._advance_takeovers(now)
        records = self._read(self._wait_ms(now, max_wait_ms, restoring))
        batch = in_order(records, self._program.inputs, self._ownership.partitions)
        self._process(batch)
        self._tables.sync(self._now().mono_ms)

    def close(self) -> None:
        """Leaves the group and lets everything go. What was committed is whole; there is nothing else to finish."""
        self._inputs.close()
        self._reader.close()
        self._admin.close()
        self._transactor.close()
        self._tables.close()

    def status(self) -> EngineStatus:
        """A snapshot; safe to call from another thread."""
        partitions = list(self._ownership.partitions.values())
        counts = self._counts
        return EngineStatus(
            owned=tuple(sorted(partition.number for partition in partitions)),
            ready=tuple(sorted(partition.number for partition in partitions if partition.program is not None)),
            restoring=tuple(sorted(partition.number for partition in partitions if partition.program is None)),
            last_loop_ms=counts.last_loop_ms,
            last_commit_ms=counts.last_commit_ms,
            transactions=counts.transactions,
        )

    def program_of(self, partition: int) -> PartitionProgram | None:
        """The rules of a partition that is ready here."""
        owned = self._ownership.partitions.get(partition)
        return None if owned is None else owned.program

    # ------------------------------------------------------------------------------------------------- step 1: read

    def _read(self, wait_ms: int) -> list[Received]:
        backlog = self._counts.backlog
        result = self._inputs.read(
            self._options.max_batch,
            0 if backlog else wait_ms,
            self._pace.wait_ms(self._clock.mono_ms()) if wait_ms else 0,
        )
        self._ownership.check()
        for place, offset in result.ends:
            partition = self._ownership.partitions.get(place[1])
            if partition is not None:
                partition.reached[place] = offset
        records, self._counts.backlog = self._cut(backlog + result.records if backlog else result.records)
        return records

    def _cut(self, records: list[Received]) -> tuple[list[Received], list[Received]]:
        """As many as fit into one transaction, and the rest."""
        room = self._options.max_batch_bytes
        for index, record in enumerate(records):
            room -= len(record.value() or b"")
            if room < 0:
                taken = max(1, index)
                return records[:taken], records[taken:]
        return records, []

    def _wait_ms(self, now: Now, max_wait_ms: int, restoring: bool) -> int:
        wait_ms = _RESTORE_WAIT_MS if restoring else max_wait_ms
        for partition in self._ownership.ready():
            assert partition.program is not None
            due_ms = partition.program.next_tick_in_ms(now)
            if due_ms is not None and due_ms < wait_ms:
                wait_ms = max(0, due_ms)
        return wait_ms

    # ------------------------------------------------------------------------------------------- taking partitions over

    def _advance_takeovers(self, now: Now) -> bool:
        """Moves takeovers on by one slice. Whether any is still under way."""
        taking_over = [partition for partition in self._ownership.partitions.values() if partition.takeover is not None]
        if not taking_over:
            return False
        self._restore(now)
        for partition in taking_over:
            takeover = partition.takeover
            if takeover is not None and takeover.advance(now):
                self._open(partition, takeover, now)
            elif takeover is not None:
                metrics.RESTORE_REMAINING.labels(store="scheduler", partition=partition.number).set(takeover.remaining)
        return any(partition.takeover is not None for partition in taking_over)

    def _restore(self, now: Now) -> None:
        result = self._reader.read(_RESTORE_RECORDS, 0)
        rows: dict[int, list[Received]] = {}
        for record in result.records:
            rows.setdefault(record.partition(), []).append(record)
        for number, records in rows.items():
            takeover = self._takeover_of(number)
            if takeover is not None:
                takeover.restored(records, now)
        for (_, number), offset in result.ends:
            takeover = self._takeover_of(number)
            if takeover is not None:
                takeover.met_end(offset, now)

    def _takeover_of(self, number: int) -> Takeover | None:
        partition = self._ownership.partitions.get(number)
        return None if partition is None else partition.takeover

    def _open(self, partition: Partition, takeover: Takeover, now: Now) -> None:
        assert takeover.table is not None
        partition.takeover = None
        partition.table = takeover.table
        partition.program = self._program.open(partition.number, takeover.table, takeover.counter, now)
        partition.position = dict(takeover.start)
        partition.committed = dict(takeover.start)
        partition.uncommitted_since_ms = None
        partition.reached = {}
        partition.barrier = None
        self._inputs.start(takeover.start)
        took_ms = self._clock.mono_ms() - partition.assigned_at_ms
        metrics.RESTORE_SECONDS.labels(store="scheduler").observe(took_ms / 1_000)
        metrics.RESTORE_REMAINING.labels(store="scheduler", partition=partition.number).set(0)
        _log.info("partition ready", partition=partition.number, rows=takeover.restored_rows, took_ms=took_ms)

    # -------------------------------------------------------------------------------------------- steps 2 to 9

    def _process(self, batch: Batch) -> None:
        """Decides and commits a batch; an input that cannot be applied is found and put aside."""
        try:
            self._attempt(batch, ())
        except RecordError:
            self._isolate(batch)
        except RegistryError as error:
            # The record may be fine, and what is it? Nothing goes on until the registry says so.
            _log.warning("the schema registry does not answer", why=str(error))
            self._rewind(self._ownership.ready(), self._now())
            self._clock.pause(_REGISTRY_PAUSE_MS)

    def _isolate(self, batch: Batch) -> None:
        """The batch failed for a reason of a record: once more, and if it fails again find the one that is at fault."""
        condemned: list[RecordError] = []
        while True:
            try:
                self._attempt(batch, condemned)
            except RecordError as error:
                if error.record is None:
                    self._bisect(batch, error, condemned)
                    return
                condemned.append(error)
            else:
                return

    def _bisect(self, batch: Batch, error: RecordError, condemned: Sequence[RecordError]) -> None:
        if sum(len(each.records) for each in batch) < 2:
            only = batch[0].records[0] if batch else None
            if only is None or any(each.record is only for each in condemned):
                raise FatalKafkaError(f"what time brought cannot be written: {error.detail}")
            self._attempt(batch, [*condemned, RecordError(only, error.detail)])
            return
        for half in split(batch):
            try:
                self._attempt(half, condemned)
            except RecordError as again:
                self._bisect(half, again, condemned)

    def _attempt(self, batch: Batch, condemned: Sequence[RecordError]) -> None:
        """One try at a batch. Raises `RecordError`, after everything was rolled back, when a record is at fault."""
        now = self._now()
        before = {partition.number: dict(partition.position) for partition in self._ownership.ready()}
        try:
            for each in batch:
                self._decide(each, condemned, now)
            self._tick({each.partition for each in batch}, now)
        except RecordError:
            self._roll_back(self._ownership.ready(), before, now)
            raise
        decided = [partition for partition in self._ownership.ready() if self._has_work(partition, now)]
        if decided:
            self._transact(decided, before, now)

    def _decide(self, each: Slice, condemned: Sequence[RecordError], now: Now) -> None:
        """Steps 2 to 4 for the records of one place."""
        partition = self._ownership.partitions[each.partition]
        program = partition.program
        assert program is not None
        records = each.records
        for bad in condemned:
            index = next((i for i, record in enumerate(records) if record is bad.record), None)
            if index is not None and bad.record is not None:
                program.apply(each.topic, records[:index], now)
                program.condemn(bad.record, bad.detail, now)
                records = records[index + 1 :]
        program.apply(each.topic, records, now)
        partition.position[each.topic, each.partition] = each.records[-1].offset() + 1
        if partition.uncommitted_since_ms is None:
            partition.uncommitted_since_ms = now.mono_ms

    def _tick(self, touched: Iterable[int], now: Now) -> None:
        touched = set(touched)
        for partition in self._ownership.ready():
            program = partition.program
            assert program is not None
            self._watch_barrier(partition, program, now)
            if partition.number in touched or program.next_tick_in_ms(now) == 0:
                program.tick(now)

    def _watch_barrier(self, partition: Partition, program: PartitionProgram, now: Now) -> None:
        """Lets the program know when everything has been applied that was written before it asked.

        The end is asked for, and the answer taken when it is there: nothing waits.
        """
        barrier = partition.barrier
        place = (self._program.barrier_topic, partition.number)
        if barrier is None:
            if program.wants_barrier(now):
                partition.barrier = Barrier(asked_at=now, answer=self._admin.ends([place]))
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
        if partition.has_reached(place, barrier.end):
            partition.barrier = None
            program.barrier_passed(barrier.asked_at, now)

    def _has_work(self, partition: Partition, now: Now) -> bool:
        assert partition.program is not None
        since_ms = partition.uncommitted_since_ms
        overdue = since_ms is not None and now.mono_ms - since_ms >= self._options.commit_inputs_ms
        return overdue or partition.program.has_decided()

    def _transact(self, decided: list[Partition], before: dict[int, dict[Place, int]], now: Now) -> None:
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
            write = partial(self._write, decided, rows, now)
            outcome, reason = self._transactor.run(write, marks, self._inputs.group)  # 5 to 8
        except EngineError:
            raise
        except Exception as error:
            # What was decided cannot be put into bytes: some input leads to it.
            self._roll_back(self._ownership.ready(), before, now)
            raise RecordError(None, repr(error)) from error
        if outcome is Outcome.COMMITTED:
            self._apply(decided, rows, now)
        elif outcome is Outcome.UNKNOWN:
            self._read_back(decided, now)
        elif reason is not None and reason.kind is FaultKind.RECORD:
            self._roll_back(self._ownership.ready(), before, now)
            raise RecordError(None, str(reason)) from reason
        else:
            self._rewind(decided, now)

    def _write(self, decided: list[Partition], rows: dict[int, list[Row]], now: Now, output: Output) -> None:
        """Steps 5 and 6."""

        def send(topic: str, value: bytes | None, key: bytes | None, number: int) -> None:
            try:
                output.produce(topic, value, key, number)
            except BufferError:
                _send_with_patience(output, topic, value, key, number)

        programs = [partition.program for partition in decided if partition.program is not None]
        self._program.emit(programs, self._txn_id, send, now)  # 5
        changelog = self._program.changelog
        for partition in decided:  # 6
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
        )
        return [*partition.program.changes(), self._program.encode_position(position)]

    def _apply(self, decided: list[Partition], rows: dict[int, list[Row]], now: Now) -> None:
        """Step 9: the transaction is committed, so the local tables follow."""
        noted = self._transactor.noted()
        for partition in decided:
            assert partition.table is not None and partition.program is not None
            offset = noted[self._program.changelog, partition.number] + 1
            partition.table.write(rows[partition.number], offset, now.wall_ms)
            partition.program.committed()
            partition.committed = dict(partition.position)
            partition.uncommitted_since_ms = None
        self._counts.transactions += 1
        self._counts.last_commit_ms = now.mono_ms

    def _roll_back(self, partitions: list[Partition], before: dict[int, dict[Place, int]], now: Now) -> None:
        """Back to before the batch, which is in hand and will be decided again."""
        for partition in partitions:
            assert partition.program is not None
            partition.program.rolled_back(now)
            partition.position = before[partition.number]

    def _rewind(self, decided: list[Partition], now: Now) -> None:
        """Back to what was committed; the inputs are read again."""
        for partition in decided:
            assert partition.program is not None
            partition.program.rolled_back(now)
            partition.position = dict(partition.committed)
            partition.uncommitted_since_ms = None
            self._inputs.start(partition.committed)
        self._forget_backlog(decided)

    def _read_back(self, decided: list[Partition], now: Now) -> None:
        """Nobody knows whether the transaction was committed: the changelog does, so it is restored from there."""
        for partition in decided:
            self._inputs.hold(partition.places)
            if partition.program is not None:
                partition.program.closed()
            partition.program = None
            partition.takeover = Takeover(partition.number, self._context, now, table=partition.table)
            partition.assigned_at_ms = now.mono_ms
        self._forget_backlog(decided)

    def _forget_backlog(self, partitions: list[Partition]) -> None:
        numbers = {partition.number for partition in partitions}
        self._counts.backlog = [record for record in self._counts.backlog if record.partition() not in numbers]

    def _now(self) -> Now:
        return Now(wall_ms=self._clock.wall_ms(), mono_ms=self._clock.mono_ms())


def _send_with_patience(output: Output, topic: str, value: bytes | None, key: bytes | None, partition: int) -> None:
    """The producer's queue is full: lets it drain and tries again."""
    while True:
        output.wait_for_room()
        try:
            output.produce(topic, value, key, partition)
        except BufferError:
            continue
        return
