"""The inputs of one partition: which offsets hold a record, about which job, and whether an event was decided on it."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mainspring.log.source import Place, Raw, Span
from mainspring.log.verify.decoding import Reader
from mainspring.log.verify.findings import Check, Findings
from mainspring.schemas.attempts import AttemptHeartbeat
from mainspring.schemas.commands import CreateSchedule, SubmitJob, UpdateSchedule
from mainspring.schemas.followups import ForwardedCommand, InstanceFinished
from mainspring.schemas.records import Record
from mainspring.topics import Topic, partition_for

__all__ = ["InputIndex", "job_of", "short_hash"]


def short_hash(job_id: str) -> int:
    """32 bits of a job id, never zero; within one process only."""
    return (hash(job_id) & 0xFFFF_FFFF) or 1


def job_of(record: Record, key: bytes | None) -> str | None:
    """The job or schedule that an input with this record key is about; None for a heartbeat."""
    if type(record) is SubmitJob:
        return record.spec.job_id
    if type(record) is AttemptHeartbeat:
        return None
    if type(record) is ForwardedCommand:
        return _key_text(key)  # Its own `key` is the one that the command had where it went astray.
    if type(record) is CreateSchedule or type(record) is UpdateSchedule:
        return record.spec.schedule_id
    if type(record) is InstanceFinished:
        return record.schedule_id
    about: str = getattr(record, "job_id", None) or getattr(record, "schedule_id")  # noqa: B009  # every other input names one; a type checker sees the union
    return about


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What the index knows of one offset."""

    is_there: bool
    is_about_job: bool
    was_decided: bool


class InputIndex:
    """Five bytes an offset: enough to check each event's cause without holding the inputs."""

    def __init__(self, topic: Topic, partition: int, span: Span) -> None:
        self.topic = topic
        self.partition = partition
        self.span = span
        self.records = 0
        self._jobs = array("I", bytes(4 * span.offsets))
        self._decided = bytearray(span.offsets)

    def fill(
        self, batches: Iterable[Sequence[Raw]], reader: Reader, findings: Findings, *, keyed: bool
    ) -> Iterator[tuple[Raw, Record | None]]:
        """Reads the span, yielding each record with its bytes. `keyed` checks that keys are on their partition."""
        start, jobs = self.span.start, self._jobs
        for batch in batches:
            self.records += len(batch)
            for raw in batch:
                record = reader.decode(raw)
                job_id = job_of(record, raw.key) if record is not None else _key_text(raw.key)
                jobs[raw.offset - start] = short_hash(job_id) if job_id is not None else 1
                if keyed and record is not None and job_id is not None:
                    self._check_key(raw, job_id, reader, findings)
                yield raw, record

    def _check_key(self, raw: Raw, job_id: str, reader: Reader, findings: Findings) -> None:
        key = job_id.encode()
        if raw.key != key:
            findings.add(
                Check.BAD_KEY,
                f"the key is {raw.key!r} and the record is about {job_id!r}",
                place=reader.place(raw.offset),
                job_id=job_id,
            )
        elif partition_for(key, self.topic.partitions) != self.partition:
            findings.add(
                Check.WRONG_PARTITION,
                f"{job_id!r} belongs on partition {partition_for(key, self.topic.partitions)}",
                place=reader.place(raw.offset),
                job_id=job_id,
            )

    def decide(self, offset: int, job_id: str) -> Cause:
        """Notes that an event names this offset as its cause; tells what is known of it."""
        at = offset - self.span.start
        job = self._jobs[at]
        was_decided = bool(self._decided[at])
        self._decided[at] = 1
        return Cause(is_there=job != 0, is_about_job=job == short_hash(job_id), was_decided=was_decided)

    def undecided(self, until: int) -> Iterator[int]:
        """Offsets below `until` that hold a record on which nothing was decided."""
        start, jobs, decided = self.span.start, self._jobs, self._decided
        for at in range(min(until, self.span.end) - start):
            if not decided[at] and jobs[at]:
                yield start + at

    def place(self, offset: int) -> Place:
        """Where an input stands."""
        return Place(topic=self.topic.name, partition=self.partition, offset=offset)


def _key_text(key: bytes | None) -> str | None:
    return None if key is None else key.decode("utf-8", "replace")
