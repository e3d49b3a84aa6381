"""Keyed commands through kills and terminations of schedulers: what each was answered, how often and in which order.

Every command is one that its scheduler answers with exactly one event, so that the events are a copy of the commands,
as the copiers of Kafka's own tests of transactions make one: key by key and in order. No job ever falls due, so nothing
but schedulers takes part.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, TypeAlias

from confluent_kafka import Producer

from mainspring.schemas import (
    CancelJob,
    JobCancelled,
    JobRescheduled,
    JobSpec,
    JobSubmitted,
    Record,
    RescheduleJob,
    SubmitJob,
)
from mainspring.schemas.common import CauseSource
from mainspring.topics import partition_for
from tests.proof.board import Board
from tests.proof.faults import Faults
from tests.proof.site import Member, names

CHANGES = 4
EACH = 2 + CHANGES
"""Commands of each key: a submit, so many changes, a cancel."""
_SPREAD = 500
"""Keys whose commands are mixed with each other's, so that a fault falls between the commands of many keys."""
_FLUSH_S = 30.0
_FAR_MS = 86_400_000
_SEEN_OF_A_PART = 5
"""A fault comes when one of so many commands of the last part has been answered."""

Answer: TypeAlias = tuple[type, int, int]
"""Kind of event, partition and offset of the command that it answers."""


@dataclass(slots=True)
class Copy(Faults):
    """One run: what was asked, and the faults in the middle of it."""

    commands: int = 30_000
    faults: int = 6
    asked: dict[str, list[Answer]] = field(default_factory=dict)
    """By key, in the order of the log: what is to be answered."""
    _unsent: Iterator[Record] = field(default_factory=lambda: iter(()))
    _sent: int = 0

    def begin(self) -> None:
        """Makes the commands, and sends a part."""
        self._unsent = _mixed(self.commands // EACH)
        self.send_part()
        self.site.until(lambda: self.answered >= self._sent, "the first part to be answered")

    @property
    def answered(self) -> int:
        """Commands whose answer has been seen."""
        kinds = self.site.board.kinds
        return len(kinds[JobSubmitted]) + len(kinds[JobRescheduled]) + len(kinds[JobCancelled])

    def send_part(self) -> None:
        """Sends what is due before the next fault, and returns when it is in the log."""
        topic, codec = self.site.topology.commands, self.site.settings.codec()
        producer = Producer(self.site.settings.connection().producer_config())
        for command in islice(self._unsent, self.commands // (self.faults + 2)):
            key = _key(command)
            producer.produce(
                topic.name,
                codec.encode(command),
                key.encode(),
                partition_for(key.encode(), topic.partitions),
                on_delivery=self._note(key, _ANSWERS[type(command)]),
            )
            self._sent += 1
        assert producer.flush(_FLUSH_S) == 0

    def _note(self, key: str, kind: type) -> Any:
        def note(error: Any, message: Any) -> None:
            assert error is None, error
            self.asked.setdefault(key, []).append((kind, message.partition(), message.offset()))

        return note

    def hit(self, victim: Member, fault: int, *, kill: bool) -> None:
        """A scheduler dies, or is told to end, with a transaction open, while the others go on; then it starts again.

        Before that everything is answered, and each scheduler has partitions: else it might have nothing to write.
        """
        everybody = {member.name for member in self.site.members.values()}
        self.site.until(lambda: self.answered >= self._sent, "all that was asked to be answered")
        self.site.until(lambda: set(self.site.owners().values()) == everybody, "each scheduler to have partitions")
        before = self._sent
        self.hold(victim, fault, self.send_part)
        some = before + (self._sent - before) // _SEEN_OF_A_PART
        self.site.until(lambda: self.answered >= some, "the others to go on")
        if kill:
            victim.kill()
        else:
            victim.terminate()
            victim.order("go")
            assert victim.answer() == "committed", f"{victim.name} did not finish what it was at: {victim.tail()}"
            victim.wait_for_end()
        victim.start()

    def finish(self) -> None:
        """Sends the rest, and returns when all is answered."""
        while self._sent < self.commands:
            self.send_part()
        self.site.until(lambda: self.answered >= self.commands, "every command to be answered")

    def assert_the_copy_is_exact(self) -> None:
        """Each command has one answer, and the answers of each key come in the order of its commands.

        So it was seen while it happened, and so it is read by whoever comes later.
        """
        board = self.site.board
        assert sum(map(len, self.asked.values())) == self.commands
        assert_exact(board, self.asked)
        with Board(self.site.settings.connection(), self.site.topology) as again:
            seen = sum(map(len, board.lives.values()))
            again.until(lambda: sum(map(len, again.lives.values())) >= seen, "the whole log to be read again")
            assert_exact(again, self.asked)

    def assert_the_log_agrees(self) -> None:
        """`mainspring log verify`: fold, tables, whole transactions."""
        code, report = self.site.verify("--no-view")
        assert code == 0, report
        assert report["jobs_by_status"] == {"CANCELLED": self.commands // EACH}


_ANSWERS: dict[type, type] = {SubmitJob: JobSubmitted, RescheduleJob: JobRescheduled, CancelJob: JobCancelled}


def assert_exact(board: Board, asked: dict[str, list[Answer]]) -> None:
    """What a board has seen is what was asked, key by key."""
    found = {
        key: [(type(event), event.cause.partition, event.cause.offset) for event in events]
        for key, events in board.lives.items()
    }
    assert {event.cause.source for events in board.lives.values() for event in events} == {CauseSource.COMMANDS}
    lost = set(chain.from_iterable(asked.values())) - set(chain.from_iterable(found.values()))
    assert lost == set(), f"{len(lost)} commands were never answered"
    wrong = {key: (asked[key], found[key]) for key in asked if found[key] != asked[key]}
    assert wrong == {}, f"{len(wrong)} keys were answered twice, or in another order"
    assert found.keys() == asked.keys()


def _mixed(keys: int) -> Iterator[Record]:
    """The commands of so many keys: those of one after the other, among those of others."""
    ids = names("key", keys)
    due_ms = time.time_ns() // 1_000_000 + _FAR_MS
    for first in range(0, keys, _SPREAD):
        for step in range(EACH):
            for job_id in ids[first : first + _SPREAD]:
                yield _command(job_id, step, due_ms)


def _command(job_id: str, step: int, due_ms: int) -> Record:
    common: dict[str, Any] = {"command_id": f"{job_id}.{step}", "actor": "proof", "requested_at_ms": 0}
    if step == 0:
        return SubmitJob(spec=JobSpec(job_id=job_id, name="quick", run_at_ms=due_ms), **common)
    if step == EACH - 1:
        return CancelJob(job_id=job_id, **common)
    return RescheduleJob(job_id=job_id, run_at_ms=due_ms + step, **common)


def _key(command: Any) -> str:
    key: str = command.spec.job_id if isinstance(command, SubmitJob) else command.job_id
    return key
