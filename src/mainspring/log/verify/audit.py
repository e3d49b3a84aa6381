"""`verify`: reads a whole log once, partition by partition, and checks it while it passes."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from mainspring.log.source import LogSource, Place, Raw, Span, capture
from mainspring.log.verify.decoding import DeadPlaces, Reader
from mainspring.log.verify.findings import Findings
from mainspring.log.verify.inputs import InputIndex
from mainspring.log.verify.jobs import JobAuditor
from mainspring.log.verify.recheck import recheck_table, recheck_view
from mainspring.log.verify.report import DeadLetterLine, RejectionLine, VerifyProgress, VerifyReport
from mainspring.log.verify.schedule_tables import ScheduleTable, compare_schedules
from mainspring.log.verify.schedule_view import compare_schedule_view
from mainspring.log.verify.schedules import ScheduleAuditor
from mainspring.log.verify.tables import TableRows, compare_table, compare_view
from mainspring.log.verify.torn import report_torn
from mainspring.log.verify.transactions import TransactionLedger
from mainspring.log.verify.verdicts import OpenCommands
from mainspring.schemas import EVENT_TYPES, JOB_EVENT_TYPES, Codec
from mainspring.schemas.common import CauseSource
from mainspring.schemas.dead_letters import DeadLetter
from mainspring.schemas.events import CommandRejected
from mainspring.topics import Topic

if TYPE_CHECKING:
    from mainspring.processors.projector.view import Snapshot, View

__all__ = ["verify"]

LISTED = 100
"""Dead letters and refusals that the report lists; it counts all."""


def verify(
    source: LogSource,
    codec: Codec,
    *,
    view: "View | None" = None,
    tolerance_ms: int = 0,
    progress: Callable[[VerifyProgress], None] | None = None,
) -> VerifyReport:
    """Audits a live or exported log, its changelog tables, and the view if one is given.

    Memory grows with unfinished jobs, and by about 50 bytes for each finished one of a partition. `tolerance_ms` is
    how much before its time a start may be. A live log may be written meanwhile: what is there now is audited.
    Raises LogError when the log cannot be read.
    """
    with ExitStack() as stack:
        snapshot = stack.enter_context(view.snapshot()) if view is not None else None
        return _Audit(source, codec, snapshot, tolerance_ms, progress).run()


class _Audit:
    def __init__(
        self,
        source: LogSource,
        codec: Codec,
        snapshot: "Snapshot | None",
        tolerance_ms: int,
        progress: Callable[[VerifyProgress], None] | None,
    ) -> None:
        self._source = source
        self._codec = codec
        self._topology = source.topology
        self._snapshot = snapshot
        self._tolerance_ms = tolerance_ms
        self._progress = progress
        self._findings = Findings()
        self._dead = DeadPlaces()
        self._open = OpenCommands(codec)
        self._ledger = TransactionLedger()
        self._records: Counter[str] = Counter()
        self._gaps: Counter[str] = Counter()
        self._events: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._codes: Counter[str] = Counter()
        self._unverifiable: Counter[str] = Counter()
        self._rejections: list[RejectionLine] = []
        self._dead_letters: list[DeadLetterLine] = []
        self._dead_letter_count = self._resubmitted = self._pending = self._schedules = 0
        self._table_rows = self._evicted = self._view_rows = self._view_schedules = 0
        self._notes: list[str] = []
        self._spans: dict[tuple[str, int], Span] = {}
        self._offsets = 0

    def run(self) -> VerifyReport:
        """The whole audit."""
        started = time.monotonic()
        topology = self._topology
        self._spans = capture(self._source)
        self._offsets = sum(span.offsets for span in self._spans.values())
        self._read_dead_letters()
        for partition in range(topology.events.partitions):
            self._partition(partition)
        cut = any(self._spans[topology.events.name, p].start for p in range(topology.events.partitions))
        report_torn(self._source, self._codec, self._ledger.torn(), self._findings, self._unverifiable, is_cut=cut)
        self._open.resolve(self._source, self._findings)
        return self._report(time.monotonic() - started)

    def _report(self, seconds: float) -> VerifyReport:
        return VerifyReport(
            findings=self._findings.all(),
            records=dict(self._records),
            gaps=dict(self._gaps),
            events=dict(self._events),
            jobs=sum(self._statuses.values()),
            jobs_by_status=dict(self._statuses),
            resubmitted=self._resubmitted,
            schedules=self._schedules,
            transactions=len(self._ledger),
            commands_pending=self._pending,
            table_rows=self._table_rows,
            table_rows_evicted=self._evicted,
            view_rows=None if self._snapshot is None else self._view_rows,
            view_schedules=None if self._snapshot is None else self._view_schedules,
            unverifiable={name: number for name, number in self._unverifiable.items() if number},
            rejections_by_code=dict(self._codes),
            rejections=tuple(self._rejections),
            dead_letter_count=self._dead_letter_count,
            dead_letters=tuple(self._dead_letters),
            seconds=seconds,
            notes=tuple(self._notes),
        )

    def _read(self, topic: Topic, partition: int) -> Iterator[Sequence[Raw]]:
        """One partition, counted, with progress told."""
        span = self._spans[topic.name, partition]
        records = 0
        for batch in self._source.read(topic, partition, span):
            records += len(batch)
            self._records[topic.role] += len(batch)
            if self._progress is not None:
                total = sum(self._records.values())
                self._progress(
                    VerifyProgress(records=total, offsets=self._offsets, topic=topic.name, partition=partition)
                )
            yield batch
        self._gaps[topic.role] += span.offsets - records

    def _reader(self, topic: Topic, partition: int) -> Reader:
        return Reader(self._codec, topic, partition, self._findings, self._dead)

    def _read_dead_letters(self) -> None:
        topic = self._topology.dead_letters
        for partition in range(topic.partitions):
            reader = self._reader(topic, partition)
            for batch in self._read(topic, partition):
                for raw in batch:
                    letter = reader.decode(raw)
                    if type(letter) is DeadLetter:
                        self._dead_letter(reader.place(raw.offset), letter)

    def _dead_letter(self, place: Place, letter: DeadLetter) -> None:
        self._dead.add(letter.topic, letter.partition, letter.offset)
        self._dead_letter_count += 1
        if len(self._dead_letters) < LISTED:
            of = Place(topic=letter.topic, partition=letter.partition, offset=letter.offset)
            self._dead_letters.append(DeadLetterLine(place=place, of=of, reason=letter.reason, detail=letter.detail))

    def _partition(self, partition: int) -> None:
        topology = self._topology
        rows = TableRows()
        changelog = topology.scheduler_changelog
        rows.fill(self._read(changelog, partition), self._reader(changelog, partition), self._findings)
        inputs = self._read_inputs(partition)
        span = self._spans[topology.events.name, partition]
        auditor = JobAuditor(
            topology.events,
            partition,
            inputs,
            self._findings,
            tolerance_ms=self._tolerance_ms,
            from_start=span.start == 0,
        )
        schedules = ScheduleAuditor(topology.events, partition, inputs, self._findings, from_start=span.start == 0)
        self._fold(partition, auditor, schedules)
        self._compare(partition, rows, auditor)
        self._compare_schedules(partition, rows, schedules)
        self._collect_open(inputs, rows)
        self._resubmitted += auditor.resubmitted
        self._unverifiable["cause_past_retention"] += auditor.unverifiable_causes + schedules.unverifiable_causes
        self._unverifiable["event_of_job_past_retention"] += auditor.headless_events
        self._unverifiable["event_of_schedule_past_retention"] += schedules.headless_events
        self._unverifiable["outcome_by_other_time_zone_data"] += schedules.unverifiable_outcomes
        self._statuses.update({status.name: number for status, number in auditor.outcomes.items()})
        self._statuses.update(live.state.status.name for live in auditor.live.values())

    def _read_inputs(self, partition: int) -> dict[CauseSource, InputIndex]:
        topology = self._topology
        inputs: dict[CauseSource, InputIndex] = {}
        for source, topic in (
            (CauseSource.COMMANDS, topology.commands),
            (CauseSource.FOLLOWUPS, topology.followups),
            (CauseSource.ATTEMPTS, topology.attempts),
        ):
            index = InputIndex(topic, partition, self._spans[topic.name, partition])
            # A user's command may have any key on any partition: it is sent on, or refused. Our own may not.
            keyed = source is not CauseSource.COMMANDS
            batches = self._read(topic, partition)
            for _, record in index.fill(batches, self._reader(topic, partition), self._findings, keyed=keyed):
                if source is CauseSource.FOLLOWUPS:
                    self._open.saw_followup(record)
            inputs[source] = index
        return inputs

    def _compare_schedules(self, partition: int, rows: TableRows, auditor: ScheduleAuditor) -> None:
        self._schedules += len(auditor.states)
        if self._spans[self._topology.events.name, partition].start > 0:
            self._unverifiable["schedules_of_partition_past_retention"] += len(rows.schedules)
            return
        table = ScheduleTable(rows.schedules, rows.definitions)
        fold = ScheduleTable(auditor.states, auditor.specs)
        self._table_rows += compare_schedules(self._source, self._codec, partition, table, fold, self._findings)

    def _fold(self, partition: int, auditor: JobAuditor, schedules: ScheduleAuditor) -> None:
        topic = self._topology.events
        reader = self._reader(topic, partition)
        boundary = self._view_boundary(partition)
        decode, see, counts, ledger = reader.decode, auditor.see, self._events, self._ledger
        for batch in self._read(topic, partition):
            for raw in batch:
                if boundary is not None and raw.offset >= boundary:
                    self._compare_view(partition, auditor, schedules)
                    boundary = None
                event = decode(raw)
                if type(event) not in EVENT_TYPES:
                    continue
                counts[type(event).__name__] += 1
                ledger.see(event.txn)  # type: ignore[union-attr]  # EVENT_TYPES holds the members of Event
                if type(event) not in JOB_EVENT_TYPES:
                    schedules.see(raw, event)  # type: ignore[arg-type]  # what else is in EVENT_TYPES is a ScheduleEvent
                    continue
                see(raw, event)  # type: ignore[arg-type]  # JOB_EVENT_TYPES holds the members of JobEvent
                if type(event) is CommandRejected:
                    self._codes[event.reject_code] += 1
                    if len(self._rejections) < LISTED:
                        self._rejections.append(RejectionLine.of(reader.place(raw.offset), event))
        if boundary is not None:
            self._compare_view(partition, auditor, schedules)

    def _view_boundary(self, partition: int) -> int | None:
        """The offset up to which the view is folded; None without a view."""
        if self._snapshot is None:
            return None
        position = self._snapshot.position().get(partition)
        return 0 if position is None else position.next_offset

    def _compare_view(self, partition: int, auditor: JobAuditor, schedules: ScheduleAuditor) -> None:
        assert self._snapshot is not None
        span = self._spans[self._topology.events.name, partition]
        if span.start > 0:
            self._unverifiable["view_of_partition_past_retention"] += 1
            return
        seen, suspects = compare_view(self._snapshot, partition, auditor)
        self._view_rows += seen
        self._view_schedules += compare_schedule_view(self._snapshot, partition, schedules, self._findings)
        if suspects:
            boundary = self._view_boundary(partition) or 0
            upto = Span(start=span.start, end=min(span.end, boundary))
            recheck_view(self._source, self._codec, partition, upto, suspects, self._findings)

    def _compare(self, partition: int, rows: TableRows, auditor: JobAuditor) -> None:
        from_start = self._spans[self._topology.events.name, partition].start == 0
        found = compare_table(rows, auditor)
        self._table_rows += found.rows
        self._evicted += found.evicted
        if found.suspects:
            recheck_table(self._source, self._codec, partition, found.suspects, self._findings, from_start=from_start)

    def _collect_open(self, inputs: dict[CauseSource, InputIndex], rows: TableRows) -> None:
        position = rows.position
        for source in (CauseSource.COMMANDS, CauseSource.FOLLOWUPS):
            index = inputs[source]
            if position is None:
                self._unverifiable["verdict_without_position"] += _count(index.undecided(index.span.end))
                continue
            until = position.commands_offset if source is CauseSource.COMMANDS else position.followups_offset
            undecided = _count(index.undecided(until))
            if source is CauseSource.COMMANDS:
                self._pending += _count(index.undecided(index.span.end)) - undecided
            if undecided:
                span = Span(start=index.span.start, end=min(max(until, index.span.start), index.span.end))
                batches = self._source.read(index.topic, index.partition, span)
                self._open.collect(index, until, batches, self._dead)


def _count(items: Iterable[int]) -> int:
    return sum(1 for _ in items)
