"""Which job is next: the strategies of a queue.

A strategy gives each job a key, and the smallest key is served first; `seq`, the order of submission, breaks ties.
A key must not depend on the present time: a heap is only a heap while its keys stand still. Aging therefore uses
the form p - r·t₀: that job A outranks job B at time t, p_A + r·(t - t₀_A) > p_B + r·(t - t₀_B), does not depend on
t at all.

Time in a key is the time the job became due, not the time it was submitted, or a job delayed by a year would beat
everyone.
"""

from typing import Protocol, runtime_checkable

from mainspring.schemas.common import Priority
from mainspring.schemas.tables import JobState

__all__ = [
    "AgingPriorityStrategy",
    "EarliestDeadlineFirstStrategy",
    "FIFOStrategy",
    "Key",
    "PriorityStrategy",
    "SchedulingStrategy",
]

Key = int | float | tuple[int | float, ...]
"""What jobs are ordered by: smallest first. All keys of one strategy must be comparable with each other."""

_NEVER_MS = 1 << 63
"""Later than every instant: the deadline of a job without one."""


@runtime_checkable
class SchedulingStrategy(Protocol):
    """The order of one queue. Subclass it to inherit one band and one lane, or bring all three members."""

    @property
    def by_priority(self) -> bool:
        """Whether tenants share each priority by weight (true), or the whole queue (false)."""
        return False

    def key(self, job: JobState) -> Key:
        """The order of a waiting job, smallest first; the same at any time while the job waits."""
        ...

    def lane(self, job: JobState, now_ms: int) -> Priority:
        """The work topic on which the job is offered at `now_ms`; one for all unless urgency is known."""
        return Priority.MEDIUM


class FIFOStrategy(SchedulingStrategy):
    """First due, first served."""

    def key(self, job: JobState) -> Key:
        """The instant the job was due, in milliseconds."""
        return job.due_at_ms


class PriorityStrategy(SchedulingStrategy):
    """Strictly by priority, then first due. A steady stream of urgent jobs may keep others waiting for ever."""

    @property
    def by_priority(self) -> bool:
        """Tenants share each priority."""
        return True

    def key(self, job: JobState) -> Key:
        """Priority downwards, then the instant the job was due."""
        return (-job.priority, job.due_at_ms)

    def lane(self, job: JobState, now_ms: int) -> Priority:
        """The job's own priority."""
        return job.priority


class AgingPriorityStrategy(SchedulingStrategy):
    """By priority, which grows while a job waits, so that none waits for ever.

    `age_rate` is in levels per second: with 0.1 a LOW job that has waited for 10 s stands beside a new MEDIUM one, and
    no job waits longer than behind what was submitted within 3 levels / `age_rate` after it.
    """

    def __init__(self, age_rate: float) -> None:
        """`age_rate`: levels per second, finite and not negative; 0 is strict priority. Raises ValueError."""
        if not 0 <= age_rate < float("inf"):
            raise ValueError(f"age_rate must be a finite number of levels per second, 0 or more, not {age_rate!r}")
        self._levels_per_ms = age_rate / 1000

    @property
    def by_priority(self) -> bool:
        """Tenants share each priority."""
        return True

    def key(self, job: JobState) -> Key:
        """-(p - r·t₀), because the smallest key is first."""
        return self._levels_per_ms * job.due_at_ms - job.priority

    def lane(self, job: JobState, now_ms: int) -> Priority:
        """The whole levels the job has reached by now, CRITICAL at most."""
        aged = job.priority + int(self._levels_per_ms * max(0, now_ms - job.due_at_ms))
        return Priority(min(aged, Priority.CRITICAL))


class EarliestDeadlineFirstStrategy(SchedulingStrategy):
    """By deadline; jobs without one come last, first due first."""

    def key(self, job: JobState) -> Key:
        """The deadline, then the instant the job was due."""
        return (_NEVER_MS if job.deadline_ms is None else job.deadline_ms, job.due_at_ms)
