"""A scheduler in a process of its own that kills itself at a chosen point.

`python dying.py BOOTSTRAP PREFIX POINT TXNS [DIR]`

POINT is a call of the producer with `before-` or `after-` in front, or `never`; TXNS transactions are let pass first.
With `following` it is a standby that dies with rows that it has read and not told its table; TXNS rows pass first.
With `herd` an hour passes once TXNS jobs wait, and it dies after the next commit, when some of them have become ready.
"""

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from mainspring.processors.core import Rules
from mainspring.processors.engine.loop import Engine
from mainspring.processors.engine.ports import Received
from mainspring.processors.engine.replay import Replay
from mainspring.processors.scheduler import Scheduler, SchedulerConfig
from mainspring.processors.scheduler.partition import SchedulerPartition
from mainspring.schemas import Codec
from mainspring.topics import Connection, Topology
from tests.engine.faults import Faults, FaultyOutput, faulty
from tests.engine.support import SettableClock

HOUR_MS = 3_600_000
PARTITIONS = 2


def waiting_jobs(engine: Engine) -> list[int]:
    """How many jobs are not ready yet, in each partition."""
    return [each.core.waiting for each in engine.programs().values() if isinstance(each, SchedulerPartition)]


def die_in_the_herd(engine: Engine, jobs: int, clock: SettableClock, faults: Faults) -> None:
    """Lets their time come when all `jobs` wait; dies when some of each partition's have been moved and others not."""

    def die(_: FaultyOutput) -> None:
        waiting = waiting_jobs(engine)
        if sum(waiting) < jobs and all(waiting):
            os.kill(os.getpid(), signal.SIGKILL)

    if sum(waiting_jobs(engine)) == jobs:
        clock.ahead_ms = HOUR_MS
        faults.after["commit"] = die


def built(
    bootstrap: str, prefix: str, point: str, state_dir: Path | None, faults: Faults, clock: SettableClock
) -> Engine:
    """The scheduler, with short times; in a herd its indexes keep as little in memory as they can."""
    topology = Topology(prefix=prefix, partitions=PARTITIONS, work_partitions=2)
    connection = Connection(bootstrap)
    config = SchedulerConfig(
        connection=connection,
        topology=topology,
        codec=Codec.embedded(),
        rules=Rules(partitions=PARTITIONS),
        session_timeout_ms=2_000,
        linger_ms=5,
        state_dir=state_dir,
        standby=point == "following",
    )
    if point == "herd":
        config = replace(config, window_jobs=1)
    kafka = faulty(connection, topology, faults, transaction_timeout_ms=60_000)
    return Scheduler(config, kafka=kafka, clock=clock).build("dying")


def die_at(point: str, left: int, faults: Faults) -> None:
    """Has the process die at a call of the producer, or amid the rows of others, when `left` of them have passed."""

    def die(_: FaultyOutput) -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    def die_following(replay: Replay, records: Sequence[Received], as_of_ms: int) -> None:
        nonlocal left
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= len(records)
        take(replay, records, as_of_ms)

    take = Replay.take
    if point == "following":
        patch.object(Replay, "take", die_following).start()
    when, _, call = point.partition("-")
    if when == "before":
        faults.before[call] = die
    elif when == "after":
        faults.after[call] = die


def main() -> None:
    bootstrap, prefix, point, transactions, *rest = sys.argv[1:]
    faults, clock = Faults(), SettableClock()
    die_at(point, int(transactions), faults)
    engine = built(bootstrap, prefix, point, Path(rest[0]) if rest else None, faults, clock)
    was_ready = False
    while True:
        engine.step(50)
        if point == "herd":
            die_in_the_herd(engine, int(transactions), clock, faults)
        if not was_ready and len(engine.status().ready) == PARTITIONS:
            was_ready = True
            sys.stdout.write("ready\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
