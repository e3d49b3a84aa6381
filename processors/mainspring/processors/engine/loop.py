"""The loop: read, decide, write, in one Kafka transaction.

The steps, which comments refer to and at which tests let the process die: (1) read, (2) decode, (3) decide, (4) evolve
on a staged copy, (5) add the offsets of the inputs, (6) produce what was decided, (7) produce the rows, one per key,
(8) commit, (9) apply the staged rows to the local table.
"""

from mainspring.processors.core import Now
from mainspring.processors.engine.backlog import Backlog
from mainspring.processors.engine.batch import Batch, in_order, places
from mainspring.processors.engine.options import EngineOptions, EngineStatus
from mainspring.processors.engine.ownership import Ownership
from mainspring.processors.engine.pace import Pace
from mainspring.processors.engine.ports import Clock, Kafka, Place, Randomness, ReadResult, Received
from mainspring.processors.engine.present import present
from mainspring.processors.engine.processing import Processing
from mainspring.processors.engine.program import PartitionProgram, Program
from mainspring.processors.engine.restoring import Restoring
from mainspring.processors.engine.standby import Standby
from mainspring.processors.engine.tables import Tables
from mainspring.processors.engine.takeover import TakeoverContext
from mainspring.processors.engine.transactor import Transactor
from mainspring.processors.engine.watch import TopicWatch

__all__ = ["Engine"]

_TXN_ID_BITS = 62
_RESTORE_WAIT_MS = 5
_CATCH_UP_WAIT_MS = 10


class Engine:
    """Runs one program over the partitions that the group gives this process.

    Single-threaded, and driven from outside: `step` is all that ever happens.
    """

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
        context = TakeoverContext(
            kafka=kafka,
            admin=kafka.admin(),
            inputs=kafka.inputs(),
            reader=kafka.changelog(),
            program=program,
            tables=tables,
            owner=transactional_id,
            delete_retention_ms=options.delete_retention_ms,
        )
        self._context = context
        self._inputs = context.inputs
        self._ownership = Ownership(context, self._now)
        self._restoring = Restoring(self._ownership, context, clock)
        self._standby = Standby(options.standby, context, kafka.follower(), clock) if options.standby else None
        self._idle_ms = 0
        self._processing = Processing(
            ownership=self._ownership,
            context=context,
            transactor=self._transactor,
            clock=clock,
            pace=self._pace,
            options=options,
            # Counted on from a random start, so that no two processes number their transactions alike.
            first_txn_id=randomness.bits(_TXN_ID_BITS),
        )
        self._backlog = Backlog(options.max_batch, options.max_batch_bytes)
        self._watch = TopicWatch(context.admin, [*program.inputs, program.changelog], every_ms=options.watch_topics_ms)
        self._last_loop_ms = 0
        self._inputs.subscribe(program.subscribed, self._ownership)

    def step(self, max_wait_ms: int) -> None:
        """Once round the loop: waits at most `max_wait_ms` for something to do, and takes one transaction at most.

        Raises `ConfigurationError` for what only a person can put right and `FatalKafkaError` for what a new start can.
        """
        now = self._now()
        self._last_loop_ms = now.mono_ms
        self._watch.look(now.mono_ms)
        # Before the takeovers, so that each finds a table that nobody else has open.
        if self._standby is not None:
            self._follow(self._standby, now)
            max_wait_ms = min(max_wait_ms, _CATCH_UP_WAIT_MS) if self._standby.is_behind else max_wait_ms
        is_restoring = self._restoring.advance(now)
        wait_ms = self._wait_ms(now, _RESTORE_WAIT_MS if is_restoring else max_wait_ms)
        batch = in_order(self._read(wait_ms), self._program.inputs, self._ownership.partitions)  # 1
        self._put_back(self._processing.process(batch))  # 2 to 9
        self._forget_rewound()
        self._tables.sync(self._now().mono_ms)

    def close(self) -> None:
        """Leaves the group and lets everything go. What was committed is whole; there is nothing else to finish."""
        self._inputs.close()
        if self._standby is not None:
            self._standby.close()
        self._context.reader.close()
        self._context.admin.close()
        self._transactor.close()
        self._tables.close()

    def status(self) -> EngineStatus:
        """A snapshot; safe to call from another thread."""
        partitions = list(self._ownership.partitions.values())
        return EngineStatus(
            owned=tuple(sorted(each.number for each in partitions)),
            ready=tuple(sorted(each.number for each in partitions if each.program is not None)),
            restoring=tuple(sorted(each.number for each in partitions if each.program is None)),
            last_loop_ms=self._last_loop_ms,
            last_commit_ms=self._processing.last_commit_ms,
            transactions=self._processing.transactions,
            lost_s=self._inputs.lost_s(),
        )

    def programs(self) -> dict[int, PartitionProgram]:
        """The rules of each partition that is ready here."""
        ready = self._ownership.ready()
        return {partition.number: partition.program for partition in ready if partition.program is not None}

    def lags(self) -> dict[Place, int]:
        """By input place of each ready partition, how many records are written and not processed, as far as known."""
        lags: dict[Place, int] = {}
        for partition in self._ownership.ready():
            for place, position in partition.position.items():
                end = self._inputs.known_end(place)
                if end is not None:
                    lags[place] = max(0, end - max(position, partition.reached.get(place, 0)))
        return lags

    def standby_lags(self) -> dict[int, int]:
        """By partition that is followed and not owned, how far behind its local table was when that was last asked."""
        return {} if self._standby is None else self._standby.lags()

    def _follow(self, standby: Standby, now: Now) -> None:
        owned = self._ownership.partitions
        is_taking_over = any(partition.takeover is not None for partition in owned.values())
        standby.advance(owned, now, self._idle_ms, is_held=is_taking_over)

    def _read(self, wait_ms: int) -> list[Received]:
        """Step 1. Callbacks of the group run in here, and no transaction is open."""
        backlog = self._backlog
        linger_ms = self._pace.wait_ms(self._clock.mono_ms())
        began_ms = self._clock.mono_ms()
        read = self._inputs.read(backlog.room, 0 if backlog else wait_ms, linger_ms)
        # A full batch was there at once, whatever handing it over took.
        self._idle_ms = 0 if len(read.records) >= backlog.room else self._clock.mono_ms() - began_ms
        self._ownership.check()
        moved = self._ownership.take_moved()
        if moved:
            # A partition that left and is back already begins where its takeover says, not in the midst of what waits.
            backlog.drop(moved)
            read = ReadResult(
                records=[record for record in read.records if record.partition() not in moved],
                ends=[(place, end) for place, end in read.ends if place[1] not in moved],
            )
        taken = backlog.take(read)
        for place, offset in taken.ends:
            partition = self._ownership.partitions.get(place[1])
            if partition is not None:
                partition.reached[place] = offset
        return taken.records

    def _put_back(self, rest: Batch) -> None:
        """What was not decided is the first of the next batch, and its ends have not been reached after all."""
        if not rest:
            return
        ends: dict[Place, int] = {}
        for place in places(rest):
            partition = self._ownership.partitions.get(place[1])
            if partition is not None and place in partition.reached:
                ends[place] = partition.reached.pop(place)
        self._backlog.put_back([record for each in rest for record in each.records], ends)

    def _wait_ms(self, now: Now, max_wait_ms: int) -> int:
        """Until the next timer, if that comes before `max_wait_ms`."""
        waits = [program.next_tick_in_ms(now) for program in self.programs().values()]
        return max(0, min([max_wait_ms, *(wait_ms for wait_ms in waits if wait_ms is not None)]))

    def _forget_rewound(self) -> None:
        rewound = self._processing.rewound
        if rewound:
            self._backlog.drop(rewound)
            rewound.clear()

    def _now(self) -> Now:
        return present(self._clock)
