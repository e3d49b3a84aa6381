"""A machine: what runs on it dies and is started again."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from tests.sim.process import Process
from tests.sim.world import World

__all__ = ["Node"]


class Node(ABC):
    """One machine and the life of the process that it has now."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.kind = name.partition("-")[0]
        self.process: Process | None = None
        self.lives = 0
        self.clock_step_ms = 0
        """How much its wall clock is ahead."""
        self.on_born: list[Callable[[Process], None]] = []
        self.on_gone: Callable[[], None] | None = None
        self._world = world

    def start(self) -> None:
        """Begins a life."""
        assert self.process is None or not self.process.alive
        self.lives += 1
        process = self.process = Process(self._world, f"{self.name}/{self.lives}")
        process.clock.step_ms = self.clock_step_ms
        process.on_end = self._ended
        for tell in self.on_born:
            tell(process)
        self._reset()
        process.start(lambda: self._live(process))

    def step_clock(self, by_ms: int) -> None:
        """Sets the wall clock of the machine."""
        self.clock_step_ms += by_ms
        self._world.note("clock", self.name, self.clock_step_ms)
        self._world.saw("clock set back" if by_ms < 0 else "clock set forward")
        if self.process is not None:
            self.process.clock.step_ms = self.clock_step_ms

    @abstractmethod
    def stop(self) -> None:
        """SIGTERM: the process ends in good order."""

    @abstractmethod
    def _live(self, process: Process) -> None:
        """What the process does."""

    @abstractmethod
    def _reset(self) -> None:
        """Forgets the last life: one has ended, or another begins."""

    def _ended(self) -> None:
        self._reset()
        if self.on_gone is not None:
            self.on_gone()
