"""Attempts that a worker must not claim again. Pure: time is an argument.

An old offer of an attempt that is over may still come: a renewed one, or one of a transaction that was aborted. And the
answer to an earlier claim of it may still be on its way, for a repeated claim is confirmed again. A worker that claimed
anew would take that answer for its own and start the attempt a second time.
"""

from collections import OrderedDict

from mainspring.schemas.bounds import INSTANT_MAX_MS

__all__ = ["PAST_MAX", "PAST_S", "PastAttempts"]

PAST_S = 3_600.0
PAST_MAX = 50_000
"""Attempts are remembered so long, and so many of them: for longer than old offers and answers are about.

An answer comes as late as the scheduler is behind with what workers write, and offers go on all the time.
"""


class PastAttempts:
    """What the scheduler has confirmed and is over here, and claims that were given up before they were answered."""

    def __init__(self) -> None:
        # Not plain dicts: to find the first key of one, the interpreter steps over all that was deleted before it.
        self._over: OrderedDict[str, tuple[int, int, float]] = OrderedDict()
        """By job id: attempt, when it was due (epoch milliseconds), and since when it is over (seconds, monotonic)."""
        self._unanswered: OrderedDict[tuple[str, int], float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._over) + len(self._unanswered)

    def over(self, job_id: str, attempt: int, due_at_ms: int | None, now: float) -> None:
        """A confirmed attempt has been started or handed back. `due_at_ms` as it was offered; None: not known."""
        known = self._over.pop(job_id, None)
        if known is not None and attempt <= known[0] and (due_at_ms is None or due_at_ms <= known[1]):
            attempt, due_at_ms, _ = known
        self._over[job_id] = (attempt, INSTANT_MAX_MS if due_at_ms is None else due_at_ms, now)
        if len(self._over) > PAST_MAX:
            self._over.popitem(last=False)

    def given_up(self, job_id: str, attempt: int, now: float) -> None:
        """Nobody has answered the claim, and the worker waits no longer."""
        self._unanswered[job_id, attempt] = now
        if len(self._unanswered) > PAST_MAX:
            self._unanswered.popitem(last=False)

    def refused(self, job_id: str, attempt: int) -> None:
        """The claim has been answered after all. It was lost, so the attempt may be claimed again."""
        self._unanswered.pop((job_id, attempt), None)

    def covers(self, job_id: str, attempt: int, due_at_ms: int) -> bool:
        """Whether this attempt must not be claimed: it or a later one is over, or a claim of it was given up.

        A job that was submitted anew under an id that the scheduler had forgotten begins with attempt 1 again, and is
        due later than whatever came before it.
        """
        known = self._over.get(job_id)
        if known is not None and attempt <= known[0] and due_at_ms <= known[1]:
            return True
        return (job_id, attempt) in self._unanswered

    def forget(self, now: float) -> None:
        """Time has passed."""
        oldest = now - PAST_S
        while self._over and self._over[next(iter(self._over))][2] <= oldest:
            self._over.popitem(last=False)
        while self._unanswered and self._unanswered[next(iter(self._unanswered))] <= oldest:
            self._unanswered.popitem(last=False)
