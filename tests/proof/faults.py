"""What is done to the processes of an installation, each at a moment that was seen to be bad."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.proof.ledger import AttemptKey
from tests.proof.scheduler_process import POINTS
from tests.proof.site import Member, Site

_VOID_AFTER_S = 30.0


@dataclass(slots=True)
class Faults:
    """Counts what hit: a run proves nothing where nothing did."""

    site: Site
    with_transaction_open: int = 0
    with_attempts_running: int = 0

    def hold(self, scheduler: Member, fault: int, load: Callable[[], None] = lambda: None) -> str:
        """Lets a scheduler stand still with a transaction open; what it says of it.

        `load` gives it something to decide, where there might be nothing, once it knows that it is to stand still.
        """
        point = POINTS[fault % len(POINTS)]
        scheduler.order(f"hold {point}")
        assert scheduler.answer() == f"will hold {point}", f"{scheduler.name} takes no orders: {scheduler.tail()}"
        load()
        said = scheduler.answer()
        opened, _, rest = said.partition(" ")
        assert opened == "open", f"{scheduler.name} said {said!r} instead of standing still: {scheduler.tail()}"
        self.with_transaction_open += 1
        return rest

    def stop_while_running(self, workers: Sequence[Member], kind: str = "") -> tuple[Member, set[AttemptKey]]:
        """Stops the worker that seems to run most attempts of a kind, once it is seen to run one; what it runs then."""
        deadline_s = time.monotonic() + _VOID_AFTER_S
        by_name = {worker.name: worker for worker in workers}
        while time.monotonic() < deadline_s:
            running = list(self.site.board.running.values())
            busy = Counter(event.worker_id for event in running if event.job_id.startswith(kind))
            if not busy:
                self.site.board.wait()
                continue
            victim = by_name[busy.most_common(1)[0][0]]
            victim.stop()
            # It stands still: what has begun and not ended there is really under way.
            found = self.site.ledger().running_in(victim.pid)
            if any(job_id.startswith(kind) for job_id, _ in found):
                self.with_attempts_running += 1
                return victim, found
            victim.go_on()
        raise AssertionError(f"void: no worker ran a job of kind {kind!r} within {_VOID_AFTER_S:g} s")

    def be_away(self, scheduler: Member, fault: int) -> None:
        """A scheduler stands still in the middle of a transaction until others have its partitions, then goes on."""
        partitions = [int(number) for number in self.hold(scheduler, fault).split()[-1].split(",")]
        scheduler.stop()
        self.site.until(
            lambda: all(self.site.owners().get(number) not in {None, scheduler.name} for number in partitions),
            f"partitions {partitions} to be taken over from {scheduler.name}",
        )
        scheduler.order("go")
        scheduler.go_on()
        said = scheduler.answer()
        assert said.startswith("refused"), f"the transaction of a zombie: {said}"
