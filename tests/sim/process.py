"""A process of the simulated world: a body that runs in turns, a clock, a network cable, and the ways it can fail."""

from collections.abc import Callable
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

from tests.sim.world import Future, World

__all__ = ["Killed", "Process", "SimClock", "SimRandomness"]

T = TypeVar("T")


class Killed(BaseException):
    """The process is dead: nothing in it may go on, and no `except Exception` may hold it up."""


class SimClock:
    """The clocks of one process: the wall clock can be wrong and be set, the other only goes on."""

    def __init__(self, process: "Process") -> None:
        self._process = process
        self._world = process.world
        self.step_ms = 0
        """How much the wall clock is ahead."""
        self._origin_ms = process.world.rng.randrange(1, 1 << 40)

    def wall_ms(self) -> int:
        return self._world.epoch_ms + self._world.now // 1000 + self.step_ms

    def mono_ms(self) -> int:
        return self._origin_ms + self._world.now // 1000

    def pause(self, delay_ms: int) -> None:
        self._process.sleep(delay_ms * 1000)


class SimRandomness:
    """Chance of one process."""

    def __init__(self, process: "Process") -> None:
        self._rng = process.world.rng

    def bits(self, count: int) -> int:
        return self._rng.getrandbits(count)


class Process:
    """One life of a process. `start` it once; after `kill` nothing that it had asked for reaches it.

    Threads of the client library are callbacks through `background`: they go on while the body is busy, and stand still
    with it when the whole process is paused.
    """

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.alive = True
        self.is_paused = False
        self.cut_until = 0
        """Until when no packet gets through."""
        self.clock = SimClock(self)
        self.on_point: Callable[[str], None] | None = None
        """Told of each numbered step and each call of a port: where faults strike."""
        self.on_end: Callable[[], None] | None = None
        self.on_silence: list[Callable[[], None]] = []
        """Told when the process stops to talk to the brokers: dead, paused or cut off."""
        self.on_death: list[Callable[[], None]] = []
        self.on_return: list[Callable[[], None]] = []
        """Told when it can talk again."""
        self._greenlet: greenlet | None = None
        self._turn = 0
        self._woken = -1
        """The turn that would have come while the process was paused; -1: none."""
        self._deferred: list[Callable[[], None]] = []

    # The body's side.

    def start(self, body: Callable[[], Any]) -> None:
        """Runs the body, in the next turn."""
        self._greenlet = greenlet(lambda: self._live(body), parent=self.world.hub)
        self.world.after(0, lambda: self._switch(0))

    def point(self, name: str) -> None:
        """A step at which the process may die or be paused. Only the body calls it."""
        if not self.alive:
            raise Killed
        if self.on_point is not None:
            self.on_point(name)

    def sleep(self, delay: int) -> None:
        """Lets time pass. Only the body calls it."""
        if not self.alive:
            raise Killed  # what the body does on its way out of being killed does not happen
        self._turn += 1
        turn = self._turn
        self.world.after(delay, lambda: self._wake(turn))
        self._park()

    def wait(self, future: Future[T], timeout: int) -> bool:
        """Waits for an answer, or for so long; whether the answer is there. Only the body calls it."""
        if not self.alive:
            raise Killed
        if not future.is_done and timeout > 0:
            self._turn += 1
            turn = self._turn
            timer = self.world.after(timeout, lambda: self._wake(turn))
            future.then(lambda _: self._wake(turn))
            self._park()
            timer.cancel()
        return future.is_done

    # The world's side.

    def background(self, action: Callable[[], None]) -> None:
        """Something reaches a thread of the client library: now, when the pause is over, or never."""
        if not self.alive:
            return
        if self.is_paused:
            self._deferred.append(action)
        else:
            action()

    def kill(self) -> None:
        """SIGKILL, from outside."""
        if not self.alive:
            return
        self._die()
        body = self._greenlet
        if body:  # neither unborn nor over
            body.throw(Killed)

    def die(self) -> None:
        """SIGKILL, in the middle of the body's own work."""
        self._die()
        raise Killed

    def pause(self, duration: int) -> None:
        """SIGSTOP, and SIGCONT after a while."""
        if not self.alive or self.is_paused:
            return
        self.world.note("pause", self.name, duration // 1000)
        self.is_paused = True
        self._silence()
        self.world.after(duration, self._resume)
        if getcurrent() is self._greenlet:
            self._turn += 1
            self._woken = self._turn
            self._park()

    def cut(self, duration: int) -> None:
        """The network is away for a while."""
        if not self.alive or self.cut_until > self.world.now:
            return
        self.world.note("cut", self.name, duration // 1000)
        self.cut_until = self.world.now + duration
        self._silence()
        self.world.at(self.cut_until, self._reconnect)

    @property
    def is_silent(self) -> bool:
        """Whether nothing of it reaches the brokers."""
        return not self.alive or self.is_paused or self.cut_until > self.world.now

    def _live(self, body: Callable[[], Any]) -> None:
        try:
            body()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - whatever it is, it must end the run, and not the hub
            self.world.fail(error)
        if self.alive:
            self._die()
        if self.on_end is not None:
            self.on_end()

    def _park(self) -> None:
        self.world.hub.switch()
        if not self.alive:
            raise Killed

    def _wake(self, turn: int) -> None:
        if turn != self._turn or not self.alive:
            return
        if self.is_paused:
            self._woken = turn
        else:
            self._switch(turn)

    def _switch(self, turn: int) -> None:
        if self.alive and turn == self._turn and self._greenlet is not None:
            self._turn += 1
            self._greenlet.switch()

    def _resume(self) -> None:
        if not self.alive:
            return
        self.is_paused = False
        woken, self._woken = self._woken, -1
        self.world.note("resume", self.name)
        self.world.resumed[self.name] = self.world.now
        deferred, self._deferred = self._deferred, []
        for action in deferred:
            self.background(action)
        if not self.is_silent:
            for tell in list(self.on_return):
                tell()
        if woken >= 0:
            # A little later: what the threads of the client library learn first is a matter of chance.
            self.world.after(self.world.rng.randrange(2000), lambda: self._wake(woken))

    def _reconnect(self) -> None:
        if self.alive and not self.is_silent:
            for tell in list(self.on_return):
                tell()

    def _silence(self) -> None:
        for tell in list(self.on_silence):
            tell()

    def _die(self) -> None:
        self.world.note("end", self.name)
        self._silence()
        self.alive = False
        self._turn += 1
        for tell in self.on_death:
            tell()
