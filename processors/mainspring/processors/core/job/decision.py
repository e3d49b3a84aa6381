"""What goes into a decision beside the job, and what comes out of it."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from mainspring.processors.core.rules import Rules
from mainspring.processors.core.steps import ClockSetBack
from mainspring.schemas.attempts import (
    AttemptCancelled,
    AttemptClaimed,
    AttemptFailed,
    AttemptReleased,
    AttemptSucceeded,
    AttemptTimedOut,
    OfferDeclined,
)
from mainspring.schemas.commands import CancelJob, RescheduleJob, RetryJob, SubmitJob
from mainspring.schemas.common import Cause, Txn
from mainspring.schemas.followups import InstanceReplaced
from mainspring.schemas.records import JobEvent, Signal
from mainspring.schemas.tables import Dispatch

__all__ = [
    "NOTHING",
    "UNNUMBERED",
    "AttemptEnd",
    "ClockStepped",
    "Context",
    "Decision",
    "JobInput",
    "JobUnprocessable",
    "LeaseExpired",
    "StartDeadlinePassed",
    "needs_spec",
]

UNNUMBERED: Final = Txn(id=0, index=0, size=0)
"""What an event carries until the engine numbers its transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseExpired:
    """A timer: no heartbeat named this attempt for a lease, and its reports have been read up to the present."""

    job_id: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartDeadlinePassed:
    """A timer: the instant by which the job should have started is here."""

    job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockStepped:
    """The wall clock was set back, and the job waited at that time."""

    job_id: str
    step: ClockSetBack


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUnprocessable:
    """The shell: an input of this job cannot be applied, so the job must not wait for it for ever."""

    job_id: str
    detail: str


AttemptEnd = AttemptSucceeded | AttemptFailed | AttemptTimedOut | AttemptCancelled | AttemptReleased
"""The reports that end an attempt; they count from the confirmed attempt and incarnation only."""

JobInput = (
    AttemptClaimed
    | AttemptEnd
    | SubmitJob
    | OfferDeclined
    | CancelJob
    | RescheduleJob
    | RetryJob
    | InstanceReplaced
    | LeaseExpired
    | StartDeadlinePassed
    | ClockStepped
    | JobUnprocessable
)
"""Everything that is decided on, for one job each."""

_NEED_SPEC: Final = frozenset({AttemptFailed, AttemptTimedOut, AttemptCancelled, RetryJob, LeaseExpired})


def needs_spec(kind: type[object]) -> bool:
    """Whether a decision on this input reads the job's specification; the others spare the table a read."""
    return kind in _NEED_SPEC


class Context(NamedTuple):
    """What a decision may depend on beside the job and the input."""

    now_ms: int
    cause: Cause
    rules: Rules
    next_seq: int
    seed: int
    raw: bytes = b""


class Decision(NamedTuple):
    """What follows: facts, messages to workers, messages to other partitions, and new dispatch columns."""

    events: tuple[JobEvent, ...] = ()
    signals: tuple[Signal, ...] = ()
    followups: tuple[tuple[str, SubmitJob], ...] = ()
    dispatch: Dispatch | None = None


NOTHING: Final = Decision()
"""The decision that nothing follows."""
