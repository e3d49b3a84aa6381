"""What must hold, looked at while it happens: each event when it becomes readable, each transaction at its end."""

from collections import defaultdict
from typing import Any

from mainspring.processors.engine.ports import Place
from mainspring.schemas import (
    SCHEDULE_EVENT_TYPES,
    AttemptSucceeded,
    CauseSource,
    Codec,
    CommandRejected,
    JobCompleted,
    JobStarted,
    JobSubmitted,
    PositionRow,
    ReportRefused,
)
from mainspring.topics import Topology
from tests.sim.executor import Run
from tests.sim.kafka import COMMITTED, PartitionLog, SimBroker
from tests.sim.model import JobModel
from tests.sim.schedule_book import ScheduleBook
from tests.sim.world import Violation, World

__all__ = ["Oracle"]

_POSITION = b"!position"


class Oracle:
    """Reads as any reader of committed records would, and knows what it has read."""

    def __init__(
        self, world: World, broker: SimBroker, topology: Topology, codec: Codec, *, forgets: bool = True
    ) -> None:
        """`forgets`: whether the history limit takes finished jobs out of the tables."""
        self.jobs: dict[str, JobModel] = {}
        self.schedules = ScheduleBook(world)
        self.events = 0
        self.verdicts: dict[tuple[CauseSource, int, int], list[Any]] = defaultdict(list)
        """By the place of an input, what was decided on it."""
        self.clock_ahead_ms = 0
        """How far any machine's wall clock has been ahead of the truth."""
        self.lateness_ms: list[int] = []
        self.started_at: dict[tuple[str, int], int] = {}
        """By job and attempt, when its start could be read."""
        self.txns: dict[int, tuple[int, set[int]]] = {}
        """By transaction, how many events it has and which have been seen."""
        self._world = world
        self._broker = broker
        self._topology = topology
        self._codec = codec
        self._forgets = forgets
        self._read: dict[int, int] = {}
        self._sources = {
            CauseSource.COMMANDS: topology.commands.name,
            CauseSource.FOLLOWUPS: topology.followups.name,
            CauseSource.ATTEMPTS: topology.attempts.name,
        }
        self._inputs = (topology.commands.name, topology.followups.name, topology.attempts.name)
        self._group = broker.groups.get(topology.group("scheduler"))
        for log in broker.logs(topology.events.name):
            self._read[log.place[1]] = 0
            log.on_visible.append(self._more)
        broker.transactions.on_end.append(self._transaction_over)

    def _more(self, log: PartitionLog) -> None:
        """More events can be read."""
        number = log.place[1]
        records, self._read[number] = log.read(self._read[number], committed=True)
        for record in records:
            event: Any = self._codec.decode(record.value() or b"")
            self.events += 1
            about = event.schedule_id if type(event) in SCHEDULE_EVENT_TYPES else event.job_id
            self._world.note("event", number, record.at, type(event).__name__, about, event.revision)
            self._see(event, number)

    def _see(self, event: Any, number: int) -> None:
        self._see_txn(event)
        cause = event.cause
        if cause.source is not CauseSource.TIMER:
            self._see_cause(event, number)
        if type(event) in SCHEDULE_EVENT_TYPES:
            self.schedules.see(event)
            return
        self.schedules.see_job(event)
        if isinstance(event, CommandRejected):
            self._world.saw(f"command rejected: {event.reject_code}")
            return
        if isinstance(event, ReportRefused):
            self._world.saw(f"report refused: {event.refusal}")
            return
        job = self.jobs.get(event.job_id)
        if job is None or (isinstance(event, JobSubmitted) and job.is_over):
            # A job that was forgotten by the history limit frees its id.
            if job is not None and not self._forgets:
                raise Violation("one fire, one job", f"{event.job_id} was submitted again; {' '.join(job.history)}")
            job = self.jobs[event.job_id] = JobModel(event.job_id, submitted=self._world.now)
        token = job.token
        job.see(event)
        reason = getattr(event, "reason", "")
        if "@" in reason or isinstance(event, JobSubmitted):
            # It names an instance, or a version.
            reason = getattr(event, "cancel_code", "")
        self._world.saw(f"{type(event).__name__} {reason}".strip())
        if isinstance(event, JobStarted):
            self._see_start(event)
        elif isinstance(event, JobCompleted):
            self._see_completion(event, token)

    def _see_txn(self, event: Any) -> None:
        txn = event.txn
        size, seen = self.txns.setdefault(txn.id, (txn.size, set()))
        if txn.index in seen or txn.index >= size or txn.size != size:
            raise Violation("txn complete", f"event {txn.index} of {txn.size} of transaction {txn.id} is there twice")
        seen.add(txn.index)

    def _see_cause(self, event: Any, number: int) -> None:
        cause = event.cause
        if cause.partition != number:
            raise Violation("caused", f"{type(event).__name__} on {number} has its cause elsewhere")
        decided = self.verdicts[cause.source, cause.partition, cause.offset]
        decided.append(event)
        # What a schedule decides on one input may be several events, of one transaction.
        if len(decided) > 1 and not (
            event.txn.id == decided[0].txn.id and {type(event), type(decided[0])} <= SCHEDULE_EVENT_TYPES
        ):
            both = ", ".join(f"{type(each).__name__}#{each.revision}" for each in decided)
            raise Violation("one verdict per input", f"{cause.source.name}[{number}]@{cause.offset}: {both}")

    def _see_start(self, event: JobStarted) -> None:
        early = event.due_at_ms - self._world.true_ms
        if early > self.clock_ahead_ms:
            raise Violation("never early", f"{event.job_id} started {early} ms before its time")
        self.started_at[event.job_id, event.attempt] = self._world.now
        self.lateness_ms.append(max(0, event.decided_at_ms - event.due_at_ms))

    def _see_completion(self, event: JobCompleted, token: tuple[int, str, str] | None) -> None:
        place = (self._sources[event.cause.source], event.cause.partition)
        log = self._broker.log(place)
        report: Any = self._codec.decode(log.records[log.index(event.cause.offset)].value() or b"")
        if not isinstance(report, AttemptSucceeded):
            raise Violation("accepted token", f"{event.job_id} completed by a {type(report).__name__}")
        if (report.attempt, report.worker_id, report.incarnation) != token:
            mine = (report.attempt, report.worker_id, report.incarnation)
            raise Violation("accepted token", f"{event.job_id} was held by {token} and completed by {mine}")

    def see_run(self, run: Run) -> None:
        """Code begins to run. A lease that the worker believes in is one that the scheduler has not taken away."""
        job = self.jobs.get(run.job_id)
        if job is None or job.attempt < run.attempt:
            return  # its start cannot be read yet: a marker is on its way
        if self._world.resumed.get(run.process) == self._world.now:
            return  # it stood still between its look at the lease and this: no program can tell
        if job.is_replaced:
            return  # that is told to its worker, which has a lease until it hears
        if job.token is None or (job.token[0], job.token[2]) != (run.attempt, run.process):
            detail = f"attempt {run.attempt} of {run.job_id} begins on {run.process}, and {job.token} holds the job"
            raise Violation("runs only what it holds", f"{detail}; {' '.join(job.history[-12:])}")

    def _transaction_over(self, name: str, producer_id: int, *, commit: bool, places: list[Place]) -> None:
        """Offsets, rows and outputs are of one piece: after each commit the position row says what the group says."""
        if not commit:
            return
        for place in places:
            is_row = place[0] == self._topology.scheduler_changelog.name
            if is_row and not self._broker.transactions.is_settling(place):
                self._check_position(place[1])

    def _check_position(self, number: int) -> None:
        row = self.position(number)
        if row is None:
            return
        wanted = dict(zip(self._inputs, (row.commands_offset, row.followups_offset, row.attempts_offset), strict=True))
        for topic, offset in wanted.items():
            mark = self._group.committed.get((topic, number))
            if mark is None or mark.offset != offset:
                at = None if mark is None else mark.offset
                raise Violation(
                    "offsets with outputs", f"{topic}[{number}]: the group is at {at}, the position row says {offset}"
                )

    def position(self, number: int) -> PositionRow | None:
        """The newest committed position row of a partition."""
        log = self._broker.log((self._topology.scheduler_changelog.name, number))
        for record in reversed(log.records):
            if record.state == COMMITTED and record.key() == _POSITION:
                row = self._codec.decode(record.value() or b"")
                assert isinstance(row, PositionRow)
                return row
        return None
