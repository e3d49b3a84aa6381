"""From records of the input topics to inputs of the core: decoded, of a right type, on the right partition."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from mainspring.processors.core import Now, PartitionCore
from mainspring.processors.engine.errors import RecordError
from mainspring.processors.engine.ports import Received
from mainspring.processors.scheduler.letters import dead_letter
from mainspring.processors.scheduler.placement import Placed
from mainspring.schemas import (
    AttemptClaimed,
    Cause,
    CauseSource,
    Codec,
    Command,
    DeadLetter,
    DeadLetterReason,
    ForwardedCommand,
    InstanceFinished,
    OfferDeclined,
    Record,
    RejectCode,
    ScheduleCommand,
    SubmitJob,
    UnreadableRecordError,
)
from mainspring.schemas.build import quick
from mainspring.schemas.limits import check_command
from mainspring.schemas.schedule_limits import schedule_of
from mainspring.topics import Topology, partition_for

__all__ = ["Intake", "IntakeContext"]

_new_cause = quick(Cause)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeContext:
    """What the intakes of a process share."""

    codec: Codec
    topology: Topology
    recorded_by: str


@dataclass(slots=True)
class Forwarded:
    """What the intake itself has to write: letters, and commands for other partitions."""

    letters: list[tuple[bytes | None, DeadLetter]] = field(default_factory=list)
    followups: list[tuple[int, bytes, ForwardedCommand]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.letters or self.followups)


class Intake:
    """The inputs of one partition."""

    def __init__(self, partition: int, context: IntakeContext, placed: Placed) -> None:
        topology = context.topology
        self._partition = partition
        self._partitions = topology.partitions
        self._decode = context.codec.decode
        self._recorded_by = context.recorded_by
        self._placed = placed
        self._sources = {
            topology.commands.name: CauseSource.COMMANDS,
            topology.followups.name: CauseSource.FOLLOWUPS,
            topology.attempts.name: CauseSource.ATTEMPTS,
        }
        self._types = {
            topic.name: frozenset(topic.values) for topic in (topology.commands, topology.followups, topology.attempts)
        }
        self.out = Forwarded()

    def apply(self, core: PartitionCore, topic: str, records: Sequence[Received], now: Now) -> None:
        """Gives records of one topic to the core, in order. Raises `RecordError` for one that makes the core fail."""
        source = self._sources[topic]
        expected = self._types[topic]
        partition = self._partition
        take = self._take_report if source is CauseSource.ATTEMPTS else self._take_command
        for received in records:
            record = self._read(received, expected, now)
            if record is None:
                continue
            cause = _new_cause(source=source, partition=partition, offset=received.offset())
            try:
                take(core, record, received, cause, now)
            except Exception as error:
                raise RecordError(received, f"{type(error).__name__}: {error}") from error

    def condemn(self, core: PartitionCore, received: Received, detail: str, now: Now, *, close: bool) -> None:
        """Puts a record aside that cannot be applied, and closes its job. Raises `RecordError` when that fails, too."""
        self.put_aside(received, DeadLetterReason.UNPROCESSABLE, detail, now)
        if not close:
            return
        try:
            record = self._decode(received.value() or b"")
        except UnreadableRecordError:
            return
        cause = Cause(source=self._sources[received.topic()], partition=self._partition, offset=received.offset())
        try:
            self._close(core, record, detail, cause, now)
        except Exception as error:
            raise RecordError(received, f"{detail}; and its job could not be closed: {error!r}") from error

    @staticmethod
    def _close(core: PartitionCore, record: Record, detail: str, cause: Cause, now: Now) -> None:
        if isinstance(record, ScheduleCommand):
            core.refuse(record, RejectCode.UNPROCESSABLE, detail, cause, now)
        elif isinstance(record, SubmitJob) and record.spec.schedule_id and cause.source is CauseSource.FOLLOWUPS:
            core.refuse_fired(record, detail, cause, now)
        elif not isinstance(record, InstanceFinished):
            job_id = _job_id(record)
            if job_id is not None:
                core.close(job_id, detail, cause, now)

    def put_aside(self, received: Received, reason: DeadLetterReason, detail: str, now: Now) -> None:
        """Writes a dead letter in this transaction."""
        letter = dead_letter(received, reason, detail, self._recorded_by, now)
        # Not the record's own key: one as large as a record would leave no room for the letter.
        self.out.letters.append((letter.key, letter))

    def drain(self) -> Forwarded:
        """What the intake has to write, once."""
        out, self.out = self.out, Forwarded()
        return out

    def _read(self, received: Received, expected: frozenset[type], now: Now) -> Record | None:
        value = received.value()
        if value is None:
            self.put_aside(received, DeadLetterReason.UNDECODABLE, "a record without a value", now)
            return None
        try:
            record = self._decode(value)
        except UnreadableRecordError as error:
            self.put_aside(received, error.reason, error.detail, now)
            return None
        if type(record) not in expected:
            detail = f"{type(record).__name__} does not belong on {received.topic()}"
            self.put_aside(received, DeadLetterReason.UNEXPECTED_TYPE, detail, now)
            return None
        return record

    def _take_report(self, core: PartitionCore, record: Record, received: Received, cause: Cause, now: Now) -> None:
        if isinstance(record, AttemptClaimed | OfferDeclined):
            self._placed.answered(record.job_id, record.incarnation)
        core.apply(record, cause, now, received.value() or b"")

    def _take_command(self, core: PartitionCore, record: Record, received: Received, cause: Cause, now: Now) -> None:
        if type(record) is ForwardedCommand:
            self._take_forwarded(core, record, received, cause, now)
            return
        about = _about(record)
        if not about:
            self.put_aside(received, DeadLetterReason.BAD_KEY, "a command without an id has no partition", now)
            return
        identity = about.encode("utf-8", "surrogatepass")
        home = partition_for(identity, self._partitions)
        if home != self._partition:
            self._forward(received, identity, home, now)
        elif received.key() == identity:
            core.apply(record, cause, now)
        else:
            self._refuse_key(core, record, received.key(), cause, now)

    def _forward(self, received: Received, identity: bytes, home: int, now: Now) -> None:
        """Another partition knows this job: the client has another partitioner, or gave no key."""
        if received.topic() not in self._types or self._sources[received.topic()] is not CauseSource.COMMANDS:
            detail = f"a follow-up for partition {home} on partition {self._partition}"
            self.put_aside(received, DeadLetterReason.BAD_KEY, detail, now)
            return
        followup = ForwardedCommand(
            key=(received.key() or b"").decode("utf-8", "backslashreplace"),
            topic=received.topic(),
            partition=received.partition(),
            offset=received.offset(),
            value=received.value() or b"",
        )
        self.out.followups.append((home, identity, followup))

    def _take_forwarded(
        self, core: PartitionCore, record: ForwardedCommand, received: Received, cause: Cause, now: Now
    ) -> None:
        try:
            command = self._decode(record.value)
        except UnreadableRecordError as error:
            self.put_aside(received, error.reason, f"inside a forwarded command: {error.detail}", now)
            return
        about = _about(command)
        if not isinstance(command, Command) or not about:
            detail = f"{type(command).__name__} was forwarded, and only commands are"
            self.put_aside(received, DeadLetterReason.UNEXPECTED_TYPE, detail, now)
        elif partition_for(about.encode("utf-8", "surrogatepass"), self._partitions) != self._partition:
            detail = f"forwarded to partition {self._partition}, where it does not belong"
            self.put_aside(received, DeadLetterReason.BAD_KEY, detail, now)
        elif record.key == about:
            self._apply_forwarded(core, command, cause, now)
        else:
            self._refuse_key(core, command, record.key.encode() or None, cause, now)

    @staticmethod
    def _apply_forwarded(core: PartitionCore, command: Command, cause: Cause, now: Now) -> None:
        """Checked as what it is, a user's: the core takes a submit that names a schedule for one of that schedule."""
        problem = check_command(command) if isinstance(command, SubmitJob) else None
        if problem is None:
            core.apply(command, cause, now)
        else:
            core.refuse(command, problem.code, problem.message, cause, now)

    @staticmethod
    def _refuse_key(core: PartitionCore, command: Record, key: bytes | None, cause: Cause, now: Now) -> None:
        assert isinstance(command, Command)
        found = "there is none" if key is None else f"it is {key[:64].decode('utf-8', 'backslashreplace')!r}"
        message = (
            f"the key of a command must be the id it is about, and {found}: commands of one id would not stay in order"
        )
        core.refuse(command, RejectCode.BAD_KEY, message, cause, now)


def _about(record: Record) -> str | None:
    """The id that a command or follow-up is about, which is its key."""
    if isinstance(record, SubmitJob):
        return record.spec.job_id
    if isinstance(record, ScheduleCommand):
        return schedule_of(record)
    if isinstance(record, InstanceFinished):
        return record.schedule_id
    return _job_id(record)


def _job_id(record: Record) -> str | None:
    if isinstance(record, SubmitJob):
        return record.spec.job_id
    job_id: str | None = getattr(record, "job_id", None)
    return job_id
