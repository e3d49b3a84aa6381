"""How much of a queue may be in flight: a window of offers and runs, which finds its size like a TCP window does.

Whether workers have room is learned from their answers alone. A claim that found a free slot says there is more, so the
window grows; a decline for lack of slots says there is less, so it halves, once per burst. So does an offer that nobody
answers in time, and a late claim does not grow it: slots may be plenty while the time to read so many offers is not.
What is in flight is counted from the rows, never by messages: a renewed offer is still counted once.

A full window still lets something through. An attempt that ended has freed a slot, so one job may follow it; and
after a while without an offer one job probes, or a window that shrank beside long jobs would never learn of a new
worker.
"""

from mainspring.processors.core.rules import Rules

__all__ = ["DispatchWindow"]


class DispatchWindow:
    """The window of one queue in one partition. Times are monotonic milliseconds."""

    __slots__ = (
        "_credits",
        "_cut_at_ms",
        "_late_until_ms",
        "_limited",
        "_probe_at_ms",
        "_rules",
        "_searching",
        "offered",
        "running",
        "size",
    )

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.size: float = float(min(rules.window_start, rules.window_max))
        """Offers and runs that may be in flight."""
        self.offered = 0
        """Jobs on offer."""
        self.running = 0
        """Confirmed attempts."""
        self._credits = 0
        self._cut_at_ms: int | None = None
        self._probe_at_ms = 0
        self._limited = False
        self._searching = True
        self._late_until_ms: int | None = None

    @property
    def in_flight(self) -> int:
        """Jobs on offer or running."""
        return self.offered + self.running

    def allowance(self, now_ms: int) -> int:
        """How many jobs may be offered now."""
        room = max(0, int(self.size) - self.in_flight)
        if (
            self._late_until_ms is not None
            and self.in_flight > self._rules.window_calm
            and now_ms < self._late_until_ms
        ):
            return room
        probe = now_ms >= self._probe_at_ms
        return max(room, self._credits, int(probe))

    def settle(self, offers: int, now_ms: int, *, more_waiting: bool, stopped_by_window: bool) -> None:
        """Notes how a round of offers ended: how many left, whether jobs remain, whether this window held them."""
        if offers:
            self._probe_at_ms = now_ms + self._rules.probe_ms
        if stopped_by_window or not more_waiting:
            self._credits = 0
            self._limited = more_waiting

    def next_probe_ms(self) -> int:
        """When a full window lets one job through regardless."""
        return self._probe_at_ms

    def attempt_ended(self) -> None:
        """A slot is free somewhere: one job may follow."""
        self._credits += 1

    def claimed_with_room(self, now_ms: int, answered_ms: int) -> None:
        """A claim found a free slot on arrival. Grows the window, if it is the window that holds jobs back.

        `answered_ms`: how long after its offer it came. Slots may be plenty while the worker's loop, or ours, is what
        takes the time; a window that grew on would only make a longer queue of offers, each renewed before its turn.
        While claims are late, what ends is not followed either, so that the queue becomes shorter.

        A window that nothing strains says nothing about the workers, so it does not grow. One that was halved below
        what runs resumes from there: what runs is known to have room. Until the next decline each claim then makes
        room for two, or long runs would eat the growth and offers would trickle out one at a time: ten new workers
        beside ten with long jobs are found within a second, and by a growth of one in more than ten.
        """
        late = answered_ms > self._rules.grow_within_ms
        self._late_until_ms = now_ms + self._rules.window_cut_ms if late else None
        if not self._limited or (late and self.size > self._rules.window_calm):
            return
        if self.size < self.running:
            self.size = float(self.running)
            self._searching = True
        self.size = min(float(self._rules.window_max), self.size + (2 if self._searching else 1))

    def declined_for_slots(self, now_ms: int) -> None:
        """A worker had no slot in time. Halves the window, once for all declines of the same moment."""
        self._cut(now_ms, 1.0)

    def unanswered(self, now_ms: int) -> None:
        """An offer had to be renewed: more are out than are read in time, or a worker died. Halves a large window."""
        if self.size > self._rules.window_calm:
            self._cut(now_ms, float(self._rules.window_calm))

    def _cut(self, now_ms: int, least: float) -> None:
        if self._cut_at_ms is None or now_ms - self._cut_at_ms >= self._rules.window_cut_ms:
            self.size = max(least, self.size / 2)
            self._searching = False
            self._cut_at_ms = now_ms
