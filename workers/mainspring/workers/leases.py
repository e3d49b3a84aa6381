"""Whose lease still counts, and what a heartbeat has to say. Pure: time is an argument, in monotonic seconds.

A lease is counted by the scheduler from when it read the last claim or heartbeat that names the attempt. The worker
does not know that moment, but it knows one before it: when it produced a record of which it knows that it arrived.
Counting from there errs on the safe side.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from mainspring.schemas.common import HeldAttempt
from mainspring.workers.attempt import Attempt

__all__ = ["HELD_PER_HEARTBEAT", "as_held", "beats", "lost", "may_start", "renew"]

HELD_PER_HEARTBEAT = 2_000
"""So many attempts with notes stay far below the size of a record."""


def may_start(attempt: Attempt, lease_s: float, now: float) -> bool:
    """Whether a confirmed attempt may still be started: its lease cannot have expired."""
    return now - attempt.lease_from < lease_s


def lost(attempts: Iterable[Attempt], lease_s: float, now: float) -> list[Attempt]:
    """Running attempts whose lease may have expired: somebody else may be about to run them."""
    return [attempt for attempt in attempts if now - attempt.lease_from >= lease_s and attempt.stop_reason is None]


def renew(attempts: Iterable[Attempt], sent_at: float, arrived_at: float, lease_s: float) -> None:
    """A heartbeat of that moment that names these attempts had arrived by `arrived_at`.

    One that may have arrived when a whole lease had passed renews nothing: somebody else may have the attempt by then.
    When it was sent tells nothing of that: what a broken connection has held up arrives all at once.
    """
    for attempt in attempts:
        if arrived_at - attempt.lease_from < lease_s:
            attempt.lease_from = max(attempt.lease_from, sent_at)


def beats(
    attempts: Iterable[Attempt], *, young_s: float, now: float, partition_of: Callable[[str], int]
) -> Iterator[tuple[int, list[Attempt]]]:
    """Attempts to renew, by partition of `attempts`, without the youngest: their claim has just granted a lease."""
    by_partition: defaultdict[int, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        if now - attempt.claimed_at >= young_s:
            if attempt.partition < 0:
                attempt.partition = partition_of(attempt.job_id)
            by_partition[attempt.partition].append(attempt)
    for partition, held in sorted(by_partition.items()):
        for start in range(0, len(held), HELD_PER_HEARTBEAT):
            yield partition, held[start : start + HELD_PER_HEARTBEAT]


def as_held(attempt: Attempt) -> HeldAttempt:
    """An attempt as a heartbeat lists it."""
    context = attempt.context
    return HeldAttempt(
        job_id=attempt.job_id, attempt=attempt.number, progress=context.progress_fraction, note=context.note
    )
