"""What the facade remembers of jobs: all that are not terminal, and the latest that are."""

from collections import OrderedDict

from mainspring.client.info import JobInfo, aware
from mainspring.client.outcomes import ResultDecoder, result_of
from mainspring.client.progress import JobEvent, Progress
from mainspring.scheduler.transition import Transition
from mainspring.schemas.common import JobStatus
from mainspring.schemas.events import (
    CommandRejected,
    JobCancelled,
    JobCompleted,
    JobFailed,
    JobRetryScheduled,
    JobStarted,
    JobSubmitted,
    JobTimedOut,
    ReportRefused,
)

__all__ = ["JobMemory"]


class JobMemory:
    """A fold of `events`, bounded by `history_limit` finished jobs. Lives on the event loop; not for other threads.

    A job whose JobSubmitted came before this memory began is not known here, and said so: the log knows it.
    """

    def __init__(self, history_limit: int, decode_result: ResultDecoder) -> None:
        self._history_limit = history_limit
        self._decode_result = decode_result
        self._live: dict[str, Progress] = {}
        # In the order in which they ended; the first of a plain dict is slow to find once many before it are gone.
        self._finished: OrderedDict[str, Progress] = OrderedDict()

    def __len__(self) -> int:
        return len(self._live) + len(self._finished)

    def apply(self, event: JobEvent) -> Transition | None:
        """Fold one event; the transition, if it was one and news."""
        if isinstance(event, CommandRejected | ReportRefused):
            return None
        job_id = event.job_id
        progress = self._live.get(job_id) or self._finished.get(job_id)
        if progress is None:
            progress = Progress(keep_spec=True)
        previous = None if isinstance(event, JobSubmitted) else (progress.status or _implied(event))
        if not progress.apply(event):
            return None
        self._keep(job_id, progress)
        if progress.status is None or progress.status is previous:
            return None
        at = aware(event.decided_at_ms)
        if at is None:
            raise ValueError(f"event without a time: {event!r}")
        return Transition(job_id=job_id, previous=previous, status=progress.status, at=at, event=event)

    def get(self, job_id: str) -> JobInfo | None:
        """The job as far as this memory has been told; None if it does not know it from its beginning."""
        progress = self._live.get(job_id) or self._finished.get(job_id)
        if progress is None or progress.spec is None:
            return None
        end = progress.terminal
        result = result_of(end, self._decode_result) if isinstance(end, JobCompleted) else None
        return JobInfo.of_events(progress, result)

    def running(self, worker_id: str | None = None) -> list[str]:
        """Ids of the jobs that run, as far as told; on one worker, or on all."""
        return [
            job_id
            for job_id, progress in self._live.items()
            if progress.is_running and worker_id in (None, progress.worker_id)
        ]

    def _keep(self, job_id: str, progress: Progress) -> None:
        if progress.terminal is None:
            self._finished.pop(job_id, None)
            self._live[job_id] = progress
            return
        self._live.pop(job_id, None)
        self._finished[job_id] = progress
        while len(self._finished) > self._history_limit:
            self._finished.popitem(last=False)


def _implied(event: JobEvent) -> JobStatus | None:
    """Where a job must have stood whose earlier events were not told; None where that cannot be known."""
    match event:
        case JobStarted():
            return JobStatus.PENDING if event.attempt == 1 else JobStatus.RETRY_WAIT
        case JobCompleted() | JobFailed() | JobTimedOut() | JobRetryScheduled():
            return JobStatus.RUNNING
        case JobCancelled() if event.attempt == 0:
            return JobStatus.PENDING
        case _:
            return None
