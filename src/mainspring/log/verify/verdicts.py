"""Was every command answered? Most are by an event that names them; the rest were repeated, retried or sent on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mainspring.log.source import LogSource, Place, Raw
from mainspring.log.verify.decoding import DeadPlaces, Reader
from mainspring.log.verify.findings import Check, Findings
from mainspring.log.verify.inputs import InputIndex, job_of
from mainspring.schemas import Codec, UnreadableRecordError
from mainspring.schemas.commands import RetryJob, SubmitJob
from mainspring.schemas.followups import ForwardedCommand
from mainspring.schemas.records import Command, Record
from mainspring.topics import partition_for

__all__ = ["OpenCommands"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    place: Place
    command_id: str
    job_id: str
    kind: str


class OpenCommands:
    """Commands on which no event was decided, until it is known why."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._open: list[_Open] = []
        self._submitted_on: set[int] = set()
        self._forwarded: set[int] = set()

    def saw_followup(self, record: Record | None) -> None:
        """Notes what a follow-up carries on: a retry's submit, or a command from another partition."""
        if type(record) is SubmitJob:
            self._submitted_on.add(hash(record.command_id))
        elif type(record) is ForwardedCommand:
            self._forwarded.add(hash((record.topic, record.partition, record.offset)))

    def collect(self, index: InputIndex, until: int, batches: Iterable[Sequence[Raw]], dead: DeadPlaces) -> None:
        """Takes the inputs below `until` on which nothing was decided; `batches` reads the span once more."""
        wanted = set(index.undecided(until))
        reader = Reader(self._codec, index.topic, index.partition, Findings(), DeadPlaces())
        for batch in batches:
            for raw in batch:
                if raw.offset not in wanted or index.place(raw.offset) in dead:
                    continue
                command = self._command(reader.decode(raw))
                if command is not None:
                    self._add(index.place(raw.offset), command)

    def _command(self, record: Record | None) -> Command | None:
        if type(record) is ForwardedCommand:
            try:
                inner = self._codec.decode(record.value)
            except UnreadableRecordError:
                return None
            return self._command(inner)
        return record if record is not None and hasattr(record, "command_id") else None  # type: ignore[return-value]  # of inputs only commands have one

    def _add(self, place: Place, command: Command) -> None:
        if hash((place.topic, place.partition, place.offset)) in self._forwarded:
            return
        if isinstance(command, RetryJob) and hash(command.command_id) in self._submitted_on:
            return
        job_id = job_of(command, None) or ""
        self._open.append(_Open(place=place, command_id=command.command_id, job_id=job_id, kind=type(command).__name__))

    def resolve(self, source: LogSource, findings: Findings) -> None:
        """Reports what stays without an answer: neither sent on, nor the repeat of a command that has its verdict."""
        waiting = [each for each in self._open if not self._was_sent_on(each)]
        if not waiting:
            return
        topic = source.topology.events
        spans = source.spans([topic])
        answered: set[str] = set()
        for partition in sorted({partition_for(each.job_id.encode(), topic.partitions) for each in waiting}):
            ids = {each.command_id for each in waiting}
            reader = Reader(self._codec, topic, partition, Findings(), DeadPlaces())
            for batch in source.read(topic, partition, spans[topic.name, partition]):
                for raw in batch:
                    command_id = getattr(reader.decode(raw), "command_id", None)
                    if command_id in ids:
                        answered.add(command_id)
        for each in sorted(waiting, key=lambda open_: open_.place):
            if each.command_id not in answered:
                findings.add(
                    Check.NO_VERDICT,
                    f"{each.kind} {each.command_id!r} for job {each.job_id!r} was read and nothing was decided on it",
                    place=each.place,
                    job_id=each.job_id,
                )

    def _was_sent_on(self, each: _Open) -> bool:
        place = each.place
        if hash((place.topic, place.partition, place.offset)) in self._forwarded:
            return True
        return each.kind == RetryJob.__name__ and hash(each.command_id) in self._submitted_on
