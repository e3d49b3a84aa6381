"""The kit: a scheduler and workers in memory, under a clock that the test moves."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

from mainspring.client.commands import Arguments, IfExists, Submission, Terms, adopts, to_options
from mainspring.client.config import ClientConfig
from mainspring.client.info import JobInfo
from mainspring.client.outcomes import CancelOutcome
from mainspring.client.queries import HistoryEntry
from mainspring.client.schedules.blocking import Schedules
from mainspring.jobs.app import App, JobFunction
from mainspring.jobs.base import Job
from mainspring.jobs.handler import Handler
from mainspring.jobs.models import JobStatus
from mainspring.jobs.spec import Submittable
from mainspring.processors.core import QueueRules, Rules
from mainspring.processors.core.explain import WhyNot
from mainspring.schemas import Codec, Command, Event
from mainspring.testing.clock import Duration, VirtualClock, microseconds
from mainspring.testing.errors import StandstillError
from mainspring.testing.handle import TIMEOUT_S, VirtualJobHandle
from mainspring.testing.operations import Operations
from mainspring.testing.schedules import VirtualScheduleCore
from mainspring.testing.simulation import Simulation
from mainspring.testing.worker import VirtualWorker
from mainspring.topics import Connection, Topology
from mainspring.workers.config import WorkerConfig
from mainspring.workers.registry import Registry

if TYPE_CHECKING:
    from mainspring.testing.async_client import AsyncVirtualClient

__all__ = ["START", "Mainspring"]

START: Final = datetime(2030, 1, 1, 12, tzinfo=UTC)
"""Noon of a Tuesday: when every test begins that does not say otherwise."""

Source = App | Handler | JobFunction[..., Any]


class Mainspring:
    """A scheduler and its workers, in memory. Use it as a context manager, or take the fixture `mainspring`.

    It has the methods of the real `Client` for submitting and following jobs, and its `schedules`. Nothing happens by
    itself: `advance` lets time pass, and whoever waits (`result`, `wait`, `join`) moves it as far as it must.

    Args:
        apps: whose handlers the workers run. Without any, the handlers of what is submitted.
        slots: jobs that one worker runs at once.
        workers: how many workers there are at the beginning; more come with `start_worker`.
        queues: names of the queues, or their rules by name.
        seed: spreads the jitter of retries; the same seed, the same test.
        start: where the clock begins.
        lease: how long a silent worker keeps its jobs.
        actor: who asks, in the events.
        rules: instead of `queues` and `lease`, all rules of the scheduler.
        real_io_s: real seconds to wait for I/O whenever every job waits. By default calls in threads are waited for as
            long as they take, and open sockets for a moment.
    """

    def __init__(
        self,
        *apps: Source,
        slots: int = 10,
        workers: int = 1,
        queues: Iterable[str] | Mapping[str, QueueRules] = ("default",),
        seed: int = 0,
        start: datetime = START,
        lease: Duration = "10s",
        actor: str = "test",
        rules: Rules | None = None,
        real_io_s: float | None = None,
    ) -> None:
        self._clock = VirtualClock(start)
        self._rules = _rules(queues, lease) if rules is None else rules
        self._slots = slots
        self._adopts = not apps
        self._registry = Registry(*apps)
        names = tuple(self._rules.queues)
        self._topology = Topology(prefix="testing.", queues=names, partitions=1, work_partitions=1)
        self._connection = Connection("nowhere.invalid:0")
        self._codec = Codec.embedded()
        self._simulation = Simulation(
            self._clock, self._rules, self._codec, seed=seed, real_io_s=real_io_s, registry=self._registry
        )
        config = ClientConfig(
            connection=self._connection, topology=self._topology, codec=self._codec, actor=actor, view_url=None
        )
        self._operations = Operations(self._simulation, config)
        core = VirtualScheduleCore(self._operations, config.payloads, self._adopt)
        self.schedules = Schedules(core, lambda watch: VirtualJobHandle(self._operations, watch.job_id, None))
        self._closed = False
        for _ in range(workers):
            self.start_worker()

    # The client.

    def submit(
        self,
        job: Submittable,
        args: Arguments = None,
        *,
        reason: str = "",
        if_exists: IfExists = "raise",
        **terms: Unpack[Terms],
    ) -> VirtualJobHandle:
        """Put one job into the log, as `Client.submit`. It runs when time moves. Raises `InvalidJobError`."""
        self._adopt(job)
        submitted = self._operations.submit(Submission(job, args), to_options(terms), reason)
        return VirtualJobHandle(self._operations, *submitted, adopt=adopts(if_exists))

    def submit_many(
        self,
        jobs: Iterable[Submission | Submittable],
        *,
        reason: str = "",
        if_exists: IfExists = "raise",
        **terms: Unpack[Terms],
    ) -> list[VirtualJobHandle]:
        """Put many jobs into the log, as `Client.submit_many`: all are checked before the first is submitted."""
        options = to_options(terms)
        commands = []
        for each in jobs:
            submission = each if isinstance(each, Submission) else Submission(each)
            self._adopt(submission.job)
            commands.append(self._operations.make_submit(submission, options, reason))
        self._operations.give_all(commands)
        adopt = adopts(if_exists)
        return [
            VirtualJobHandle(self._operations, command.spec.job_id, command.command_id, adopt=adopt)
            for command in commands
        ]

    def cancel(
        self, job_id: str, reason: str = "", *, timeout: float | None = TIMEOUT_S, wait: bool = True
    ) -> CancelOutcome:
        """Ask that a job does not run, or stops, as `Client.cancel`: waits until a running attempt has ended."""
        return self._operations.cancel(job_id, reason, timeout, wait=wait)

    def reschedule(
        self,
        job_id: str,
        *,
        run_at: datetime | None = None,
        delay: float | timedelta | None = None,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,
    ) -> datetime:
        """Give a waiting job another time, as `Client.reschedule`."""
        return self._operations.reschedule(job_id, run_at, delay, reason)

    def retry(
        self, job_id: str, reason: str = "", *, new_job_id: str | None = None, timeout: float | None = TIMEOUT_S
    ) -> VirtualJobHandle:
        """Run a terminal job again as a new job, as `Client.retry`."""
        return VirtualJobHandle(self._operations, *self._operations.retry(job_id, reason, new_job_id))

    def handle(self, job_id: str, *, since: datetime | None = None) -> VirtualJobHandle:
        """A handle for a job that was submitted elsewhere: by the code under test, say."""
        return VirtualJobHandle(self._operations, job_id, None)

    def get(self, job_id: str, *, timeout: float | None = TIMEOUT_S, fresh: bool = True) -> JobInfo:
        """All about one job. Raises `JobNotFoundError`."""
        return self._operations.get(job_id)

    def history(self, job_id: str, *, timeout: float | None = TIMEOUT_S) -> Sequence[HistoryEntry]:
        """Every event of a job, refused commands and reports included."""
        return self._operations.history(job_id)

    def send(self, command: Command) -> None:
        """Put any command of the language into the log, as a program without Mainspring would: `CreateSchedule`, say.

        Its verdict is among `events()`. Raises `InvalidJobError` for what no record can hold.
        """
        self._operations.send(command)

    def close(self) -> None:
        """Ends the test: stop hooks run, and what has not ended is unwound."""
        if not self._closed:
            self._closed = True
            self._simulation.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def async_client(self) -> "AsyncVirtualClient":
        """The same as coroutines, for code that is given an `AsyncClient`."""
        from mainspring.testing.async_client import AsyncVirtualClient

        return AsyncVirtualClient(self)

    # Time.

    @property
    def now(self) -> datetime:
        """The present."""
        return self._clock.instant

    def advance(self, duration: Duration) -> Sequence[Event]:
        """Let time pass (`"2h"`, `90`, a timedelta) and everything happen that is due. Returns what was decided."""
        return self._advance_to(self._clock.now_us + microseconds(duration))

    def advance_to(self, instant: datetime) -> Sequence[Event]:
        """Let time pass until an instant. Raises ValueError for one that lies behind."""
        if instant < self.now:
            raise ValueError(f"time does not go back: it is {self.now.isoformat()}, after {instant.isoformat()}")
        return self._advance_to(self._clock.now_us + (instant - self.now) // timedelta(microseconds=1))

    def join(self, timeout: Duration | None = None) -> bool:
        """Let time pass until every job has ended.

        False if `timeout` was too short; without one it raises `StandstillError` where some job will never end.
        """
        timeout_us = None if timeout is None else microseconds(timeout)
        if self._simulation.run_until(lambda: not self._open(), timeout_us):
            return True
        if timeout is None:
            raise StandstillError("the end of all jobs", self.story(*self._open()))
        return False

    # Workers.

    @property
    def workers(self) -> Sequence[VirtualWorker]:
        """All workers, dead ones included, in the order they were started."""
        return tuple(self._simulation.workers)

    def start_worker(
        self,
        *apps: Source,
        slots: int | None = None,
        queues: Iterable[str] | None = None,
        worker_id: str | None = None,
    ) -> VirtualWorker:
        """One worker more; with `apps`, it knows their handlers alone. An id may be that of one that is gone."""
        names = tuple(self._rules.queues) if queues is None else tuple(queues)
        lease_ms = self._rules.lease_ms
        config = WorkerConfig(
            connection=self._connection,
            topology=self._topology,
            codec=self._codec,
            worker_id=worker_id or f"worker-{len(self._simulation.workers) + 1}",
            queues=names,
            slots=self._slots if slots is None else slots,
            lease_ms=lease_ms,
            heartbeat_ms=min(3_000, lease_ms // 3),
        )
        return self._simulation.add_worker(config, Registry(*apps) if apps else self._registry)

    def worker_of(self, job: VirtualJobHandle | str) -> VirtualWorker:
        """The worker that runs a job now. Raises LookupError where none does."""
        job_id = job if isinstance(job, str) else job.job_id
        for worker in self._simulation.workers:
            if job_id in worker.running:
                return worker
        raise LookupError(f"no worker runs job {job_id!r} now.\n{self.story(job_id)}")

    def takes(self, job: Submittable, duration: Duration) -> None:
        """From now on a handler takes so long before its code runs: for work that has no sleep in it."""
        self._simulation.stage.takes_s[_name_of(job)] = microseconds(duration) / 1_000_000

    def restart_scheduler(self) -> None:
        """Another scheduler process takes over, as after a deploy or a crash: state stays, leases begin anew."""
        self._simulation.restart_scheduler()

    # Looking at it.

    def events(self, *kinds: type[Any]) -> Sequence[Event]:
        """All that was decided, in order; of these kinds only, if any are given."""
        events = self._simulation.scheduler.events
        return tuple(event for event in events if not kinds or isinstance(event, kinds))

    def jobs(self, status: JobStatus | None = None) -> Sequence[JobInfo]:
        """All jobs in the order of their submits; those of one status, if it is given."""
        self._simulation.scheduler.decide()
        known = self._simulation.scheduler.progress.items()
        found = [job_id for job_id, progress in known if progress.spec is not None]
        return tuple(info for info in map(self.get, found) if status in (None, info.status))

    def explain(self, job_id: str) -> WhyNot:
        """Why a job is not running now."""
        self._simulation.scheduler.decide()
        return self._simulation.scheduler.explain(job_id)

    def story(self, *job_ids: str) -> str:
        """The history of these jobs in words, or of all."""
        shown = job_ids or tuple(job_id for job_id, seen in self._simulation.scheduler.events_of.items() if seen)
        head = f"it is {self.now.isoformat(timespec='milliseconds')}, {self.now - self._started} after the start"
        return "\n".join([head, *map(self._operations.story, shown)])

    # Steps of these.

    @property
    def _started(self) -> datetime:
        return self.now - timedelta(microseconds=self._clock.now_us - self._clock.start_us)

    def _advance_to(self, to_us: int) -> Sequence[Event]:
        known = len(self._simulation.scheduler.events)
        self._simulation.advance(to_us)
        return tuple(self._simulation.scheduler.events[known:])

    def _open(self) -> list[str]:
        known = self._simulation.scheduler.progress.items()
        return [job_id for job_id, progress in known if progress.spec is not None and progress.terminal is None]

    def _adopt(self, job: Submittable) -> None:
        """Without apps of its own, the kit runs the handlers of what it is given."""
        handler = job.registered_handler if isinstance(job, Job) else getattr(job, "handler", job)
        if self._adopts and isinstance(handler, Handler) and self._registry.get(handler.name) is not handler:
            self._registry.add(handler if handler.app is None else handler.app)
            self._registry.prepare()


def _rules(queues: Iterable[str] | Mapping[str, QueueRules], lease: Duration) -> Rules:
    by_name = dict(queues) if isinstance(queues, Mapping) else {name: QueueRules() for name in queues}
    return Rules(queues=by_name, partitions=1, lease_ms=microseconds(lease) // 1000)


def _name_of(job: Submittable) -> str:
    if isinstance(job, str):
        return job
    if isinstance(job, Job):
        return type(job).name
    return job.name if isinstance(job, Handler | JobFunction) else job.handler.name
