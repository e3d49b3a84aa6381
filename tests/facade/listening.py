"""An embedded scheduler, and a listener that can be waited on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from mainspring.jobs import App
from mainspring.scheduler import JobScheduler, Transition
from mainspring.schemas import JobStatus

__all__ = ["Seen", "running_scheduler"]

_PATIENCE_S = 60


class Seen:
    """A listener that keeps what it was told."""

    def __init__(self) -> None:
        self.transitions: list[Transition] = []
        self.last: dict[str, JobStatus] = {}
        self._news = asyncio.Event()

    def on_transition(self, transition: Transition) -> None:
        self.transitions.append(transition)
        self.last[transition.job_id] = transition.status
        self._news.set()

    def edges(self, job_id: str) -> list[tuple[JobStatus | None, JobStatus]]:
        """What a job went through."""
        return [(one.previous, one.status) for one in self.transitions if one.job_id == job_id]

    def jobs(self, schedule_id: str, status: JobStatus) -> list[str]:
        """The jobs of a schedule that are in a state."""
        return [job for job, last in self.last.items() if job.startswith(f"{schedule_id}@") and last is status]

    async def until(self, holds: Callable[[], object]) -> None:
        """Returns when a transition has made it so."""
        async with asyncio.timeout(_PATIENCE_S):
            while not holds():
                self._news.clear()
                await self._news.wait()

    async def until_status(self, job_id: str, status: JobStatus) -> None:
        """Returns when a job has been in a state."""
        await self.until(lambda: any(edge[1] is status for edge in self.edges(job_id)))


@asynccontextmanager
async def running_scheduler(
    app: App, bootstrap: str, prefix: str, release: threading.Event, **options: Any
) -> AsyncIterator[tuple[JobScheduler, Seen]]:
    """A started scheduler with a listener; at its end what `release` holds is let go, and what runs is cancelled."""
    seen = Seen()
    scheduler = JobScheduler(app, bootstrap=bootstrap, prefix=prefix, **options)
    scheduler.add_listener(seen)
    await scheduler.start()
    try:
        yield scheduler, seen
    finally:
        release.set()
        await scheduler.stop(cancel_running=True)
