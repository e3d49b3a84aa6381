"""`JobScheduler`: the whole scheduler behind one object, for programs that want no more than that."""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack, cast

import structlog

from mainspring.client.commands import Arguments, OtherTerms, Submission
from mainspring.client.config import ClientConfig
from mainspring.client.info import JobInfo
from mainspring.client.outcomes import decode_result
from mainspring.client.steps import Steps, drive, drive_async, fulfil
from mainspring.client.watch import Watch
from mainspring.client.wire import Deadline
from mainspring.jobs.app import App, JobFunction
from mainspring.jobs.handler import Handler
from mainspring.jobs.options import JobOptions, options_of
from mainspring.jobs.spec import Submittable
from mainspring.scheduler.embedded import EmbeddedOptions, EmbeddedProcessors, handler_of
from mainspring.scheduler.errors import NotStartedError, SchedulerStoppedError
from mainspring.scheduler.follower import Followed
from mainspring.scheduler.ledger import Ledger
from mainspring.scheduler.memory import JobMemory
from mainspring.scheduler.recurring import Recurring, RecurringSchedule
from mainspring.scheduler.session import Session
from mainspring.scheduler.transition import JobListener, Transition
from mainspring.schemas import SCHEDULE_EVENT_TYPES, JobEvent, ScheduleEvent
from mainspring.workers import Registry

if TYPE_CHECKING:
    from mainspring.processors.core.strategies import SchedulingStrategy
    from mainspring.settings import Settings

__all__ = ["JobScheduler", "TransitionCallback"]

TransitionCallback = Callable[[Transition], Any]

CANCEL_S = 30.0
GET_S = 10.0
# How long the last reports of a worker that has ended may take to be decided.
SETTLE_S = 10.0
HANDOVER_S = 0.5

_log = structlog.get_logger(__name__)


class JobScheduler:
    """Runs jobs on asyncio; embedded by default, or connected to a cluster that others run (`connected`).

        async with JobScheduler(app) as scheduler:
            job_id = await scheduler.submit(send_mail.job("ada@example.com"), delay=5)
            await scheduler.join()

    Embedded, it starts a Kafka of its own (unless `bootstrap` names one), the scheduler and one worker, all in this
    process. What was accepted is in the log: with a `data_dir` (or a `bootstrap`) the next instance goes on with it.
    An instance starts once; its methods belong to the event loop that it was started on, but for `submit_threadsafe`.

    Args:
        sources: Apps and handlers whose jobs may run; what is submitted as an object is added by itself.
        bootstrap: brokers to use instead of an embedded Kafka.
        data_dir: where the embedded Kafka keeps the log; without it the log ends with this object.
        prefix: begins the names of the topics; two schedulers on one Kafka differ in it.
        partitions: how many partitions jobs are spread over; fixed once the topics are made.
        strategy: which due job is next (`PriorityStrategy`).
        max_concurrency: how many attempts run at once.
        history_limit: how many finished jobs are remembered; the log keeps them all.
        lease_ms: after how long a worker that fell silent loses its attempts.
    """

    def __init__(
        self,
        *sources: App | Handler | JobFunction[..., Any],
        bootstrap: str | None = None,
        data_dir: Path | None = None,
        prefix: str = "mainspring.",
        partitions: int = 4,
        strategy: "SchedulingStrategy | None" = None,
        max_concurrency: int = 10,
        history_limit: int = 10_000,
        lease_ms: int = 10_000,
    ) -> None:
        options = EmbeddedOptions(
            bootstrap=bootstrap,
            data_dir=data_dir,
            prefix=prefix,
            partitions=partitions,
            strategy=strategy,
            max_concurrency=max_concurrency,
            history_limit=history_limit,
            lease_ms=lease_ms,
        )
        registry = Registry(*sources)
        processors = EmbeddedProcessors(options, registry, self._on_death)
        self._set_up(Session(None, processors, self._deliver), registry, JobMemory(history_limit, decode_result))

    @classmethod
    def connected(
        cls, settings: "Settings | None" = None, *, bootstrap: str | None = None, history_limit: int = 10_000
    ) -> Self:
        """The same object without processors: jobs run on the workers of the cluster that the settings name."""
        self = cls.__new__(cls)
        config = ClientConfig.of(settings, bootstrap=bootstrap)
        memory = JobMemory(history_limit, config.decode_result)
        self._set_up(Session(config, None, self._deliver), None, memory)
        return self

    def _set_up(self, session: Session, registry: Registry | None, memory: JobMemory) -> None:
        self._session = session
        self._registry = registry
        self._memory = memory
        self._ledger = Ledger()
        self._recurring = Recurring()
        self._listeners: list[JobListener | TransitionCallback] = []
        self._tasks: set[asyncio.Future[Any]] = set()
        self._changed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._state = "new"
        self._failure: BaseException | None = None

    # -- life ----------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start everything; returns when jobs can run."""
        if self._state != "new":
            raise SchedulerStoppedError(len(self._ledger))
        self._state, self._loop = "starting", asyncio.get_running_loop()
        try:
            await asyncio.to_thread(self._session.open)
        except BaseException:
            self._state = "stopped"
            await asyncio.to_thread(self._session.close)
            raise
        self._state = "running"

    async def stop(self, cancel_running: bool = False) -> None:  # noqa: FBT001, FBT002 - the name it has everywhere
        """Refuse new submits, take no new work, let running jobs finish (or cancel them), then end.

        What is queued, and what waits to be retried, stays in the log as it is. Safe to call twice.
        """
        while self._state == "stopping":
            await self._wait_for_change(None)
        if self._state != "running":
            self._state = "stopped"
            return
        self._state = "stopping"
        self._changed.set()
        try:
            await self._wind_down(cancel_running=cancel_running)
        finally:
            await asyncio.to_thread(self._session.close)
            self._state = "stopped"
            self._changed.set()
            if self._tasks:
                await asyncio.gather(*self._tasks, return_exceptions=True)

    async def join(self) -> None:
        """Wait until every job submitted here is terminal (or its submit refused).

        Raises `SchedulerStoppedError` when the scheduler is stopped first, `ProcessorDiedError` when it broke.
        """
        while len(self._ledger):
            if self._failure is not None:
                raise self._failure
            if self._state != "running":
                self._refuse()
            self._changed.clear()
            await self._changed.wait()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop(cancel_running=kind is not None)

    @property
    def peak_running(self) -> int:
        """The most attempts that ran at once on the embedded worker; 0 when connected to a cluster."""
        processors = self._session.processors
        return 0 if processors is None else processors.peak_running

    # -- jobs ----------------------------------------------------------------------------------------------------------

    async def submit(
        self,
        job: Submittable,
        delay: float | timedelta | None = None,
        depends_on: tuple[str, ...] | None = None,
        *,
        args: Arguments = None,
        **terms: Unpack[OtherTerms],
    ) -> str:
        """Put a job into the log and return its id.

        `args` are the arguments of a job given by name; the terms are those of `JobOptions`. Raises `InvalidJobError`
        (nothing was sent), `SchedulerStoppedError`, `NotDeliveredError`.
        """
        return await drive_async(self._submit(job, args, options_of(delay=delay, depends_on=depends_on, **terms)))

    def submit_threadsafe(
        self,
        job: Submittable,
        delay: float | timedelta | None = None,
        depends_on: tuple[str, ...] | None = None,
        *,
        args: Arguments = None,
        **terms: Unpack[OtherTerms],
    ) -> str:
        """`submit` for any thread; blocks until the job is in the log."""
        return drive(self._submit(job, args, options_of(delay=delay, depends_on=depends_on, **terms)))

    async def get(self, job_id: str) -> JobInfo:
        """The job as it stands now. Raises `JobNotFoundError`.

        A job that this instance did not see submitted is read from its partition of the log. After `stop` only what is
        remembered is known.
        """
        if self._state in {"running", "stopping"}:
            return await drive_async(self._session.get(job_id, self._memory, Deadline(GET_S)))
        known = self._memory.get(job_id)
        if known is None:
            self._refuse()
        return known

    async def cancel(self, job_id: str, reason: str = "") -> bool:
        """Whether this cancelled the job: False if it had ended, ended otherwise, or does not exist. Safe to repeat."""
        if self._state not in {"running", "stopping"}:
            self._refuse()
        outcome = await drive_async(self._session.core.cancel(job_id, reason, Deadline(CANCEL_S)))
        return bool(outcome)

    def add_listener(self, listener: JobListener | TransitionCallback) -> None:
        """Tell an object (`on_transition`) or a callable of every transition from now on; see `JobListener`."""
        self._listeners.append(listener)

    async def schedule_recurring(
        self,
        factory: Callable[[], Submittable],
        interval: float | timedelta,
        *,
        allow_overlap: bool = False,
        schedule_id: str | None = None,
    ) -> str:
        """Run a job every `interval` (seconds) from now on, first after one interval, and return the schedule's id.

        `factory` is called once; its job is the template of all runs. Times are fixed and do not drift; what is missed
        is made up for by one run. A run that is due while another has not ended is skipped unless `allow_overlap`.
        It is in the log like any schedule: it goes on with the next instance until `cancel_recurring`. `join` does not
        wait for its runs. Raises `InvalidScheduleError`, `DuplicateScheduleError`, `SchedulerStoppedError`.
        """
        self._check_running()
        job = factory()
        self._learn(job)
        core = self._session.schedules
        steps = self._recurring.create(core, factory, job, interval, schedule_id, allow_overlap=allow_overlap)
        return await drive_async(steps)

    async def cancel_recurring(self, schedule_id: str) -> bool:
        """Fire no more of a schedule, whoever made it; what runs goes on. Whether there was one. Safe to repeat."""
        self._check_running()
        return await drive_async(self._recurring.cancel(self._session.schedules, schedule_id))

    @property
    def recurring(self) -> Mapping[str, RecurringSchedule]:
        """What `schedule_recurring` has made here and nobody has ended, by id."""
        return MappingProxyType(self._recurring.schedules)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _submit(self, job: Submittable, args: Arguments, terms: JobOptions) -> Steps[str]:
        self._check_running()
        self._learn(job)
        sent: list[Watch] = []

        def about_to_send(watch: Watch) -> None:
            sent.append(watch)
            self._ledger.sent(watch)

        try:
            watch = yield from self._session.core.submit(
                Submission(job, args), terms, "", adopt=False, about_to_send=about_to_send
            )
        except BaseException:
            for watch in sent:
                self._ledger.lost(watch)
            raise
        return watch.job_id

    def _learn(self, job: Submittable) -> None:
        """Add the handler of a job object to what the embedded worker can run."""
        handler = handler_of(job)
        if self._registry is not None and handler is not None and self._registry.get(handler.name) is None:
            self._registry.add(handler)

    def _check_running(self) -> None:
        if self._state != "running":
            self._refuse()

    def _refuse(self) -> NoReturn:
        if self._failure is not None:
            raise self._failure
        if self._state in {"new", "starting"}:
            raise NotStartedError
        raise SchedulerStoppedError(len(self._ledger))

    async def _wind_down(self, *, cancel_running: bool) -> None:
        processors = self._session.processors
        if processors is None:
            if cancel_running:
                own = [job_id for job_id in self._memory.running() if job_id in self._ledger]
                await asyncio.gather(*(self.cancel(job_id, "the scheduler is stopped") for job_id in own))
            return
        worker_id = processors.worker_id
        ending = asyncio.ensure_future(asyncio.to_thread(processors.stop_worker))
        asked: set[str] = set()
        while not ending.done():
            if cancel_running:
                running = set(self._memory.running(worker_id)) - asked
                asked |= running
                for job_id in running:
                    self._in_background(
                        self._session.core.cancel(job_id, "the scheduler is stopped", Deadline(CANCEL_S))
                    )
            await self._wait_for_change(ending)
        ending.result()
        deadline = asyncio.get_running_loop().time() + SETTLE_S
        while self._memory.running(worker_id) and asyncio.get_running_loop().time() < deadline:
            await self._wait_for_change(None)

    async def _wait_for_change(self, other: asyncio.Future[Any] | None) -> None:
        self._changed.clear()
        changed = asyncio.ensure_future(self._changed.wait())
        waiting = {changed} if other is None else {changed, other}
        await asyncio.wait(waiting, timeout=HANDOVER_S, return_when=asyncio.FIRST_COMPLETED)
        changed.cancel()

    def _in_background(self, steps: Steps[Any]) -> None:
        self._keep(asyncio.ensure_future(drive_async(steps)))

    def _keep(self, task: asyncio.Future[Any]) -> None:
        """A task that nobody awaits: kept until it ends, and heard if it fails."""
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a listener or a cancel failed", why=str(error), exc_info=error)

    def _on_death(self, error: BaseException) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._fail, error)

    def _fail(self, error: BaseException) -> None:
        self._failure = error
        self._changed.set()

    def _deliver(self, batch: list[Followed]) -> None:
        """Called by the follower: hands over to the loop, and waits until it has taken the batch."""
        done: Future[None] = Future()
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        loop.call_soon_threadsafe(self._take, batch, done)
        while not done.done() and not loop.is_closed():
            with suppress(TimeoutError):
                done.result(HANDOVER_S)

    def _take(self, batch: list[Followed], done: Future[None]) -> None:
        for told, _ in batch:
            if type(told) in SCHEDULE_EVENT_TYPES:
                self._recurring.see(cast(ScheduleEvent, told))
                continue
            event = cast(JobEvent, told)
            transition = self._memory.apply(event)
            self._ledger.see(event)
            if transition is not None:
                for listener in self._listeners:
                    self._tell(listener, transition)
        self._changed.set()
        fulfil(done, None)

    def _tell(self, listener: JobListener | TransitionCallback, transition: Transition) -> None:
        try:
            call = listener.on_transition if isinstance(listener, JobListener) else listener
            answer = call(transition)
            if inspect.isawaitable(answer):
                self._keep(asyncio.ensure_future(answer))
        except Exception as error:  # noqa: BLE001 - what a listener does wrong is its own affair, but must be seen
            _log.exception("a listener failed", job_id=transition.job_id, why=str(error))
