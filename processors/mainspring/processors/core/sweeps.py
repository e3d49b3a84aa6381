"""The jobs that a wall clock which was set back may concern, looked at in slices: there may be millions."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from mainspring.processors.core.job.waiting import is_due
from mainspring.processors.core.steps import ClockSetBack
from mainspring.schemas.tables import JobState

__all__ = ["Sweeps"]

_ROWS_AT_ONCE: Final = 2_000
"""Rows that one tick of all partitions together looks at: some 60 ms, for which everything else waits."""


class _Sweep:
    """What waited when one step was seen, less what was decided since: that knows the clock as it is."""

    __slots__ = ("clock_ms", "decided", "first", "rest", "step", "taken")

    def __init__(self, step: ClockSetBack, first: list[str], rest: Iterator[str], clock_ms: int) -> None:
        self.step = step
        self.first = deque(first)
        self.rest = rest
        self.clock_ms = clock_ms
        self.taken: set[str] = set()
        """Of the first: they may come once more."""
        self.decided: set[str] = set()

    def next(self) -> str | None:
        """The next job, also one that is not to be taken; None: that is all."""
        while self.first:
            job_id = self.first.popleft()
            if job_id not in self.taken:
                self.taken.add(job_id)
                return job_id
        for job_id in self.rest:
            if job_id not in self.taken:
                return job_id
        return None


class Sweeps:
    """Steps in the order they were seen; a job is taken once for each that it has lived through."""

    def __init__(self, partitions: int) -> None:
        self._sweeps: deque[_Sweep] = deque()
        self._per_tick = max(1, _ROWS_AT_ONCE // partitions)

    def __bool__(self) -> bool:
        return bool(self._sweeps)

    @property
    def clock_ms(self) -> int:
        """What a clock has shown by which jobs may have begun to wait that have not been looked at; 0: none."""
        return max((sweep.clock_ms for sweep in self._sweeps), default=0)

    def begin(self, step: ClockSetBack, first: list[str], rest: Iterator[str], clock_ms: int) -> None:
        """Takes in a step, and the jobs that wait: `rest` is read when its turn comes, and may repeat some of `first`.

        `clock_ms`: what the clock had shown before the step.
        """
        self._sweeps.append(_Sweep(step, first, rest, clock_ms))

    def changed(self, state: JobState, now_ms: int, *, is_decided: bool) -> None:
        """A row has changed beside the sweeps; `is_decided`: by the clock as it is now.

        Else it went back to where it had waited, which a sweep may have passed while it was away.
        """
        if is_decided:
            for sweep in self._sweeps:
                sweep.decided.add(state.job_id)
        elif not is_due(state, now_ms):
            for sweep in self._sweeps:
                sweep.first.append(state.job_id)

    def take(self) -> tuple[ClockSetBack, list[str]]:
        """The next jobs to look at, and the step they have lived through. There must be one."""
        sweep = self._sweeps[0]
        job_ids: list[str] = []
        for _ in range(self._per_tick):
            job_id = sweep.next()
            if job_id is None:
                self._sweeps.popleft()
                break
            if job_id not in sweep.decided:
                job_ids.append(job_id)
        return sweep.step, job_ids
