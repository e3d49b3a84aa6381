"""Where the one loop of a process waits for whatever comes first."""

from collections.abc import Callable

from tests.sim.process import Process
from tests.sim.world import SECOND, Future

__all__ = ["Rest"]


class Rest:
    """One process waits here in place of each of its clients.

    A real loop comes round every few milliseconds and finds nothing; `longest_s` tells for how long that would be so,
    unless something comes: then the loop is woken.
    """

    def __init__(self, process: Process, longest_s: Callable[[], float]) -> None:
        self._process = process
        self._longest_s = longest_s
        self._bell: Future[None] = Future()

    def ring(self) -> None:
        """Something has come."""
        if not self._bell.is_done:
            self._bell.set(None)

    def take(self, wait_s: float) -> None:
        """Waits, at least for a moment, so that no loop stands still. Only the process' body calls it."""
        process = self._process
        process.sleep(process.world.rng.randrange(20, 120))
        process.wait(self._bell, round(max(wait_s, self._longest_s()) * SECOND))
        self._bell = Future()
