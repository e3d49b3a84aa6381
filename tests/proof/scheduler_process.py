"""A scheduler as `mainspring scheduler` runs it, that can be told to stand still while a transaction is open.

`python -m tests.proof.scheduler_process SETTINGS SLOT`. On stdin: `hold POINT` lets the next transaction that has
written something stop just before that call of the producer, when the broker knows of it; `go` lets it go on. On
stdout: `will hold POINT` at once, `open POINT RECORDS PARTITION,…` when it stands there, and after `go` how it ended,
`committed` or `refused CODE`. The product has no such switch: it is put in at the ports of the engine.
"""

import os
import queue
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mainspring.processors.engine.errors import TransactionError
from mainspring.processors.engine.ports import Admin, ChangelogReader, Inputs, Kafka, Output
from mainspring.processors.scheduler import Scheduler
from mainspring.settings import Settings
from mainspring.telemetry import configure_logging, get_logger
from tests.engine.faults import Faults, FaultyOutput

POINTS = ("flush", "commit")
"""Calls that come after the offsets, with which a transaction begins: the records are on their way, or are there."""
STARTS = "starts"
"""Said in the log once the program is loaded."""


class Order:
    """What the parent wants, and what it is told."""

    def __init__(self) -> None:
        self._point: str | None = None
        self._go: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.stop = threading.Event()

    def listen(self) -> None:
        """Reads orders; the end of the input is the end of the parent, and of this process."""
        for line in sys.stdin:
            verb, _, rest = line.strip().partition(" ")
            if verb == "hold":
                self._point = rest
                say(f"will hold {rest}")
            elif verb == "go":
                self._go.put(None)
        self.stop.set()
        self._go.put(None)

    def is_for(self, call: str) -> bool:
        """Whether to stand still before this call; asked once per order."""
        if self._point != call:
            return False
        self._point = None
        return True

    def stand_still(self, call: str, records: int, partitions: tuple[int, ...]) -> None:
        """Tells that the transaction is open, and waits to be killed or told to go on."""
        say(f"open {call} {records} {','.join(map(str, partitions))}")
        self._go.get()


class HoldingOutput(FaultyOutput):
    """A producer whose transaction can be held open."""

    def __init__(self, inner: Output, order: Order, scheduler: Scheduler) -> None:
        super().__init__(inner, Faults())
        self._order = order
        self._scheduler = scheduler
        self._was_held = False

    def _through(self, call: str, *arguments: Any) -> None:
        if self._faults.produced and self._order.is_for(call):
            self._was_held = True
            self._order.stand_still(call, len(self._faults.produced), self._scheduler.status().owned)
        try:
            super()._through(call, *arguments)
        except TransactionError as error:
            if self._was_held:
                self._was_held = False
                say(f"refused {error.code}")
            raise
        if self._was_held and call == "commit":
            self._was_held = False
            say("committed")


class HoldingKafka:
    """The product's own clients, but for the producer."""

    def __init__(self, inner: Kafka, order: Order, scheduler: Scheduler) -> None:
        self._inner = inner
        self._order = order
        self._scheduler = scheduler

    def inputs(self) -> Inputs:
        return self._inner.inputs()

    def changelog(self) -> ChangelogReader:
        return self._inner.changelog()

    def follower(self) -> ChangelogReader:
        return self._inner.follower()

    def admin(self) -> Admin:
        return self._inner.admin()

    def output(self, transactional_id: str) -> Any:
        return HoldingOutput(self._inner.output(transactional_id), self._order, self._scheduler)

    def fence(self, transactional_id: str) -> None:
        self._inner.fence(transactional_id)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(settings_file: str, slot: str) -> None:
    flags: Mapping[str, object] = {"scheduler.slot": slot}
    settings = Settings.load(flags=flags, config=Path(settings_file), environ={})
    configure_logging(style="json", level="info")
    get_logger(__name__).info(STARTS)
    order = Order()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: order.stop.set())
    # A daemon: it hangs in a read when the scheduler ends.
    threading.Thread(target=order.listen, daemon=True).start()
    config = settings.scheduler_config()
    plain = Scheduler(config)
    scheduler: Scheduler = Scheduler(config, kafka=lambda name: HoldingKafka(plain._confluent(name), order, scheduler))
    scheduler.run(order.stop, own_process=True)
    sys.stdout.flush()
    # At once: the interpreter's own end stumbles over the thread that hangs in a read of stdin.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
