"""The jobs that one scheduler has submitted and that are not done yet: what `join` waits for."""

from mainspring.client.progress import JobEvent
from mainspring.client.watch import Watch
from mainspring.schemas.events import (
    CommandRejected,
    JobCancelled,
    JobCompleted,
    JobFailed,
    JobSubmitted,
    JobTimedOut,
)

__all__ = ["Ledger"]


class Ledger:
    """Counts by what the log says. `sent` and `lost` may be called from any thread, `see` from one."""

    def __init__(self) -> None:
        self._undecided: dict[str, str] = {}  # by command id, since two submits may name one job
        self._open: set[str] = set()

    def __len__(self) -> int:
        return len(self._undecided) + len(self._open)

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._open

    def sent(self, watch: Watch) -> None:
        """A submit is about to be sent; every event that it causes comes later."""
        if watch.command_id is not None:
            self._undecided[watch.command_id] = watch.job_id

    def lost(self, watch: Watch) -> None:
        """A submit failed and does not count."""
        if watch.command_id is not None:
            self._undecided.pop(watch.command_id, None)

    def see(self, event: JobEvent) -> None:
        """Take in one event."""
        match event:
            case JobSubmitted():
                if self._undecided.pop(event.command_id, None) is not None:
                    self._open.add(event.job_id)
            case CommandRejected():
                self._undecided.pop(event.command_id, None)
            case JobCompleted() | JobFailed() | JobTimedOut() | JobCancelled():
                self._open.discard(event.job_id)
