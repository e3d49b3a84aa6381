"""Scheduler, workers and code under one clock: what happens next, until nothing does."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from mainspring.jobs.app import App
from mainspring.processors.core import Offer, Rules
from mainspring.schemas import Codec
from mainspring.schemas.common import CauseSource
from mainspring.schemas.logs import LogCaptured
from mainspring.schemas.records import AttemptReport
from mainspring.testing.clock import VirtualClock
from mainspring.testing.errors import InsideJobError, StandstillError
from mainspring.testing.executor import Stage
from mainspring.testing.handler_threads import DEAF_MAX, HandlerThreads, virtual_sleep
from mainspring.testing.scheduler import VirtualScheduler
from mainspring.testing.virtual_loop import VirtualLoop
from mainspring.testing.worker import VirtualWorker
from mainspring.workers import capture, hooks
from mainspring.workers.config import WorkerConfig
from mainspring.workers.registry import Registry

__all__ = ["Simulation"]

T = TypeVar("T")
ROUNDS_MAX: Final = 100_000
"""At one instant; more means that jobs make each other without any time passing."""
STEPS_MAX: Final = 50_000
"""Without an event that no schedule has brought; more means that a wait without a time-out waits for something that
never comes. What schedules fire says nothing, for it never ends."""


class Simulation:
    """Implements `WorkerHome`. Everything that is decided at one instant is decided in a fixed order."""

    def __init__(
        self, clock: VirtualClock, rules: Rules, codec: Codec, *, seed: int, real_io_s: float | None, registry: Registry
    ) -> None:
        self.clock = clock
        self.scheduler = VirtualScheduler(clock, rules, codec, seed)
        self.registry = registry
        self.workers: list[VirtualWorker] = []
        self.logs: list[LogCaptured] = []
        self.stage = Stage(
            clock=clock,
            threads=HandlerThreads(clock),
            make_loop=lambda: VirtualLoop(clock, real_io_s),
            takes_s={},
            contexts={},
        )
        self._turns = 0
        self.is_driving = False
        self._lease_check_open = False
        self._hooked: list[App] = []
        self._registries = [registry]

    # What workers need.

    def report(self, record: AttemptReport, source: CauseSource) -> None:
        self.scheduler.give(record, source)

    def captured(self, record: LogCaptured) -> None:
        self.logs.append(record)

    def about_to_fall_silent(self, worker: VirtualWorker) -> None:
        # Heartbeats of those who are well are not played one by one; from here on leases matter, and count from now.
        if worker.silent_since_us is None:
            worker.silent_since_us = self.clock.now_us
        self._beat_all()
        self.scheduler.decide()
        if self._lease_check_open:
            self._lease_check_open = False
            self.scheduler.expire_leases()

    def run_until(self, done: Callable[[], bool], timeout_us: int | None) -> bool:
        return self.drive(lambda: self._run_until(done, timeout_us))

    # What the kit asks for.

    def add_worker(self, config: WorkerConfig, registry: Registry) -> VirtualWorker:
        """Starts a worker. Raises `JobDefinitionError` for handlers that cannot work."""
        registry.prepare()
        if registry not in self._registries:
            self._registries.append(registry)
        worker = VirtualWorker(self, self.stage, config, registry, len(self.workers) + 1)
        self.workers.append(worker)
        return worker

    def restart_scheduler(self) -> None:
        """Another process takes over."""
        self.scheduler.restart()
        self._lease_check_open = False
        for worker in self.workers:
            if worker.silent_since_us is not None:
                worker.silent_since_us = self.clock.now_us

    def advance(self, to_us: int) -> None:
        """Lets everything happen up to a moment, that moment included."""
        self.drive(lambda: self._run_until(lambda: False, max(0, to_us - self.clock.now_us)))

    def drive(self, call: Callable[[], T]) -> T:
        """Runs a call that moves time: apart from a running event loop, with sleep and output under control."""
        if self.is_driving:
            raise InsideJobError

        def guarded() -> T:
            with self._driving():
                return call()

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return guarded()
        return _in_thread(guarded)

    def close(self) -> None:
        """Runs the stop hooks and ends all code that has not ended."""
        if self._hooked:
            self.drive(lambda: hooks.stop(self._hooked, self._wait_for))
            self._hooked = []
        for worker in self.workers:
            if worker.is_alive:
                worker.kill()
        self.drive(self._unwind)

    # How it goes on.

    def _run_until(self, done: Callable[[], bool], timeout_us: int | None) -> bool:
        ends_us = None if timeout_us is None else self.clock.now_us + timeout_us
        self.settle()
        steps, known = 0, self.scheduler.submitted_events
        while not done():
            next_us = self._next_us()
            if next_us is None or (ends_us is not None and next_us > ends_us):
                break
            self.clock.move_to(max(next_us, self.clock.now_us + 1))
            self.settle()
            before, known = known, self.scheduler.submitted_events
            steps = steps + 1 if known == before else 0
            if ends_us is None and steps > STEPS_MAX:
                if not self.scheduler.awaits_its_time():
                    break
                steps = 0
        if ends_us is None or done():
            return done()
        self.clock.move_to(ends_us)
        self.settle()
        return done()

    def settle(self) -> None:
        """Lets everything happen that happens at this instant."""
        for _ in range(ROUNDS_MAX):
            self._start_hooks()
            self.scheduler.decide()
            self._check_leases()
            moved = self.scheduler.tick(sum(worker.room for worker in self.workers))
            moved = self._deliver() or moved
            moved = self.stage.pump() or moved
            for worker in self._alive():
                moved = worker.turn() or moved
            if not moved and not self.scheduler.has_input and not self.stage.has_work:
                return
        raise StandstillError(
            f"an end of what happens at {self.clock.instant.isoformat()}",
            "Jobs make each other, or are retried without a delay, and no time passes.",
        )

    def _next_us(self) -> int | None:
        instants = [self.scheduler.next_us(), self.stage.next_us]
        instants += [worker.next_us for worker in self._alive()]
        instants += self._lease_ends()
        return min((at_us for at_us in instants if at_us is not None), default=None)

    def _lease_ends(self) -> list[int]:
        """When the leases of the silent are over, as far as they hold any."""
        lease_us = self.scheduler.rules.lease_ms * 1000
        silent = [(worker, worker.silent_since_us) for worker in self.workers if worker.silent_since_us is not None]
        ends = [(worker.incarnation, since_us + lease_us) for worker, since_us in silent]
        return [
            at_us for incarnation, at_us in ends if at_us > self.clock.now_us and self.scheduler.held_by([incarnation])
        ]

    def _deliver(self) -> bool:
        signals, self.scheduler.signals = self.scheduler.signals, []
        heard = False
        for signal in signals:
            worker = next((each for each in self._alive() if each.incarnation == signal.incarnation), None)
            if worker is not None and worker.is_connected:
                worker.hear(signal)
                heard = True
            elif worker is not None:
                self.scheduler.signals.append(signal)
        offers = self.scheduler.offers
        for job_id, offer in sorted(offers.items(), key=lambda each: -each[1].lane):
            reader = self._reader_of(offer)
            if reader is not None:
                del offers[job_id]
                self.scheduler.placed(job_id, reader.number)
                reader.offered(offer)
                heard = True
        return heard

    def _reader_of(self, offer: Offer) -> VirtualWorker | None:
        """The worker with the most room, another than the last where there is one; among equals all get a turn.

        No worker is given what it has no slot for, so that the next job is chosen as late as can be.
        """
        readers = [worker for worker in self.workers if worker.room and offer.queue in worker.queues]
        if not readers:
            return None
        self._turns += 1
        in_turn = [readers[(self._turns + step) % len(readers)] for step in range(len(readers))]
        return max(in_turn, key=lambda worker: (worker.number != offer.avoid, worker.room))

    def _check_leases(self) -> None:
        if not (self._lease_check_open or self.scheduler.overdue_leases()):
            return
        self._lease_check_open = True
        silent = [worker.incarnation for worker in self.workers if worker.silent_since_us is not None]
        # As long as everybody is well no lease runs out: the check stays open, and no heartbeats need to be played.
        if self.scheduler.held_by(silent):
            self._beat_all()
            self.scheduler.decide()
            self.scheduler.expire_leases()
            self._lease_check_open = False

    def _beat_all(self) -> None:
        for worker in self._alive():
            if worker.is_connected:
                worker.beat()

    def _alive(self) -> list[VirtualWorker]:
        return [worker for worker in self.workers if worker.is_alive]

    # Hooks, and the end.

    def _start_hooks(self) -> None:
        for registry in self._registries:
            if registry.apps and registry.apps[-1] in self._hooked:
                continue  # an App comes to the end
            for app in registry.apps:
                if app not in self._hooked:
                    self._hooked.append(app)
                    hooks.start([app], self._wait_for)

    def _wait_for(self, coroutine: Coroutine[Any, Any, None]) -> None:
        loop = self.stage.loop
        task = loop.create_task(coroutine)
        while True:
            loop.pump()
            if task.done():
                task.result()
                return
            if loop.next_us is None:
                task.cancel()
                raise StandstillError("a start or stop hook", "It awaits something that nothing brings about.")
            self.clock.move_to(loop.next_us)

    def _unwind(self) -> None:
        self.stage.threads.close()
        loop = self.stage.made_loop
        if loop is None:
            return
        loop.thaw()
        for _ in range(DEAF_MAX):
            tasks = asyncio.all_tasks(loop)
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            loop.pump()
        self._wait_for(loop.shutdown_asyncgens())
        loop.set_exception_handler(lambda _loop, _context: None)  # of tasks that will not end nothing more is heard
        loop.close()

    @contextmanager
    def _driving(self) -> Iterator[None]:
        self.is_driving = True
        capture.install()
        try:
            with virtual_sleep():
                yield
        finally:
            capture.uninstall()
            self.is_driving = False


def _in_thread(call: Callable[[], T]) -> T:
    """The event loop of an async test runs in this thread, so the loop of the jobs runs in another, for so long."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001  # raised where it was asked for
            errors.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), name="mainspring-testing")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
