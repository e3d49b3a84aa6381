"""Keeping the view small: finished jobs beyond a count or an age leave it, in short transactions."""

from collections.abc import Callable

from mainspring.processors.core.job.transitions import TERMINAL
from mainspring.processors.projector.config import Retention
from mainspring.processors.projector.store import ViewStore

__all__ = ["apply_retention", "tidy_ledgers"]

SLICE = 1_000
"""Jobs removed in one transaction; readers and the next batch of events wait no longer than that takes."""

_TERMINAL = tuple(sorted(status.name for status in TERMINAL))


def apply_retention(store: ViewStore, retention: Retention, now_ms: int, stopped: Callable[[], bool]) -> int:
    """Removes finished jobs that are too many or too old, oldest first; returns how many. Ends early when stopped."""
    removed = 0
    if retention.max_age_ms is not None:
        oldest_ms = now_ms - retention.max_age_ms
        while not stopped() and store.remove_refusals_before(oldest_ms, SLICE):
            pass
        while not stopped() and (ids := store.finished_before(oldest_ms, SLICE)):
            store.remove(ids)
            removed += len(ids)
    if retention.max_count is not None:
        while not stopped() and (excess := store.finished_count(_TERMINAL) - retention.max_count) > 0:
            ids = store.oldest_finished(min(excess, SLICE))
            if not ids:
                break
            store.remove(ids)
            removed += len(ids)
    return removed


def tidy_ledgers(store: ViewStore, retention: Retention, now_ms: int, stopped: Callable[[], bool]) -> int:
    """Removes settled entries of the ledgers of schedules by the same bounds; returns how many.

    What an entry is about is settled once its instance has ended, or it was skipped. Schedules themselves stay until
    they are deleted.
    """
    removed = 0
    if retention.max_age_ms is not None:
        oldest_ms = now_ms - retention.max_age_ms
        while not stopped() and store.remove_changes_before(oldest_ms, SLICE):
            pass
        while not stopped() and (keys := store.settled_before(oldest_ms, SLICE)):
            store.remove_entries(keys)
            removed += len(keys)
    if retention.max_count is not None:
        excess = store.settled_count() - retention.max_count
        while not stopped() and excess > 0 and (keys := store.oldest_settled(min(excess, SLICE))):
            store.remove_entries(keys)
            removed += len(keys)
            excess -= len(keys)
    return removed
