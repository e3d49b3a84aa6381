"""What is known about one topic."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["Role", "Topic"]


class Role(StrEnum):
    """Who reads and writes topics. Each role is one principal where the cluster has access control."""

    CLIENT = "client"
    """Applications that submit jobs and wait for them, the command line."""
    SCHEDULER = "scheduler"
    WORKER = "worker"
    PROJECTOR = "projector"
    OBSERVER = "observer"
    """Whatever only reads: listeners, statistics, the console, auditors."""
    OPERATOR = "operator"
    """Whoever runs `topics plan` and `topics apply`; neither reads nor writes records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One topic: its name in the cluster, what its records are, its layout, who may do what, and why it is so."""

    name: str
    role: str
    """Its name in the documentation: without the prefix."""
    key: str
    """What the record key is, in words; keys are UTF-8."""
    values: tuple[type[Any], ...]
    """The records that occur on it."""
    partitions: int
    copartitioned: bool
    """Whether the scheduler needs it to have the same partitions as `commands`."""
    growable: bool
    """Whether partitions may be added later. Where the key chooses the partition they may not: keys would move."""
    replication: int
    config: Mapping[str, str]
    """Kafka's topic configuration, as text."""
    writers: frozenset[Role]
    readers: frozenset[Role]
    why: str

    def __str__(self) -> str:
        return self.name
