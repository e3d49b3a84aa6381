"""All topics of an installation, as values: from here they are made, compared, documented and granted."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

from mainspring.schemas import (
    AttemptReport,
    Command,
    DeadLetter,
    Event,
    Followup,
    LogCaptured,
    Priority,
    Signal,
    TableRow,
    WorkOffered,
)
from mainspring.schemas.bounds import PREFIX_MAX_CHARS, RECORD_MAX_BYTES
from mainspring.schemas.limits import check_queue
from mainspring.topics.errors import TopologyError, UnknownQueueError
from mainspring.topics.topic import Role, Topic

__all__ = ["CHANGELOG_DELETE_RETENTION_MS", "INTERNAL_MAX_BYTES", "RESERVED_ROLES", "Topology"]

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS

INTERNAL_MAX_BYTES = 2 * RECORD_MAX_BYTES
"""Largest record of every topic but `commands`: what was accepted there fits, with all that is written around it."""

CHANGELOG_DELETE_RETENTION_MS = 7 * _DAY_MS
"""How long a deleted row's tombstone stays in the changelog. A store that was away for longer may have missed it."""

RESERVED_ROLES = ("limits",)
"""Topics that are to come: their names are taken, nothing makes them yet."""

_PREFIX = re.compile(r"[A-Za-z0-9._-]+")
_EVERYONE = frozenset(Role) - {Role.OPERATOR}


@dataclass(frozen=True, kw_only=True)
class Topology:
    """The topics of one installation. Two installations on one cluster differ in `prefix`.

    `partitions` is the count of the co-partitioned topics and fixed once they are made; `work_partitions` that of each
    work topic, and so the most workers that share a lane. `events_retention_ms` -1 keeps the log for ever.
    """

    prefix: str = "mainspring."
    queues: tuple[str, ...] = ("default",)
    partitions: int = 12
    work_partitions: int = 12
    replication: int = 1
    min_isr: int = 1
    events_retention_ms: int = -1

    def __post_init__(self) -> None:
        if len(self.prefix) > PREFIX_MAX_CHARS or not _PREFIX.fullmatch(self.prefix):
            raise TopologyError(
                f"prefix {self.prefix!r} must be 1 to {PREFIX_MAX_CHARS} of: ASCII letters, digits, '.', '_', '-'"
            )
        for queue in self.queues:
            problem = check_queue(queue)
            if problem is not None:
                raise TopologyError(problem.message)
        if not self.queues or len(set(self.queues)) != len(self.queues):
            raise TopologyError(f"queues must be at least one, each once, not {self.queues}")
        for field in ("partitions", "work_partitions", "replication", "min_isr"):
            if getattr(self, field) < 1:
                raise TopologyError(f"{field} must be at least 1, not {getattr(self, field)}")
        if self.min_isr > self.replication:
            raise TopologyError(
                f"min_isr {self.min_isr} exceeds replication {self.replication}: no write could ever succeed"
            )

    def group(self, name: str) -> str:
        """The consumer group of a part, such as `scheduler` or `worker`."""
        return f"{self.prefix}{name}"

    def transactional_id(self, slot: str) -> str:
        """The transactional id of the scheduler that holds `slot`; at most one live process may."""
        return f"{self.prefix}scheduler.{slot}"

    @cached_property
    def commands(self) -> Topic:
        """What users ask for."""
        return self._topic(
            "commands",
            key="job id or schedule id",
            values=get_args(Command),
            config=_delete(30 * _DAY_MS, RECORD_MAX_BYTES) | _APPEND_TIME,
            writers={Role.CLIENT},
            readers={Role.SCHEDULER, Role.OBSERVER},
            why="What users ask for, from any client. Kept for longer than any outage of the schedulers, because a "
            "command that expires unread is lost; after it was read, `events` tell all of it.",
        )

    @cached_property
    def followups(self) -> Topic:
        """What one partition tells another."""
        return self._topic(
            "followups",
            key="job id or schedule id",
            values=get_args(Followup),
            config=_delete(30 * _DAY_MS),
            writers={Role.SCHEDULER},
            readers={Role.SCHEDULER, Role.OBSERVER},
            why="What one partition tells another. Kept as long as `commands`: an unread one is a promise to keep.",
        )

    @cached_property
    def attempts(self) -> Topic:
        """What workers report."""
        return self._topic(
            "attempts",
            key="job id; heartbeats: worker id, on the partition of the jobs they name",
            values=get_args(AttemptReport),
            config=_delete(7 * _DAY_MS),
            writers={Role.WORKER},
            readers={Role.SCHEDULER, Role.OBSERVER},
            why="What workers report. Mostly heartbeats, which are worthless within seconds; an unread outcome must "
            "survive an outage of the schedulers.",
        )

    @cached_property
    def events(self) -> Topic:
        """What was decided."""
        return self._topic(
            "events",
            key="job id or schedule id",
            values=get_args(Event),
            config=_delete(self.events_retention_ms) | _APPEND_TIME,
            writers={Role.SCHEDULER},
            readers=_EVERYONE - {Role.WORKER},
            why="What was decided: the log that every view is a fold of, kept for ever unless told otherwise. Only "
            "the scheduler writes it, so no worker can forge a transition.",
        )

    @cached_property
    def signals(self) -> Topic:
        """What the scheduler tells one worker."""
        return self._topic(
            "signals",
            key="worker id",
            values=get_args(Signal),
            config=_delete(_DAY_MS) | {"segment.ms": str(6 * _HOUR_MS)},
            writers={Role.SCHEDULER},
            readers={Role.WORKER, Role.OBSERVER},
            copartitioned=False,
            why="What the scheduler tells one worker, which reads from the end it saw at its start: old ones are void.",
        )

    @cached_property
    def logs(self) -> Topic:
        """Captured output of attempts."""
        return self._topic(
            "logs",
            key="job id",
            values=(LogCaptured,),
            config=_delete(30 * _DAY_MS),
            writers={Role.WORKER},
            readers=_EVERYONE - {Role.WORKER, Role.SCHEDULER},
            copartitioned=False,
            why="Captured output of attempts: for people, for a month.",
        )

    @cached_property
    def dead_letters(self) -> Topic:
        """Records that nobody could read or apply."""
        return self._topic(
            "dead-letters",
            key="key of the original record",
            values=(DeadLetter,),
            config=_delete(90 * _DAY_MS),
            writers={Role.SCHEDULER, Role.WORKER, Role.PROJECTOR},
            readers={Role.CLIENT, Role.OBSERVER},
            partitions=1,
            copartitioned=False,
            why="Records that could not be read or applied, with their bytes and the reason. Rare, hence one "
            "partition; kept until somebody had time to look.",
        )

    @cached_property
    def scheduler_changelog(self) -> Topic:
        """Rows of the scheduler's tables."""
        return self._topic(
            "scheduler-changelog",
            key="`S` or `J` + job id, `D` or `R` + schedule id, or `!position`",
            values=get_args(TableRow),
            config={
                "cleanup.policy": "compact",
                "delete.retention.ms": str(CHANGELOG_DELETE_RETENTION_MS),
                "max.message.bytes": str(INTERNAL_MAX_BYTES),
                "min.cleanable.dirty.ratio": "0.3",
                "min.compaction.lag.ms": str(_HOUR_MS),
                "segment.bytes": str(128 * 1024 * 1024),
                "segment.ms": str(_DAY_MS),
            },
            writers={Role.SCHEDULER},
            readers={Role.SCHEDULER, Role.OBSERVER},
            why="The rows of the scheduler's tables, one per key after compaction, to restore them from. Young rows "
            "stay for an hour, so that a torn write can be looked into; tombstones for a week, so that a store that "
            "was away learns of them.",
        )

    def work(self, queue: str, priority: Priority) -> Topic:
        """The topic of one lane. Raises `UnknownQueueError` for a queue that is not declared."""
        topic = self._work.get((queue, priority))
        if topic is None:
            raise UnknownQueueError(queue, self.queues)
        return topic

    @cached_property
    def _work(self) -> Mapping[tuple[str, Priority], Topic]:
        return {
            (queue, lane): self._topic(
                f"work.{queue}.{lane.name.lower()}",
                key="job id",
                values=(WorkOffered,),
                config=_delete(_DAY_MS) | {"segment.ms": str(6 * _HOUR_MS)},
                writers={Role.SCHEDULER},
                readers={Role.WORKER, Role.OBSERVER},
                partitions=self.work_partitions,
                copartitioned=False,
                growable=True,
                why="Invitations to run a job. Unanswered ones are renewed within seconds: old ones are worth nothing.",
            )
            for queue in self.queues
            for lane in sorted(Priority, reverse=True)
        }

    def all(self) -> tuple[Topic, ...]:
        """Every topic, in the order of the documentation."""
        return (
            self.commands,
            self.followups,
            self.attempts,
            self.events,
            *self._work.values(),
            self.signals,
            self.logs,
            self.scheduler_changelog,
            self.dead_letters,
        )

    def subjects(self) -> tuple[tuple[str, type[Any]], ...]:
        """Subject and record of everything that a schema registry has to know (TopicRecordNameStrategy)."""
        return tuple(
            (f"{topic.name}-mainspring.{kind.__name__}", kind) for topic in self.all() for kind in topic.values
        )

    def _topic(
        self,
        role: str,
        *,
        key: str,
        values: tuple[type[Any], ...],
        config: Mapping[str, str],
        writers: set[Role],
        readers: set[Role] | frozenset[Role],
        why: str,
        partitions: int | None = None,
        copartitioned: bool = True,
        growable: bool = False,
    ) -> Topic:
        everywhere = {"min.insync.replicas": str(self.min_isr), "unclean.leader.election.enable": "false"}
        return Topic(
            name=f"{self.prefix}{role}",
            role=role,
            key=key,
            values=values,
            replication=self.replication,
            partitions=self.partitions if partitions is None else partitions,
            copartitioned=copartitioned,
            growable=growable,
            config=dict(sorted({**config, **everywhere}.items())),
            writers=frozenset(writers),
            readers=frozenset(readers),
            why=why,
        )


_APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}
"""A verdict is looked for behind the time at which its command was written: both times must come from the brokers, not
from the clocks of clients."""


def _delete(retention_ms: int, max_bytes: int = INTERNAL_MAX_BYTES) -> dict[str, str]:
    return {"cleanup.policy": "delete", "max.message.bytes": str(max_bytes), "retention.ms": str(retention_ms)}
