"""What must hold at the end of a run, when everything has come to rest."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from itertools import pairwise
from typing import Any

from mainspring.log.source import Raw, Span
from mainspring.log.verify import verify
from mainspring.processors.core import QueueOrder, Rules
from mainspring.processors.core.index.entries import (
    COUNTS_KEY,
    IN_FLIGHT_KEY,
    decode_counts,
    decode_ids,
    entries_of,
    is_in_flight,
)
from mainspring.processors.core.index.lanes import LANE_PREFIX
from mainspring.processors.projector.view import View
from mainspring.schemas import CauseSource, DeadLetter, JobStarted, JobState, ScheduleState
from mainspring.topics import Topic, Topology
from tests.sim.executor import Run
from tests.sim.kafka import COMMITTED, PartitionLog, Record, SimBroker
from tests.sim.site import CODEC, Site
from tests.sim.world import SECOND, Violation

__all__ = ["SimLog", "check_end"]

_CONTACT = 3 * SECOND
"""A worker that was out of contact for less than this keeps its leases, whatever else happens."""


class SimLog:
    """The log of a simulated cluster, as the product's own audit reads it."""

    def __init__(self, broker: SimBroker, topology: Topology) -> None:
        self._broker = broker
        self._topology = topology

    @property
    def topology(self) -> Topology:
        return self._topology

    @property
    def is_live(self) -> bool:
        return False

    def spans(self, topics: Sequence[Topic]) -> dict[tuple[str, int], Span]:
        return {
            log.place: Span(start=log.start, end=log.stable)
            for topic in topics
            for log in self._broker.logs(topic.name)
        }

    def read(self, topic: Topic, partition: int, span: Span) -> Iterator[Sequence[Raw]]:
        records, _ = self._broker.log((topic.name, partition)).read(span.start, committed=True)
        yield [
            Raw(record.at, record.written_at // 1000, record.key(), record.value())
            for record in records
            if record.at < span.end
        ]

    def at_time(self, topic: Topic, time_ms: int) -> Mapping[int, int | None]:
        return {}


def check_end(site: Site, *, audit: bool) -> None:
    """Raises Violation for what does not hold. `audit`: the product's own audit, too."""
    _check_transactions(site)
    _check_commands(site)
    _check_poison(site)
    _check_tables(site)
    _check_runs(site)
    site.oracle.schedules.check_end()
    log = SimLog(site.broker, site.topology)
    if site.projector is not None:
        site.projector.check(log)
    if audit:
        with _view(site) as view:
            report = verify(log, CODEC, view=view, tolerance_ms=0)
        if not report.ok:
            raise Violation("log verify", "; ".join(map(str, report.findings)))


def _view(site: Site) -> AbstractContextManager[View | None]:
    return nullcontext() if site.projector is None else View(site.projector.url)


def _check_transactions(site: Site) -> None:
    for txn, (size, seen) in site.oracle.txns.items():
        if len(seen) != size:
            raise Violation("txn complete", f"transaction {txn} has {size} events and {sorted(seen)} can be read")
    for topic in site.broker.topics:
        for log in site.broker.logs(topic):
            if log.stable != log.end:
                raise Violation("nothing open", f"{topic}[{log.place[1]}] is stable up to {log.stable} of {log.end}")


def _check_commands(site: Site) -> None:
    """No accepted command is lost: what is in the log and was read has its answer."""
    answered: Counter[str] = Counter()
    for events in site.oracle.verdicts.values():
        for event in events:
            command_id = getattr(event, "command_id", None)
            if command_id is not None:
                answered[command_id] += 1
    for sent in site.load.sent:
        if sent.place is not None and not answered[sent.command.command_id]:
            kind = type(sent.command).__name__
            raise Violation("no command lost", f"{kind} {sent.command.command_id} at {sent.place} has no answer")


def _check_poison(site: Site) -> None:
    letters: set[tuple[str, int, int]] = set()
    for log in site.broker.logs(site.topology.dead_letters.name):
        for record in log.read(0, committed=True)[0]:
            letter = CODEC.decode(record.value() or b"")
            assert isinstance(letter, DeadLetter)
            place = (letter.topic, letter.partition, letter.offset)
            if place in letters:
                raise Violation("one letter per record", str(place))
            letters.add(place)
    for poison in site.load.poison:
        if poison not in letters:
            raise Violation("poison put aside", f"{poison} has no dead letter")


def rows_of(log: PartitionLog, before: int) -> dict[bytes, bytes]:
    """The table that a changelog gives, up to an offset."""
    rows: dict[bytes, bytes] = {}
    for record in sorted(log.compacted + log.records, key=Record.offset):
        if record.at >= before:
            break
        if record.state == COMMITTED:
            key, value = record.key() or b"", record.value()
            if value is None:
                rows.pop(key, None)
            else:
                rows[key] = value
    return rows


@lru_cache(maxsize=100_000)
def _decoded(value: bytes) -> Any:
    """A row; the same bytes are on several disks, and in the changelog."""
    return CODEC.decode(value)


def _check_tables(site: Site) -> None:
    """The changelog is the fold of the events, and what is on a disk is the changelog up to its offset."""
    for log in site.broker.logs(site.topology.scheduler_changelog.name):
        for key, value in rows_of(log, log.end).items():
            row: Any = _decoded(value)
            if isinstance(row, JobState):
                _check_row(site, row)
            elif isinstance(row, ScheduleState):
                site.oracle.schedules.check_row(row)
            elif key[:1] == b"S" and row.job_id not in site.oracle.jobs:
                raise Violation("table is the fold", f"a specification of {row.job_id}, of which no event tells")
        for node in site.schedulers:
            image = node.disk.get(log.place[1])
            if image is not None and image.offset:
                where = f"{node.name} {log.place[1]} at {image.offset}"
                _check_disk(node.rules, where, image.rows, rows_of(log, image.offset))
    _check_every_job_has_its_row(site)


def _check_disk(rules: Rules, where: str, found: Mapping[bytes, bytes], rows: Mapping[bytes, bytes]) -> None:
    """A disk has the rows of the changelog, and an index with what follows from them."""
    kept = {key: value for key, value in found.items() if not key.startswith(LANE_PREFIX)}
    if {key: value for key, value in kept.items() if key[:1] != b"#"} != rows:
        raise Violation("disk is the changelog", f"{where} differs")
    orders = {name: QueueOrder(name, queue) for name, queue in rules.queues.items()}
    expected: dict[bytes, bytes] = {}
    flying: set[str] = set()
    for key, value in rows.items():
        row: Any = _decoded(value) if key[:1] == b"J" else None
        if isinstance(row, JobState):
            expected |= entries_of(row, orders.__getitem__)
            flying |= {row.job_id} if is_in_flight(row) else set()
    counts, ids = kept.pop(COUNTS_KEY, None), kept.pop(IN_FLIGHT_KEY, None)
    index = {key: value for key, value in kept.items() if key[:1] == b"#"}
    counted = tuple(sum(key.startswith(prefix) for key in index) for prefix in (b"#w", b"#d", b"#h"))
    if index != expected or set(decode_ids(ids)) != flying or decode_counts(counts) != counted:
        raise Violation("index follows from the rows", f"{where} differs")


def _check_row(site: Site, row: JobState) -> None:
    job = site.oracle.jobs.get(row.job_id)
    if job is None:
        raise Violation("table is the fold", f"a row of {row.job_id}, of which no event tells")
    mine = (job.status, job.revision, job.attempt, job.due_at_ms, job.retries, job.lost)
    theirs = (row.status.name, row.revision, row.attempt, row.due_at_ms, row.retries, row.lost)
    if mine != theirs:
        raise Violation("table is the fold", f"{row.job_id}: events give {mine}, the row says {theirs}")


def _check_every_job_has_its_row(site: Site) -> None:
    rows: set[bytes] = set()
    for log in site.broker.logs(site.topology.scheduler_changelog.name):
        rows |= rows_of(log, log.end).keys()
    if site.shape.history_max_count >= len(site.oracle.jobs):
        for schedule_id in site.oracle.schedules.present:
            if b"R" + schedule_id.encode() not in rows or b"D" + schedule_id.encode() not in rows:
                raise Violation("table is the fold", f"schedule {schedule_id} has no row")
        for job_id in site.oracle.jobs:
            if b"J" + job_id.encode() not in rows or b"S" + job_id.encode() not in rows:
                raise Violation("table is the fold", f"{job_id} has no row")


def _check_runs(site: Site) -> None:
    """What really ran: no attempt twice, and no job twice at once unless its worker was out of contact."""
    by_job: defaultdict[str, list[Run]] = defaultdict(list)
    ran: Counter[tuple[str, int]] = Counter()
    # An id whose job was forgotten by the history limit may live again, and then counts its attempts again.
    started = Counter(
        (event.job_id, event.attempt)
        for (source, *_), events in site.oracle.verdicts.items()
        if source is CauseSource.ATTEMPTS
        for event in events
        if isinstance(event, JobStarted)
    )
    for run in site.ledger.runs:
        key = (run.job_id, run.attempt)
        ran[key] += 1
        if ran[key] > started[key]:
            detail = f"{run.job_id} attempt {run.attempt} ran {ran[key]} times and was started {started[key]} times"
            raise Violation("runs what was confirmed, once", detail)
        by_job[run.job_id].append(run)
    for runs in by_job.values():
        for one, other in pairwise(runs):
            if one.attempt != other.attempt:
                _check_overlap(site, "never twice at once", *sorted((one, other), key=lambda run: run.attempt))
    for job_ids in site.oracle.schedules.alone().values():
        of_schedule = sorted((run for each in job_ids for run in by_job[each]), key=lambda run: run.start)
        for one, other in pairwise(of_schedule):
            if one.job_id != other.job_id:
                _check_overlap(site, "overlap policy kept", one, other)


def _check_overlap(site: Site, invariant: str, old: Run, new: Run) -> None:
    """Two at once that must not be: only if the worker of the older was out of contact since that was confirmed."""
    now = site.world.now
    old_end, new_end = (now if run.end is None else run.end for run in (old, new))
    if old.start >= new_end or new.start >= old_end:
        return
    confirmed = site.oracle.started_at[old.job_id, old.attempt]
    if not _was_away(site, old.process, min(confirmed, old.start), max(old.start, new.start)):
        raise Violation(
            invariant,
            f"{new.job_id}: attempt {new.attempt} ran on {new.process} from {new.start / SECOND:.3f}, and attempt "
            f"{old.attempt} of {old.job_id} on {old.process} from {old.start / SECOND:.3f} to "
            f"{old_end / SECOND:.3f}, in contact",
        )


def _was_away(site: Site, process: str, start: int, end: int) -> bool:
    """Whether a process was out of contact for long between two times."""
    return any(min(over, end) - max(begun, start) >= _CONTACT for begun, over in site.ledger.silences.get(process, ()))
