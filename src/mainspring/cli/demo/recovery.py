"""What the death of a worker did to the jobs, told from their stories before and after."""

from collections.abc import Mapping
from dataclasses import dataclass

from mainspring.cli.demo.story import Attempt, Story
from mainspring.schemas.codes import RetryReason

__all__ = ["Recovery", "recovery"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """After a kill: who ran again, and who was kept waiting.

    `again` are the attempts that follow one that was lost; `ended` counts jobs whose attempt came to its own end before
    the kill reached it, or that were cancelled. `waited` are the starts of other jobs that were due at the kill and not
    started yet: what was offered to the dead worker is among them.
    """

    again: tuple[Attempt, ...]
    ended: int
    waited: tuple[Attempt, ...]

    def recovered_ms(self, at_ms: int) -> int:
        """How long after the kill the last lost attempt ran again; 0 where none was lost."""
        return max((attempt.started_at_ms - at_ms for attempt in self.again), default=0)


def recovery(running: Mapping[str, Story], now: Mapping[str, Story], at_ms: int) -> Recovery:
    """`running`: the jobs that ran on the worker when it was killed at `at_ms`; `now`: all jobs, once they went on."""
    again: list[Attempt] = []
    for job_id, then in running.items():
        hit, *later = now[job_id].attempts[len(then.attempts) - 1 :]
        if hit.ended_as == RetryReason.LOST:
            again.extend(later[:1])
    waited = [
        attempt
        for job_id, story in now.items()
        if job_id not in running
        for attempt in story.attempts
        if attempt.due_at_ms <= at_ms < attempt.started_at_ms
    ]
    return Recovery(again=tuple(again), ended=len(running) - len(again), waited=tuple(waited))
