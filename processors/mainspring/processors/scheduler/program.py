"""The scheduler as the engine runs it: its topics, and how what was decided is written."""

from collections.abc import Sequence

from mainspring.processors.core import LAYOUT, Now, Output, Rules
from mainspring.processors.engine.ports import Place
from mainspring.processors.engine.program import PartitionProgram, Position, Send
from mainspring.processors.engine.tables import Row, Table
from mainspring.processors.scheduler.index import IndexRows
from mainspring.processors.scheduler.intake import Forwarded, IntakeContext
from mainspring.processors.scheduler.partition import SchedulerPartition
from mainspring.processors.scheduler.placement import WorkPlacement
from mainspring.processors.scheduler.rows import PositionRows
from mainspring.schemas import Codec, ConfirmedStart, Signal, StartConfirmed, Txn
from mainspring.schemas.build import quick
from mainspring.telemetry import metrics
from mainspring.topics import Topology, partition_for

__all__ = ["SchedulerProgram"]

_STARTS_PER_SIGNAL = 1_000
_LEAST_WINDOW = 8

_new_txn = quick(Txn)


class SchedulerProgram:
    """Implements `Program`."""

    def __init__(
        self, *, topology: Topology, codec: Codec, rules: Rules, recorded_by: str, cache_rows: int, window_jobs: int
    ) -> None:
        """`cache_rows` stay decoded, and `window_jobs` in memory in each index: over all partitions."""
        self.group = topology.group("scheduler")
        # What one partition told another first, then what workers did, then what users want: a cancel that comes with
        # the report it competes with finds the job ended.
        self.inputs = (topology.followups.name, topology.attempts.name, topology.commands.name)
        self.subscribed = topology.commands.name
        self.changelog = topology.scheduler_changelog.name
        self.layout = LAYOUT
        self.barrier_topic = topology.attempts.name
        self._topology = topology
        self._codec = codec
        self._rules = rules
        self._cache_rows = max(1, cache_rows // topology.partitions)
        self._window_jobs = max(_LEAST_WINDOW, window_jobs // topology.partitions)
        self._index = IndexRows(rules, codec)
        self._context = IntakeContext(codec=codec, topology=topology, recorded_by=recorded_by)
        self._positions = PositionRows(codec, topology.commands.name, topology.followups.name, topology.attempts.name)
        self._placement = WorkPlacement(topology)
        self._signal_partitions: dict[str, int] = {}

    def places(self, partition: int) -> list[Place]:
        return [(topic, partition) for topic in self.inputs]

    def open(self, partition: int, table: Table, counter: int, now: Now) -> SchedulerPartition:
        return SchedulerPartition(
            partition,
            table,
            counter,
            now,
            rules=self._rules,
            context=self._context,
            placement=self._placement,
            cache_rows=self._cache_rows,
            window_jobs=self._window_jobs,
            clock_ms=0 if (position := self._positions.read(table)) is None else position.clock_ms,
        )

    def index_rows(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        return [] if table.index is None else self._index.follow(table, rows)

    def encode_position(self, position: Position) -> Row:
        return self._positions.encode(position)

    def read_position(self, table: Table) -> Position | None:
        return self._positions.read(table)

    def emit(self, decided: Sequence[PartitionProgram], txn_id: int, send: Send, now: Now) -> None:
        mine = [program for program in decided if isinstance(program, SchedulerPartition)]
        taken = [(program, *program.take()) for program in mine]
        self._placement.begin(now.mono_ms)
        self._events([(program.number, output) for program, output, _ in taken], txn_id, send)
        for program, output, extra in taken:
            self._offers(program, output, send)
            self._followups(output, extra, send)
            self._letters(extra, send)
        self._signals([signal for _, output, _ in taken for signal in output.signals], send)

    def _events(self, outputs: Sequence[tuple[int, Output]], txn_id: int, send: Send) -> None:
        """Events carry their place among all events of the transaction, so that one that was torn apart shows."""
        topic, encode = self._topology.events.name, self._codec.encode
        size = sum(len(output.events) + len(output.schedule_events) for _, output in outputs)
        index = 0
        for number, output in outputs:
            for event in output.events:
                txn = _new_txn(id=txn_id, index=index, size=size)
                send(topic, encode(event, txn), event.job_id.encode(), number)
                index += 1
            for about_schedule in output.schedule_events:
                txn = _new_txn(id=txn_id, index=index, size=size)
                send(topic, encode(about_schedule, txn), about_schedule.schedule_id.encode(), number)
                index += 1

    def _offers(self, program: SchedulerPartition, output: Output, send: Send) -> None:
        encode, choose, placed, core = self._codec.encode, self._placement.choose, program.placed, program.core
        for offer in output.offers:
            record = offer.record
            job_id = record.job_id
            topic, partition = choose(offer.queue, offer.lane, offer.avoid, placed, job_id)
            send(topic, encode(record), job_id.encode(), partition)
            core.placed(job_id, partition)

    def _followups(self, output: Output, extra: Forwarded, send: Send) -> None:
        topic, encode = self._topology.followups.name, self._codec.encode
        for key, record in output.followups:
            identity = key.encode()
            send(topic, encode(record), identity, partition_for(identity, self._topology.partitions))
        for home, identity, forwarded in extra.followups:
            send(topic, encode(forwarded), identity, home)

    def _letters(self, extra: Forwarded, send: Send) -> None:
        for key, letter in extra.letters:
            send(self._topology.dead_letters.name, self._codec.encode(letter), key, -1)
            metrics.DLQ_RECORDS.labels(topic=letter.topic, reason=letter.reason).inc()

    def _signals(self, signals: Sequence[Signal], send: Send) -> None:
        """What a worker is told; the starts that it won, in all partitions, in one record."""
        starts: dict[tuple[str, str], tuple[int, list[ConfirmedStart]]] = {}
        others: list[Signal] = []
        for signal in signals:
            if isinstance(signal, StartConfirmed):
                held = starts.setdefault((signal.worker_id, signal.incarnation), (signal.confirmed_at_ms, []))
                held[1].extend(signal.starts)
            else:
                others.append(signal)
        for (worker_id, incarnation), (at_ms, won) in starts.items():
            for first in range(0, len(won), _STARTS_PER_SIGNAL):
                confirmed = StartConfirmed(
                    worker_id=worker_id,
                    incarnation=incarnation,
                    confirmed_at_ms=at_ms,
                    starts=tuple(won[first : first + _STARTS_PER_SIGNAL]),
                )
                self._signal(confirmed, send)
        for signal in others:
            self._signal(signal, send)

    def _signal(self, signal: Signal, send: Send) -> None:
        topic = self._topology.signals
        key = signal.worker_id.encode()
        partition = self._signal_partitions.get(signal.worker_id)
        if partition is None:
            partition = self._signal_partitions[signal.worker_id] = partition_for(key, topic.partitions)
        send(topic.name, self._codec.encode(signal), key, partition)
