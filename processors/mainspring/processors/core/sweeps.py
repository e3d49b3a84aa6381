"""The jobs that a wall clock which was set back may concern, looked at in slices: there may be millions."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from mainspring.processors.core.steps import ClockSetBack

__all__ = ["Sweeps"]

_SLICE: Final = 500
"""Rows that one tick looks at."""


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

    def __init__(self) -> None:
        self._sweeps: deque[_Sweep] = deque()

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

    def decided(self, job_id: str) -> None:
        """Something was decided about a job by the clock as it is now."""
        for sweep in self._sweeps:
            sweep.decided.add(job_id)

    def put_back(self, job_id: str) -> None:
        """A job went back to where it had waited, which its sweep may have passed while it was away."""
        for sweep in self._sweeps:
            sweep.first.append(job_id)

    def take(self) -> tuple[ClockSetBack, list[str]]:
        """The next jobs to look at, and the step they have lived through. There must be one."""
        sweep = self._sweeps[0]
        job_ids: list[str] = []
        for _ in range(_SLICE):
            job_id = sweep.next()
            if job_id is None:
                self._sweeps.popleft()
                break
            if job_id not in sweep.decided:
                job_ids.append(job_id)
        return sweep.step, job_ids
