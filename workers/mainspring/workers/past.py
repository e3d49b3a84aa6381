"""Attempts that a worker is done with, so that it never claims one of them again. Pure: time is an argument.

An old offer of such an attempt may still come: a renewed one, or one of a transaction that was aborted. And the answer
to an earlier claim of it may still be on its way, for a repeated claim is confirmed again. A worker that claimed anew
would take that answer for its own and start the attempt a second time.
"""

from mainspring.schemas.bounds import INSTANT_MAX_MS

__all__ = ["PAST_MAX", "PAST_S", "PastAttempts"]

PAST_S = 600.0
PAST_MAX = 50_000
"""Attempts are remembered so long, and so many of them: for longer than old offers and answers are about."""


class PastAttempts:
    """The newest attempt of each job that was started or handed back here lately."""

    def __init__(self) -> None:
        self._past: dict[str, tuple[int, int, float]] = {}
        """By job id: attempt, when it was due (epoch milliseconds), and since when it is past (seconds, monotonic)."""

    def __len__(self) -> int:
        return len(self._past)

    def add(self, job_id: str, attempt: int, due_at_ms: int | None, now: float) -> None:
        """The worker is done with the attempt. `due_at_ms` as it was offered; None: not known."""
        past = self._past
        known = past.pop(job_id, None)
        if due_at_ms is None:
            due_at_ms = known[1] if known is not None and known[0] == attempt else INSTANT_MAX_MS
        past[job_id] = (attempt, due_at_ms, now)
        if len(past) > PAST_MAX:
            del past[next(iter(past))]

    def covers(self, job_id: str, attempt: int, due_at_ms: int) -> bool:
        """Whether this attempt or a later one is past.

        A job that was submitted anew under an id that the scheduler had forgotten begins with attempt 1 again, and is
        due later than whatever came before it.
        """
        known = self._past.get(job_id)
        return known is not None and attempt <= known[0] and due_at_ms <= known[1]

    def forget(self, now: float) -> None:
        """Time has passed."""
        past, oldest = self._past, now - PAST_S
        while past:
            job_id = next(iter(past))
            if past[job_id][2] > oldest:
                return
            del past[job_id]
